"""Turns judged rows into the ladder of thresholds they allow, and rules that choose a rung.

A rung is one distinct top probability; at it, all rows with that or a higher one are acted on, so equal ones are never
parted. Answers whose top probability is shared by two (ties) are acted on at no rung. The rest is reviewed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from clef.errors import InputError

if TYPE_CHECKING:
    from clef.statistics.columns import Columns, Floats, Ints

FEWEST_ACTED = 20
"""Rows that must be above a threshold for a rule to choose it by their accuracy."""


@dataclass(frozen=True, slots=True)
class TargetAccuracy:
    """Act on as many as possible of which at least this share is right."""

    accuracy: float

    def __post_init__(self) -> None:
        """Raise InputError for a share outside 0 to 1."""
        _check(0 < self.accuracy <= 1, f"target accuracy {self.accuracy}", "give a share above 0, at most 1")

    def rung(self, acted: Floats, right: Floats, total: float) -> int | None:
        """The lowest rung that reaches the target; None where none does with rows enough."""
        import numpy as np

        good = np.flatnonzero((right >= self.accuracy * acted - 1e-9) & (acted >= FEWEST_ACTED))
        return int(good[-1]) if len(good) else None

    def to_dict(self) -> dict[str, object]:
        """The rule as JSON."""
        return {"rule": "target accuracy", "accuracy": self.accuracy}


@dataclass(frozen=True, slots=True)
class ReviewBudget:
    """Check at most this share of the answers: those the model is least sure of."""

    share: float

    def __post_init__(self) -> None:
        """Raise InputError for a share outside 0 to 1."""
        _check(0 <= self.share < 1, f"review budget {self.share}", "give a share of at least 0, below 1")

    def rung(self, acted: Floats, right: Floats, total: float) -> int | None:
        """The highest rung that leaves no more than the share; None where ties alone are more."""
        import numpy as np

        good = np.flatnonzero(acted >= (1 - self.share) * total - 1e-9)
        return int(good[0]) if len(good) else None

    def to_dict(self) -> dict[str, object]:
        """The rule as JSON."""
        return {"rule": "review budget", "share": self.share}


@dataclass(frozen=True, slots=True)
class Cost:
    """The cheapest gate, where a wrong answer costs `wrong` and a check costs `check` and finds the right answer."""

    wrong: float
    check: float

    def __post_init__(self) -> None:
        """Raise InputError for costs below zero, or both zero."""
        good = self.wrong >= 0 and self.check >= 0 and self.wrong + self.check > 0
        _check(good, f"costs {self.wrong} and {self.check}", "give two costs of at least 0, not both 0")

    def rung(self, acted: Floats, right: Floats, total: float) -> int | None:
        """The rung with the lowest cost; None where checking everything is as cheap."""
        if not len(acted):
            return None
        costs = self.of(acted, right, total)
        best = int(costs.argmin())
        return best if costs[best] < self.check * total else None

    def of(self, acted: Floats, right: Floats, total: float) -> Floats:
        """What each rung costs."""
        return self.wrong * (acted - right) + self.check * (total - acted)

    def to_dict(self) -> dict[str, object]:
        """The rule as JSON."""
        return {"rule": "cost", "wrong": self.wrong, "check": self.check}


Rule: TypeAlias = TargetAccuracy | ReviewBudget | Cost


@dataclass(frozen=True, slots=True)
class Ladder:
    """Rows by falling top probability, without ties."""

    order: Ints
    """Places of the rows."""
    ends: Ints
    """Where in `order` the last row of each rung stands."""
    thresholds: Floats
    """Top probability of each rung, falling."""

    def counts(self, weights: Floats) -> Floats:
        """Weight of the rows acted on at each rung; one weight a row, ties included."""
        counted: Floats = weights[self.order].cumsum()[self.ends]
        return counted


def ladder(judged: Columns) -> Ladder:
    """The ladder of judged rows; it has no rung where every row is a tie."""
    import numpy as np

    kept = np.flatnonzero(~judged.tie)
    order = kept[np.argsort(-judged.top[kept], kind="stable")]
    tops = judged.top[order]
    ends = np.flatnonzero(np.append(tops[1:] != tops[:-1], len(tops) > 0))
    return Ladder(order, ends, tops[ends])


def _check(good: bool, what: str, hint: str) -> None:
    if not good:
        raise InputError(f"{what} cannot be used", hint=hint)
