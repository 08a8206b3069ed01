"""Turns outcomes and what they should reach into one sentence for each bar that they miss."""

from dataclasses import dataclass

from clef.statistics.calibration import calibration
from clef.statistics.columns import Outcomes, as_columns
from clef.statistics.compare import Comparison
from clef.statistics.summary import summarise


@dataclass(frozen=True, slots=True)
class Bars:
    """What a run must reach; None asks for nothing."""

    min_accuracy: float | None = None
    max_ece: float | None = None
    """Of the calibration error of the top probability."""

    def missed(self, outcomes: Outcomes, comparison: Comparison | None = None) -> list[str]:
        """One sentence for each bar that is missed, and where the comparison with a baseline says decisively worse."""
        columns = as_columns(outcomes)
        accuracy = summarise(columns).overall.value
        said = []
        if self.min_accuracy is not None and (accuracy is None or accuracy < self.min_accuracy):
            shown = "no labelled row was answered" if accuracy is None else f"the accuracy is {accuracy:.1%}"
            said.append(f"{shown}, below the {self.min_accuracy:.1%} that was asked for")
        if self.max_ece is not None:
            error = calibration(columns).error if accuracy is not None else None
            if error is None:
                said.append(f"no labelled row was answered, so no calibration error is below {self.max_ece:.3f}")
            elif error.value > self.max_ece:
                floor = f"chance alone shows {error.noise_floor:.3f} on so many rows"
                said.append(f"the calibration error is {error.value:.3f}, above {self.max_ece:.3f}; {floor}")
        if comparison is not None and is_worse(comparison):
            said.append(f"worse than the baseline: {comparison.verdict}")
        return said


def is_worse(comparison: Comparison) -> bool:
    """Whether the second run is worse than the first by more than chance."""
    change = comparison.accuracy_change.value
    return comparison.decisive and change is not None and change < 0
