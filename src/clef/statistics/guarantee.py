"""Turns outcomes into gates with a promise: with the stated confidence, the risk above the threshold is within bounds.

The promise is about rows like these: with probability `confidence` over tables drawn as this one was, the share of
wrong answers among all those with at least the threshold's top probability is at most `risk`. Thresholds are tested
from a fixed grid, strictest first, each by the exact binomial test; the first that fails ends its sequence. Sequences
start where so many rows act that a test could succeed, in several places, and share the permitted doubt; so do the two
sides of a noul. Where rows share a state, one of them counts. Only the starts assume anything: that risk does not
fall as the threshold does.

Source: A. N. Angelopoulos, S. Bates, E. J. Candès, M. I. Jordan and L. Lei, "Learn then test: calibrating predictive
algorithms to achieve risk control" (2021), fixed-sequence testing with several starts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clef.decisions.questions import QuestionType
from clef.errors import InputError
from clef.statistics.columns import Columns, Outcomes, as_columns
from clef.statistics.gates import Side, Status, answers_of, parts, sides, standing
from clef.statistics.intervals import Rate

if TYPE_CHECKING:
    from clef.statistics.columns import Floats

GRID = (
    *(1 - 10**-exponent for exponent in (6, 5, 4.5, 4, 3.5, 3, 2.5)),
    *(round(0.99 - step / 100, 2) for step in range(100)),
)
"""Thresholds tested, strictest first; fixed, so that no label can have chosen them."""


@dataclass(frozen=True, slots=True)
class GuaranteedCut:
    """One threshold with a promise."""

    side: Side
    status: Status
    threshold: float | None
    count: int
    """Rows used: with a label and an answer, on this side, one a state."""
    acted: Rate | None
    """Of those, the rows at or above the threshold, and the right ones among them."""
    p: float | None
    """Of the risk being larger than stated; at most `level`."""
    level: float
    """What the test had to stay under, after sharing the doubt."""
    reason: str | None = None

    @property
    def coverage(self) -> float | None:
        """Share of the rows that is acted on."""
        return self.acted.count / self.count if self.acted else None

    def to_dict(self) -> dict[str, object]:
        """The cut as JSON."""
        return {
            "side": self.side,
            "status": self.status,
            "threshold": self.threshold,
            "count": self.count,
            "coverage": self.coverage,
            "acted": self.acted.to_dict() if self.acted else None,
            "p": self.p,
            "level": self.level,
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True)
class GuaranteedGate:
    """The promised gate of one question."""

    question: str
    type: QuestionType
    answers: tuple[str, ...] | None
    cuts: tuple[GuaranteedCut, ...]
    pooled: int | None = None
    """How many questions share this gate; None where it is of one question alone."""

    def to_dict(self) -> dict[str, object]:
        """The gate as JSON."""
        answers = list(self.answers) if self.answers is not None else None
        cuts = [cut.to_dict() for cut in self.cuts]
        own = {"question": self.question, "type": self.type, "answers": answers}
        return own | {"cuts": cuts, "pooled": self.pooled}


@dataclass(frozen=True, slots=True)
class GuaranteedGates:
    """Every question's gate; each question's promise is its own."""

    risk: float
    """Largest share of wrong answers among those acted on."""
    confidence: float
    """Probability that the promise holds."""
    questions: tuple[GuaranteedGate, ...]

    def to_dict(self) -> dict[str, object]:
        """Promise and gates as JSON."""
        shown = [question.to_dict() for question in self.questions]
        return {"rule": "guarantee", "risk": self.risk, "confidence": self.confidence, "questions": shown}


def guaranteed_gates(
    outcomes: Outcomes, risk: float = 0.05, confidence: float = 0.95, *, pooled: bool = False
) -> GuaranteedGates:
    """A promised gate for each question, in the order of their first row; pooled, for each type of question.

    The outcomes must not be recalibrated by a map that was fitted on them: the promise is about rows unseen so far.
    Raises InputError for a risk or confidence outside (0, 1).
    """
    if not (0 < risk < 1 and 0 < confidence < 1):
        raise InputError(
            f"risk {risk} and confidence {confidence} cannot be promised", hint="give shares inside 0 to 1"
        )
    found = []
    for part in parts(as_columns(outcomes), pooled=pooled):
        halves = sides(_one_a_state(part.columns.judged), part.type)
        cuts = tuple(_cut(side, rows, risk, (1 - confidence) / len(halves)) for side, rows in halves)
        answers = None if part.pooled else answers_of(part.columns)
        found.append(GuaranteedGate(part.name, part.type, answers, cuts, part.pooled))
    return GuaranteedGates(risk, confidence, tuple(found))


def _one_a_state(judged: Columns) -> Columns:
    """The first row of each state, since the test is of independent rows."""
    import numpy as np

    _, first = np.unique(judged.state, return_index=True)
    kept = np.zeros(len(judged.row), dtype=bool)
    kept[first] = True
    return judged.take(kept)


def _cut(side: Side, judged: Columns, risk: float, doubt: float) -> GuaranteedCut:
    import numpy as np

    count = len(judged.row)
    status, reason = standing(count)
    starts = _starts(count, risk, doubt)
    level = doubt / max(1, len(starts))
    if status == "refused":
        return GuaranteedCut(side, status, None, count, None, None, level, reason)
    grid = np.array(GRID)
    acts = (judged.top[:, None] >= grid) & ~judged.tie[:, None]
    acted, wrong = acts.sum(axis=0), (acts & ~judged.correct[:, None]).sum(axis=0)
    p_values = _binomial(wrong, acted, risk)
    passed = [_sequence(p_values, acted, start, level) for start in starts]
    best = max((place for place in passed if place is not None), default=None)
    if best is None:
        reason = f"no threshold could be shown to keep the risk within {risk:g}; more labels or a larger risk may"
        return GuaranteedCut(side, "unreachable", None, count, None, None, level, reason)
    kept = Rate(int(acted[best] - wrong[best]), int(acted[best]))
    return GuaranteedCut(side, status, GRID[best], count, kept, float(p_values[best]), level, reason)


def _starts(count: int, risk: float, doubt: float) -> list[int]:
    """Rows acted on at which sequences start, from the fewest that could succeed by fours. Depends on no label.

    One start at the fewest rows ends at its first error; a start at many rows cannot find a small sure part. By fours
    gave the most coverage over tables of 200 to 6,000 rows and three models.
    """
    most = max(1, int(math.log(max(count, 1), 4)))
    for many in range(most, 0, -1):
        fewest = math.ceil(math.log(doubt / many) / math.log(1 - risk))
        starts = [fewest * 4**step for step in range(many)]
        if starts[-1] <= count:
            return starts
    return []


def _sequence(p_values: Floats, acted: Floats, start: int, level: float) -> int | None:
    """Place in the grid of the last threshold before the first failure; None where the first fails."""
    passed = None
    for place, (p, rows) in enumerate(zip(p_values, acted, strict=True)):
        if rows < start:
            continue
        if p > level:
            break
        passed = place
    return passed


def _binomial(wrong: Floats, acted: Floats, risk: float) -> Floats:
    """P(at most so many wrong) where each is wrong with probability `risk`; 1 where nothing is acted on."""
    from scipy.special import bdtr

    values: Floats = bdtr(wrong, acted, risk)
    values[acted == 0] = 1.0
    return values
