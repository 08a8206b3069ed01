"""Turns runs into what their comparison shows: a sentence for each two, differences by question, and the flips."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from clef.errors import InputError
from clef.runs.store import StoredRun

if TYPE_CHECKING:
    from clef.statistics.compare import Comparison
    from clef.statistics.halves import Half

FLIP_ROWS = 50
"""Flips of one page."""
MOST_QUESTIONS = 40
"""Questions that have a line of their own."""
Show = Literal["all", "fixed", "broken", "both wrong"]
Runs: TypeAlias = "Sequence[tuple[str, Half]]"


@dataclass(frozen=True, slots=True)
class Line:
    """One difference: of all rows, or of one question."""

    name: str | None
    """The question; None for all rows."""
    of: "Comparison"

    @property
    def change(self) -> float | None:
        """Accuracy of the second less that of the first."""
        return self.of.accuracy_change.value

    @property
    def ends(self) -> tuple[float, float] | None:
        """The interval of the change."""
        interval = self.of.accuracy_change.interval
        return None if interval is None else (interval.low, interval.high)

    @property
    def p(self) -> float:
        """After Holm, where several were compared."""
        return self.of.p if self.of.adjusted_p is None else self.of.adjusted_p


@dataclass(frozen=True, slots=True)
class Flipped:
    """A pair that differs, by its places among the outcomes of both runs."""

    change: str
    first: int
    second: int
    question: str


@dataclass(frozen=True, slots=True)
class Pairing:
    """Two runs, by their numbers in the list, and all that is said of them."""

    first: int
    second: int
    lines: tuple[Line, ...]
    flips: tuple[Flipped, ...]
    trouble: str | None = None
    """Why they cannot be compared."""

    @property
    def all(self) -> "Comparison":
        """The comparison over all rows. Not where there is trouble."""
        return self.lines[0].of

    @property
    def reach(self) -> float:
        """How far the differences and their intervals go from zero at most; what a bar's half stands for."""
        ends = [abs(end) for line in self.lines for end in line.ends or ()]
        return max([0.01, *ends, *(abs(line.change or 0) for line in self.lines)])

    def chosen(self, show: Show, question: str | None) -> list[Flipped]:
        """The flips of one kind and question, worst first."""
        kinds = get_args(Show) if show == "all" else (show,)
        return [one for one in self.flips if one.change in kinds and question in (None, one.question)]


def names_of(runs: Sequence[StoredRun]) -> list[str]:
    """What each run is called; equal names are told apart by the moment, or at last by the id."""
    names = [run.name for run in runs]
    if len(set(names)) < len(names):
        names = [f"{run.name} ({run.created.astimezone():%H:%M})" for run in runs]
    return names if len(set(names)) == len(names) else [f"{run.name} ({run.id})" for run in runs]


def compare_view(runs: Runs) -> list[Pairing]:
    """Every two runs against each other; p values of several pairs, and of several questions, after Holm."""
    from clef.statistics.compare import holm

    found = [_pairing(runs, first, second) for first, second in combinations(range(len(runs)), 2)]
    sound = [one for one in found if one.trouble is None]
    if len(sound) > 1:
        adjusted = dict(zip(map(id, sound), holm([one.all.p for one in sound]), strict=True))
        found = [one if one.trouble else _adjusted(one, adjusted[id(one)]) for one in found]
    return found


def _adjusted(one: Pairing, p: float) -> Pairing:
    return replace(one, lines=(Line(None, replace(one.all, adjusted_p=p)), *one.lines[1:]))


def _pairing(runs: Runs, first: int, second: int) -> Pairing:
    from clef.statistics.compare import compare

    names, (ours, theirs) = (runs[first][0], runs[second][0]), (runs[first][1], runs[second][1])
    try:
        whole = compare(ours, theirs, names=names)
    except InputError as error:
        return Pairing(first, second, (), (), f"{error.message} ({error.hint})" if error.hint else error.message)
    asked, called = ours.columns.question, ours.columns.names
    flips = [Flipped(one.change, one.first, one.second, called[asked[one.first]]) for one in whole.flips]
    every = Line(None, replace(whole, flips=()))
    return Pairing(first, second, (every, *_questions(ours, theirs, names)), tuple(flips))


def _questions(ours: "Half", theirs: "Half", names: tuple[str, str]) -> list[Line]:
    """A line for each question that both have; none where there is only one."""
    from clef.statistics.compare import compare, holm

    questions = ours.columns.names[:MOST_QUESTIONS]
    if len(questions) < 2:
        return []
    lines = []
    for question in questions:
        try:
            found = compare(ours.of_question(question), theirs.of_question(question), names=names)
            lines.append(Line(question, replace(found, flips=())))
        except InputError:  # the other run has none of its rows; the words on shared rows say so
            continue
    adjusted = holm([line.of.p for line in lines])
    return [Line(line.name, replace(line.of, adjusted_p=p)) for line, p in zip(lines, adjusted, strict=True)]
