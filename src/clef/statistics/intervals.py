"""Turns counts into rates with the interval that the true rate plausibly lies in."""

import math
from dataclasses import dataclass
from statistics import NormalDist

LEVEL = 0.95
"""Confidence level of every interval that is shown."""


@dataclass(frozen=True, slots=True)
class Rate:
    """So many right out of so many, with a 95 % Wilson interval; all None where there is nothing to count."""

    correct: int
    count: int

    @property
    def value(self) -> float | None:
        """Share that is right, 0 to 1."""
        return self.correct / self.count if self.count else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Lower and upper end, 0 to 1."""
        return wilson(self.correct, self.count) if self.count else None

    def to_dict(self) -> dict[str, object]:
        """Counts, share and interval as JSON; the last three are null where nothing was counted."""
        low, high = self.interval or (None, None)
        return {"correct": self.correct, "count": self.count, "accuracy": self.value, "low": low, "high": high}


def wilson(correct: int, count: int, level: float = LEVEL) -> tuple[float, float]:
    """Wilson score interval of a proportion; stays in [0, 1] and has width at 0 and 1.

    Source: E. B. Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22 (1927).
    """
    z = NormalDist().inv_cdf(0.5 + level / 2)
    share = correct / count
    centre = share + z * z / (2 * count)
    spread = z * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    scale = 1 + z * z / count
    low = (centre - spread) / scale if correct else 0.0  # exactly 0 and 1 there, but for rounding
    high = (centre + spread) / scale if correct < count else 1.0
    return max(0.0, low), min(1.0, high)
