"""Turns the extra columns of a table into slices: the accuracy of the rows with each value, against all other rows.

Looking at many slices finds a bad one by chance, so p values are adjusted over all of them (Benjamini-Hochberg): of
the slices called different, at most ALPHA are expected to be no different.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from clef.decisions.examples import Outcome
from clef.statistics.columns import as_columns
from clef.statistics.intervals import Rate
from clef.statistics.rates import rates

if TYPE_CHECKING:
    from clef.statistics.columns import Bools, Columns, Floats, Ints

ALPHA = 0.05
"""Share of false ones expected among the slices that are called different."""
FEWEST = 20
"""Answered rows, inside and outside, below which a slice is shown and not tested."""
MOST_VALUES = 50
"""Different values above which a column holds texts or numbers, not groups."""


@dataclass(frozen=True, slots=True)
class Slice:
    """The rows in which a column has one value."""

    column: str
    value: str
    rate: Rate
    failed: int
    unlabelled: int
    ties: int
    p: float | None
    """Of the same accuracy inside and outside; None where it was not tested."""
    adjusted_p: float | None

    @property
    def different(self) -> bool:
        """Whether its accuracy differs from that of all other rows, the number of slices allowed for."""
        return self.adjusted_p is not None and self.adjusted_p <= ALPHA

    def to_dict(self) -> dict[str, object]:
        """The slice as JSON, its rate flat beside it."""
        own = {"column": self.column, "value": self.value, "failed": self.failed, "unlabelled": self.unlabelled}
        tested = {"ties": self.ties, "p": self.p, "adjusted_p": self.adjusted_p, "different": self.different}
        return own | tested | self.rate.to_dict()


@dataclass(frozen=True, slots=True)
class Slices:
    """Every slice of the columns looked at, and the columns that make none."""

    slices: tuple[Slice, ...]
    """By column, then by value in the order of their first row."""
    skipped: dict[str, str]
    """Column → why it was not cut."""

    def to_dict(self) -> dict[str, object]:
        """Slices and skipped columns as JSON."""
        return {"slices": [one.to_dict() for one in self.slices], "skipped": dict(self.skipped)}


def slices(outcomes: Iterable[Outcome], names: Sequence[str] | None = None) -> Slices:
    """The slices of the named extra columns, or of all. A row without the column is in none of its slices.

    The outcomes are passed over once, and none is held. Where rows stand alone each is tested by Fisher's exact test,
    where they share states by the difference's variance between states.
    """
    seen = _Values(names)
    columns = as_columns(seen.passing(outcomes))
    found: list[Slice] = []
    skipped: dict[str, str] = {}
    for name, known in seen.known.items():
        if len(known) < 2 or len(known) > MOST_VALUES:
            count = f"more than {MOST_VALUES}" if len(known) > MOST_VALUES else "fewer than two"
            skipped[name] = f"{count} different values"
        else:
            found += _cut(columns, name, seen.cells(name, len(columns.row)), list(known))
    return Slices(_adjusted(found), skipped)


class _Values:
    """The values of extra columns, each as its place among those of its column."""

    def __init__(self, names: Sequence[str] | None) -> None:
        self._all = names is None
        self.known: dict[str, dict[str, int]] = {name: {} for name in names or ()}
        self._places: dict[str, array[int]] = {name: array("h") for name in names or ()}

    def passing(self, outcomes: Iterable[Outcome]) -> Iterator[Outcome]:
        """The outcomes, noted as they pass."""
        for row, outcome in enumerate(outcomes):
            for name, value in outcome.example.extra.items():
                self._note(row, name, value)
            yield outcome

    def cells(self, name: str, rows: int) -> Ints:
        """The place of each row's value; -1 where the row has none."""
        import numpy as np

        places = np.array(self._places[name], dtype=np.int64)
        return np.pad(places, (0, rows - len(places)), constant_values=-1)

    def _note(self, row: int, name: str, value: str) -> None:
        if name not in self.known:
            if not self._all:
                return
            self.known[name], self._places[name] = {}, array("h")
        known, places = self.known[name], self._places[name]
        if len(known) > MOST_VALUES:
            return
        places.extend([-1] * (row - len(places)))
        places.append(known.setdefault(value, len(known)))


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    """Each p value adjusted for looking at all of them: at or below ALPHA is a discovery.

    Source: Y. Benjamini and Y. Hochberg, "Controlling the false discovery rate", JRSS B 57 (1995), as step-up minima.
    """
    order = sorted(range(len(p_values)), key=p_values.__getitem__, reverse=True)
    adjusted, least = [0.0] * len(p_values), 1.0
    for rank, place in zip(range(len(p_values), 0, -1), order, strict=True):
        least = min(least, p_values[place] * len(p_values) / rank)
        adjusted[place] = least
    return adjusted


def _cut(columns: Columns, name: str, cell: Ints, known: Sequence[str]) -> list[Slice]:
    import numpy as np

    judged = columns.labelled & columns.answered & (cell >= 0)
    right, state, size = columns.correct[judged], columns.state[judged], len(known)
    inside = rates(right, cell[judged], state, size)

    def counted(mask: Bools) -> Ints:
        return np.bincount(cell[mask & (cell >= 0)], minlength=size)

    failed, unlabelled = counted(columns.labelled & ~columns.answered), counted(~columns.labelled)
    ties, independent = counted(columns.tie), len(np.unique(state)) == len(state)
    return [
        Slice(
            name,
            value,
            inside[place],
            int(failed[place]),
            int(unlabelled[place]),
            int(ties[place]),
            _difference_p(right, cell[judged] == place, None if independent else state),
            None,
        )
        for place, value in enumerate(known)
    ]


def _difference_p(right: Bools, inside: Bools, state: Ints | None) -> float | None:
    """Two-sided p value of equal accuracy inside and outside; None with fewer than FEWEST rows in either."""
    import numpy as np

    here, there = int(inside.sum()), int((~inside).sum())
    if min(here, there) < FEWEST:
        return None
    if state is None:
        from scipy.stats import fisher_exact

        a, b = int((right & inside).sum()), int((right & ~inside).sum())
        return float(fisher_exact([[a, here - a], [b, there - b]]).pvalue)
    share_in, share_out = right[inside].mean(), right[~inside].mean()
    # how much each row pulls the difference away from what it is; its sums within states are independent
    pull: Floats = np.where(inside, (right - share_in) / here, -(right - share_out) / there)
    _, place = np.unique(state, return_inverse=True)
    sums = np.bincount(place, pull)
    states = len(sums)
    variance = float((sums**2).sum()) * states / max(states - 1, 1)
    if variance == 0 or states < FEWEST:
        return None
    return _two_sided(float(share_in - share_out) / variance**0.5, states - 1)


def _two_sided(t: float, degrees: int) -> float:
    from scipy.special import stdtr

    return float(2 * stdtr(degrees, -abs(t)))


def _adjusted(found: Sequence[Slice]) -> tuple[Slice, ...]:
    tested = [place for place, one in enumerate(found) if one.p is not None]
    adjusted = benjamini_hochberg([one.p for one in found if one.p is not None])
    after = dict(zip(tested, adjusted, strict=True))
    return tuple(replace(one, adjusted_p=after.get(place)) for place, one in enumerate(found))
