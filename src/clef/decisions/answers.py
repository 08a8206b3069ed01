"""Turns a probability for every allowed answer into a prediction and the measures of how sure it is.

Invariants: probabilities stand in the order of the question's answers, are finite, and are what the engine sent:
nothing is renormalised. `confidence` is recomputed here by TypeSafe's formulas and never copied from a server.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from clef.decisions.questions import QuestionType


@dataclass(frozen=True, slots=True)
class Answer:
    """What an engine answered to one question."""

    type: QuestionType
    names: tuple[str, ...]
    """The question's answers in the user's order; for a score the levels, lowest first; for a noul yes, no."""
    probabilities: tuple[float, ...]
    """One a name, in the same order; their sum is 1 within the tolerance of the wire."""

    @property
    def top(self) -> int:
        """Position of the most probable answer; of equal ones the first, so a noul at exactly 0.5 says yes."""
        return self.probabilities.index(max(self.probabilities))

    @property
    def prediction(self) -> str:
        """Name of the most probable answer; for a score its most likely level."""
        return self.names[self.top]

    @property
    def top_probability(self) -> float:
        """Probability of the prediction. Bands, calibration and gates use this, never the confidence."""
        return max(self.probabilities)

    @property
    def margin(self) -> float:
        """Top probability less the next one; 1 where there is only one answer. For a noul: |2p - 1|."""
        if len(self.probabilities) == 1:
            return 1.0
        second, first = sorted(self.probabilities)[-2:]
        return first - second

    @property
    def tie(self) -> bool:
        """Whether two answers share the top probability: then the prediction means nothing."""
        return self.probabilities.count(max(self.probabilities)) > 1

    @property
    def entropy(self) -> float:
        """Shannon entropy in nats: 0 where one answer has everything, log n where all are equal."""
        return -sum(p * math.log(p) for p in self.probabilities if p > 0)

    @property
    def confidence(self) -> float | None:
        """TypeSafe's confidence in [0, 1]; None for a noul, which has none. Not a probability."""
        if self.type == "noul":
            return None
        return choice_confidence(self.probabilities) if self.type == "choice" else score_confidence(self.probabilities)

    @property
    def rank(self) -> float:
        """What answers of one request are ordered by: the confidence; for a noul its margin, its distance from a half.

        The two are one formula for two options: (p - 1/2) / (1 - 1/2) = |2p - 1|.
        """
        confidence = self.confidence
        return self.margin if confidence is None else confidence

    @property
    def score(self) -> float | None:
        """Expected level, 0 to n - 1, of a score; None for other types."""
        if self.type != "score":
            return None
        return sum(level * p for level, p in enumerate(self.probabilities))

    @property
    def level(self) -> int | None:
        """Most likely level, 0 to n - 1, of a score; None for other types. It may differ from the expected level."""
        return self.top if self.type == "score" else None

    def ranked(self) -> list[tuple[str, float]]:
        """Each name with its probability, highest first; equal ones in the user's order."""
        return sorted(zip(self.names, self.probabilities, strict=True), key=lambda pair: -pair[1])


def choice_confidence(probabilities: Sequence[float]) -> float:
    """(p_max - 1/n) / (1 - 1/n): 0 where all are equal, 1 where one has everything, 1 for a single option.

    Source: TypeSafe's system-one-adapter, `_utils/confidence_metrics.py`.
    """
    n = len(probabilities)
    if n == 1:
        return 1.0
    return min(1.0, max(0.0, (max(probabilities) - 1 / n) / (1 - 1 / n)))


def score_confidence(probabilities: Sequence[float]) -> float:
    """1 - (mean distance to the mode) / (mean distance of a uniform scale from its middle), not below 0.

    Source: TypeSafe's system-one-adapter, `_utils/confidence_metrics.py`; llama.cpp computes the same.
    """
    n = len(probabilities)
    if n == 1:
        return 1.0
    mode = max(range(n), key=probabilities.__getitem__)
    spread = sum(p * abs(level - mode) for level, p in enumerate(probabilities))
    uniform = sum(abs(level - (n - 1) / 2) for level in range(n)) / n
    return min(1.0, max(0.0, 1 - spread / uniform))
