"""Turns outcomes into gates: from which top probability on a question's answers may be acted on unchecked.

A threshold that looks best on some rows looks better there than it is. So each gate has two accuracies: how the rule
does on rows it did not see (*out of bag*: chosen on nine tenths of the states, judged on the tenth left out) and,
marked as optimistic, how the threshold does on the rows it was chosen on. Its coverage is the share of these rows that
the threshold acts on. Every cut-point needs its own labels: under 50 it is refused, under 200 provisional. A noul has
two cut-points, for its yes and for its no.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from clef.decisions.questions import QuestionType
from clef.statistics.columns import Columns, Outcomes, as_columns
from clef.statistics.intervals import Estimate, Rate, undefined
from clef.statistics.ladder import Cost, Rule, TargetAccuracy, ladder
from clef.statistics.out_of_bag import Seen, accuracy_of, coverage_of, out_of_bag
from clef.statistics.rates import rate

if TYPE_CHECKING:
    from clef.statistics.columns import Bools, Ints

REFUSED_UNDER, PROVISIONAL_UNDER = 50, 200
"""Labels, on different states, of one cut-point."""
Side = Literal["all", "yes", "no"]
Status = Literal["ready", "provisional", "refused", "unreachable"]
_NONE = undefined("no threshold")


@dataclass(frozen=True, slots=True)
class Costs:
    """What an answer costs on average, on rows the gate was not chosen on."""

    gate: float
    check_all: float
    act_on_all: float

    def to_dict(self) -> dict[str, object]:
        """The costs as JSON."""
        return {"gate": self.gate, "check_all": self.check_all, "act_on_all": self.act_on_all}


@dataclass(frozen=True, slots=True)
class Cut:
    """One threshold: answers on its side are acted on from this top probability on."""

    side: Side
    """Which predictions it is for: all of them, or a noul's yes or no."""
    status: Status
    threshold: float | None
    count: int
    """Rows with a label and an answer on this side."""
    states: int
    coverage: Estimate
    """Share of new rows like these that this threshold acts on; see `coverage_of`."""
    accuracy: Estimate
    """Share of those acted on that is right, out of bag, with a Clopper-Pearson interval."""
    optimistic_accuracy: Rate | None = None
    """On the very rows the threshold was chosen on."""
    costs: Costs | None = None
    reason: str | None = None
    """Why there is no threshold, or what speaks against the one there is."""

    def to_dict(self) -> dict[str, object]:
        """The cut as JSON."""
        optimistic = self.optimistic_accuracy
        exact = (optimistic.exact if optimistic else None) or (None, None)
        shown = None if optimistic is None else optimistic.to_dict() | {"low": exact[0], "high": exact[1]}
        return {
            "side": self.side,
            "status": self.status,
            "threshold": self.threshold,
            "count": self.count,
            "states": self.states,
            "coverage": self.coverage.to_dict(),
            "accuracy": self.accuracy.to_dict(),
            "optimistic_accuracy": shown,
            "costs": self.costs.to_dict() if self.costs else None,
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True)
class QuestionGate:
    """The gate of one question: one cut-point, or two for a noul."""

    question: str
    type: QuestionType
    answers: tuple[str, ...] | None
    """The question's answers; None where they differ from row to row."""
    count: int
    failed: int
    """Rows that were never answered: they are reviewed, and in no coverage."""
    unlabelled: int
    ties: int
    """Answered rows that are never acted on."""
    coverage: Estimate
    """Share of the question's answered rows that is acted on."""
    accuracy: Estimate
    """Share of those that is right, out of bag."""
    cuts: tuple[Cut, ...]
    pooled: int | None = None
    """How many questions share this gate; None where it is of one question alone."""

    def to_dict(self) -> dict[str, object]:
        """The gate as JSON."""
        return {
            "question": self.question,
            "type": self.type,
            "answers": list(self.answers) if self.answers is not None else None,
            "count": self.count,
            "failed": self.failed,
            "unlabelled": self.unlabelled,
            "ties": self.ties,
            "coverage": self.coverage.to_dict(),
            "accuracy": self.accuracy.to_dict(),
            "cuts": [cut.to_dict() for cut in self.cuts],
            "pooled": self.pooled,
        }


@dataclass(frozen=True, slots=True)
class Gates:
    """The gates of every question under one rule."""

    rule: Rule
    coverage: Estimate
    """Share of all answered rows that is acted on."""
    accuracy: Estimate
    """Share of those that is right, out of bag."""
    questions: tuple[QuestionGate, ...]

    def to_dict(self) -> dict[str, object]:
        """Rule and gates as JSON."""
        shown = [question.to_dict() for question in self.questions]
        both = {"coverage": self.coverage.to_dict(), "accuracy": self.accuracy.to_dict()}
        return {"rule": self.rule.to_dict()} | both | {"questions": shown}


@dataclass(frozen=True, slots=True)
class Part:
    """The rows that share a gate: those of a question, or of all questions of a type."""

    name: str
    type: QuestionType
    columns: Columns
    pooled: int | None = None
    """How many questions they are of, where they are pooled."""


@dataclass(frozen=True, slots=True)
class _Measured:
    """A cut with the rows it was measured on."""

    cut: Cut
    state: Ints
    inside: Bools
    """Whether the cut acts on the row."""
    correct: Bools
    spread: float
    """Variance that the choice of the threshold adds to the accuracy."""


def gates(outcomes: Outcomes, rule: Rule, *, pooled: bool = False) -> Gates:
    """A gate for each question, in the order of their first row; pooled, for each type of question.

    The outcomes may be recalibrated by a map that was fitted on them. It bends the rows of a gate by one rising curve,
    so it moves thresholds and not the order in which rows are acted on, and that is all a gate's numbers go by.
    """
    found: list[QuestionGate] = []
    measured: list[_Measured] = []
    for part in parts(as_columns(outcomes), pooled=pooled):
        judged = part.columns.judged
        own = [_measure(side, rows, rule) for side, rows in sides(judged, part.type)]
        found.append(_question(part, judged, own))
        measured += own
    return Gates(rule, *_together(measured), tuple(found))


def parts(columns: Columns, *, pooled: bool) -> list[Part]:
    """The rows of each question; pooled, of each type that occurs."""
    import numpy as np

    if not pooled:
        each = enumerate(columns.by_question())
        return [Part(columns.names[place], columns.types[place], part) for place, part in each]
    kinds = np.array(columns.types, dtype=object)[columns.question]
    found = []
    for kind in dict.fromkeys(columns.types):
        part = columns.take(kinds == kind)
        found.append(Part(f"every {kind} question", kind, part, len(np.unique(part.question))))
    return found


def sides(judged: Columns, kind: QuestionType) -> list[tuple[Side, Columns]]:
    """The rows each cut-point is about: a noul's by its prediction, of other types all together."""
    if kind != "noul":
        return [("all", judged)]
    return [("yes", judged.take(judged.predicted == 0)), ("no", judged.take(judged.predicted == 1))]


def standing(states: int) -> tuple[Status, str | None]:
    """What so many labels on different states allow, and why not more."""
    if states < REFUSED_UNDER:
        return "refused", f"{states} labels on different states; at least {REFUSED_UNDER} are needed"
    if states < PROVISIONAL_UNDER:
        return "provisional", f"{states} labels on different states; {PROVISIONAL_UNDER} make it dependable"
    return "ready", None


def answers_of(columns: Columns) -> tuple[str, ...] | None:
    """The answers that all rows of a question allow, in one order; None where they differ."""
    bases = set(columns.class_base.tolist())
    lists = {tuple(columns.class_map[base : base + size].tolist()) for base, size in _lists(columns, bases)}
    return tuple(columns.class_names[place] for place in lists.pop()) if len(lists) == 1 else None


def _lists(columns: Columns, bases: set[int]) -> list[tuple[int, int]]:
    sizes = dict(zip(columns.class_base.tolist(), columns.sizes.tolist(), strict=True))
    return [(base, sizes[base]) for base in bases]


def _question(part: Part, judged: Columns, measured: list[_Measured]) -> QuestionGate:
    columns = part.columns
    coverage, accuracy = _together(measured)
    return QuestionGate(
        question=part.name,
        type=part.type,
        answers=None if part.pooled else answers_of(columns),
        count=len(judged.row),
        failed=int((columns.labelled & ~columns.answered).sum()),
        unlabelled=int((~columns.labelled).sum()),
        ties=int(judged.tie.sum()),
        coverage=coverage,
        accuracy=accuracy,
        cuts=tuple(one.cut for one in measured),
        pooled=part.pooled,
    )


def _measure(side: Side, judged: Columns, rule: Rule) -> _Measured:
    import numpy as np

    count, states = len(judged.row), len(np.unique(judged.state))
    status, reason = standing(states)
    if status == "refused":
        return _no_cut(side, judged, status, reason)
    rungs, right = ladder(judged), judged.correct.astype(np.float64)
    chosen = rule.rung(rungs.counts(np.ones(count)), rungs.counts(right), count)
    if chosen is None:
        cheapest = "checking everything is cheapest"
        why = cheapest if isinstance(rule, Cost) else "no threshold meets the rule on these rows"
        return _no_cut(side, judged, "unreachable", why)
    seen = out_of_bag(judged, rungs, rule)
    if not seen.acted.any():
        return _no_cut(side, judged, "unreachable", "the rule acts on none of the rows that it was not chosen on")
    threshold = float(rungs.thresholds[chosen])
    inside = (judged.top >= threshold) & ~judged.tie
    state, correct = judged.state, judged.correct
    coverage = coverage_of(inside, state)
    accuracy = accuracy_of(seen.accuracy, correct[inside], state[inside], seen.spread)
    costs = _costs(rule, seen, float(1 - correct.mean())) if isinstance(rule, Cost) else None
    reason = "; ".join(filter(None, [_against(rule, accuracy, costs), reason])) or None
    optimistic = rate(correct[inside], state[inside])
    cut = Cut(side, status, threshold, count, states, coverage, accuracy, optimistic, costs, reason)
    return _Measured(cut, state, inside, correct, seen.spread)


def _no_cut(side: Side, judged: Columns, status: Status, reason: str | None) -> _Measured:
    import numpy as np

    count, states = len(judged.row), len(np.unique(judged.state))
    cut = Cut(side, status, None, count, states, _NONE, _NONE, reason=reason)
    return _Measured(cut, judged.state, np.zeros(count, dtype=bool), judged.correct, 0.0)


def _costs(rule: Cost, seen: Seen, wrong: float) -> Costs:
    """What an answer costs out of bag; `wrong` is the share of all answers that are."""
    acted, right, out = float(seen.acted.sum()), float(seen.right.sum()), float(seen.out.sum())
    gate = (rule.wrong * (acted - right) + rule.check * (out - acted)) / out
    return Costs(gate, rule.check, rule.wrong * wrong)


def _against(rule: Rule, accuracy: Estimate, costs: Costs | None) -> str | None:
    """What the rows a gate was not chosen on say against it."""
    if costs is not None and costs.gate >= min(costs.check_all, costs.act_on_all):
        return "on rows it was not chosen on it saves nothing"
    if isinstance(rule, TargetAccuracy) and (accuracy.value or 0.0) < rule.accuracy:
        return "on rows it was not chosen on it stays below the target"
    return None


def _together(measured: Sequence[_Measured]) -> tuple[Estimate, Estimate]:
    """Coverage and accuracy over the rows of several cuts; a cut without a threshold acts on none of its own."""
    import numpy as np

    if not sum(len(one.state) for one in measured):
        return undefined("no rows"), undefined("no rows")
    state = np.concatenate([one.state for one in measured])
    inside = np.concatenate([one.inside for one in measured])
    correct = np.concatenate([one.correct for one in measured])
    coverage, acted = coverage_of(inside, state), int(inside.sum())
    if not acted:
        return coverage, undefined("no row is acted on")
    weights = [float(one.inside.sum()) / acted for one in measured]
    share = sum(w * (one.cut.accuracy.value or 0.0) for w, one in zip(weights, measured, strict=True))
    spread = sum(w * w * one.spread for w, one in zip(weights, measured, strict=True))
    return coverage, accuracy_of(share, correct[inside], state[inside], spread)
