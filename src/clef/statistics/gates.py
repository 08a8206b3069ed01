"""Turns outcomes into gates: from which top probability on a question's answers may be acted on unchecked.

A threshold that looks best on some rows looks better there than it is. So each gate has two sets of numbers: how the
rule does on rows it did not see (*out of bag*: chosen on nine tenths of the states, judged on the tenth left out)
and, marked as optimistic, how the threshold does on the rows it was chosen on. Every cut-point needs its own labels:
under 50 it is refused, under 200 provisional. A noul has two cut-points, for its yes and for its no.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from clef.decisions.questions import QuestionType
from clef.statistics.columns import Columns, Outcomes, as_columns
from clef.statistics.intervals import Estimate, Interval, Rate, clopper_pearson, undefined
from clef.statistics.ladder import Cost, Ladder, Rule, TargetAccuracy, ladder
from clef.statistics.rates import rate
from clef.statistics.resampling import bags, draws_for

if TYPE_CHECKING:
    from clef.statistics.columns import Floats

REFUSED_UNDER, PROVISIONAL_UNDER = 50, 200
"""Labels, on different states, of one cut-point."""
DRAWS = 300
LEFT_OUT = 0.1
"""Share of the states that each bag leaves out to be judged."""
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
    """Share of them acted on, out of bag."""
    accuracy: Estimate
    """Share of those acted on that is right, out of bag, with a Clopper-Pearson interval."""
    optimistic_coverage: float | None = None
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
            "optimistic_coverage": self.optimistic_coverage,
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
    cuts: tuple[Cut, ...]
    pooled: int | None = None
    """How many questions share this gate; None where it is of one question alone."""

    @property
    def coverage(self) -> Estimate:
        """Share of the question's answered rows that is acted on, out of bag."""
        return together(self.cuts)[0]

    @property
    def accuracy(self) -> Estimate:
        """Share of those that is right, out of bag."""
        return together(self.cuts)[1]

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
    questions: tuple[QuestionGate, ...]

    @property
    def coverage(self) -> Estimate:
        """Share of all answered rows that is acted on, out of bag."""
        return together([cut for question in self.questions for cut in question.cuts])[0]

    @property
    def accuracy(self) -> Estimate:
        """Share of those that is right, out of bag."""
        return together([cut for question in self.questions for cut in question.cuts])[1]

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


def gates(outcomes: Outcomes, rule: Rule, *, pooled: bool = False) -> Gates:
    """A gate for each question, in the order of their first row; pooled, for each type of question.

    The outcomes may be recalibrated by a map that was fitted on them. It bends the rows of a gate by one rising curve,
    so it moves thresholds and not the order in which rows are acted on, and that is all a gate's numbers go by.
    """
    return Gates(rule, tuple(_question(part, rule) for part in parts(as_columns(outcomes), pooled=pooled)))


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


def together(cuts: Sequence[Cut]) -> tuple[Estimate, Estimate]:
    """Coverage and accuracy of several cuts, each by its rows; a cut without a threshold acts on none."""
    count = sum(cut.count for cut in cuts)
    acted = sum((cut.coverage.value or 0.0) * cut.count for cut in cuts)
    right = sum((cut.coverage.value or 0.0) * cut.count * (cut.accuracy.value or 0.0) for cut in cuts)
    worth = min((_worth(cut) for cut in cuts if cut.accuracy.value is not None), default=1.0)
    return _shares(acted, right, count, worth)


def _worth(cut: Cut) -> float:
    shown = cut.optimistic_accuracy
    return 1.0 if shown is None or shown.effective is None or not shown.count else shown.effective / shown.count


def _lists(columns: Columns, bases: set[int]) -> list[tuple[int, int]]:
    sizes = dict(zip(columns.class_base.tolist(), columns.sizes.tolist(), strict=True))
    return [(base, sizes[base]) for base in bases]


def _question(part: Part, rule: Rule) -> QuestionGate:
    columns, judged = part.columns, part.columns.judged
    return QuestionGate(
        question=part.name,
        type=part.type,
        answers=None if part.pooled else answers_of(columns),
        count=len(judged.row),
        failed=int((columns.labelled & ~columns.answered).sum()),
        unlabelled=int((~columns.labelled).sum()),
        ties=int(judged.tie.sum()),
        cuts=tuple(_cut(side, rows, rule) for side, rows in sides(judged, part.type)),
        pooled=part.pooled,
    )


def _cut(side: Side, judged: Columns, rule: Rule) -> Cut:
    import numpy as np

    count, states = len(judged.row), len(np.unique(judged.state))
    status, reason = standing(states)
    if status == "refused":
        return Cut(side, status, None, count, states, _NONE, _NONE, reason=reason)
    rungs, right = ladder(judged), judged.correct.astype(np.float64)
    chosen = rule.rung(rungs.counts(np.ones(count)), rungs.counts(right), count)
    if chosen is None:
        why = "no threshold meets the rule on these rows"
        if isinstance(rule, Cost):
            why = "checking everything is cheapest"
        return Cut(side, "unreachable", None, count, states, _NONE, _NONE, reason=why)
    threshold = float(rungs.thresholds[chosen])
    inside = (judged.top >= threshold) & ~judged.tie
    optimistic = rate(judged.correct[inside], judged.state[inside])
    worth = 1.0 if optimistic.effective is None else optimistic.effective / optimistic.count
    seen = _out_of_bag(judged, rungs, rule)
    acted, right_share, out = float(seen[0].sum()), _mean_ratio(seen[1], seen[0]), float(seen[2].sum())
    coverage, accuracy = _shares(acted / out * count, acted / out * count * right_share, count, worth)
    costs = None
    if isinstance(rule, Cost):
        gate = (rule.wrong * float((seen[0] - seen[1]).sum()) + rule.check * (out - acted)) / out
        costs = Costs(gate, rule.check, rule.wrong * float(1 - judged.correct.mean()))
    reason = "; ".join(filter(None, [_against(rule, accuracy, costs), reason])) or None
    return Cut(
        side, status, threshold, count, states, coverage, accuracy, float(inside.mean()), optimistic, costs, reason
    )


def _against(rule: Rule, accuracy: Estimate, costs: Costs | None) -> str | None:
    """What the rows a gate was not chosen on say against it."""
    if costs is not None and costs.gate >= min(costs.check_all, costs.act_on_all):
        return "on rows it was not chosen on it saves nothing"
    if isinstance(rule, TargetAccuracy) and (accuracy.value or 0.0) < rule.accuracy:
        return "on rows it was not chosen on it stays below the target"
    return None


def _out_of_bag(judged: Columns, rungs: Ladder, rule: Rule) -> tuple[Floats, Floats, Floats]:
    """For each bag, of the rows left out of it: how many are acted on, right ones among them, and all.

    Bags are drawn without doubles. A bootstrap sample's doubles mislead the rule more than the table does: with a model
    that is too sure they showed 1.2 points too much coverage where these show 0.3 (600 rows).
    Source: D. N. Politis and J. P. Romano, Annals of Statistics 22 (1994), subsampling.
    """
    import numpy as np

    right = judged.correct.astype(np.float64)
    draws = draws_for(len(right), DRAWS)
    acted, hits, out = np.zeros((3, draws))
    for bag, weights in enumerate(bags(judged.state, draws, LEFT_OUT)):
        left = 1 - weights
        out[bag] = left.sum()
        rung = rule.rung(rungs.counts(weights), rungs.counts(weights * right), float(weights.sum()))
        if rung is not None:
            acted[bag] = rungs.counts(left)[rung]
            hits[bag] = rungs.counts(left * right)[rung]
    return acted, hits, out


def _mean_ratio(part: Floats, whole: Floats) -> float:
    """Mean over the bags that act. Pooled, bags that happen to act on more, and worse, rows would count for more."""
    acting = whole > 0
    return float((part[acting] / whole[acting]).mean()) if acting.any() else 0.0


def _shares(acted: float, right: float, count: int, worth: float) -> tuple[Estimate, Estimate]:
    """Coverage and accuracy with exact intervals, where `count` rows are worth `worth` times as many."""
    if not count:
        return undefined("no rows"), undefined("no rows")
    coverage = Estimate(acted / count, _exact(acted, count, worth), count)
    if acted <= 0:
        return coverage, undefined("no row is acted on")
    return coverage, Estimate(right / acted, _exact(right, acted, worth), round(acted))


def _exact(part: float, whole: float, worth: float) -> Interval:
    part = whole if abs(part - whole) < 1e-9 else part
    return Interval(*clopper_pearson(part * worth, whole * worth))
