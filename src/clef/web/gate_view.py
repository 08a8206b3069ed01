"""Turns the outcomes of a run into the gates of its page: where each slider can stand, and where it is best."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from clef.statistics.ladder import Cost, ReviewBudget, Rule, TargetAccuracy
from clef.web.run_filter import Pool

if TYPE_CHECKING:
    from clef.statistics.columns import Columns
    from clef.statistics.gates import Cut, Gates, QuestionGate

MOST_POINTS = 200
"""Places of a slider where there are several; one alone has every place of the risk curve, which leads to it."""
MOST_QUESTIONS = 30
"""Questions that have a slider; the policy has all of them."""
Way = Literal["accuracy", "review", "cost"]
Point: TypeAlias = tuple[float, int, int, float, float]
"""Threshold, rows acted on, right ones among them, and the interval of that share."""


@dataclass(frozen=True, slots=True)
class GateRule:
    """What a person wants of a gate, as it stands in the page's address: `accuracy-0.95`, `review-0.3`, `cost-10-1`."""

    way: Way = "accuracy"
    accuracy: float = 0.95
    review: float = 0.3
    wrong: float = 10.0
    check: float = 1.0

    @classmethod
    def read(cls, text: str | None) -> GateRule:
        """The rule in a text; what cannot be meant gives the usual one."""
        way, *numbers = (text or "accuracy").split("-")
        try:
            values = [float(number) for number in numbers]
        except ValueError:
            return cls()
        if not all(math.isfinite(value) and value >= 0 for value in values):
            return cls()
        match way, values:
            case (("accuracy" | "review" | "cost"), []):
                return cls(way)
            case "accuracy", [share] if 0 < share <= 1:
                return cls("accuracy", accuracy=share)
            case "review", [share] if share < 1:
                return cls("review", review=share)
            case "cost", [wrong, check] if wrong + check > 0:
                return cls("cost", wrong=wrong, check=check)
        return cls()

    @property
    def rule(self) -> Rule:
        """The same for the statistics."""
        if self.way == "accuracy":
            return TargetAccuracy(self.accuracy)
        return ReviewBudget(self.review) if self.way == "review" else Cost(self.wrong, self.check)


def gates_view(columns: Columns, wanted: GateRule, pool: Pool, model: str) -> dict[str, Any]:
    """The gates of each question under a rule, or one for all of a type, each cut with the points that its slider moves
    on, and their policy.
    """
    from clef.statistics.gates import REFUSED_UNDER, parts, sides
    from clef.statistics.policy import Policy

    found, pooled = _gates(columns, wanted.rule, pool)
    questions = []
    pairs = sorted(zip(found.questions, parts(columns, pooled=pooled), strict=True), key=lambda pair: not _has(pair[0]))
    for gate, part in pairs[:MOST_QUESTIONS]:
        rows = dict(sides(part.columns.judged, gate.type))
        cuts = [cut.to_dict() | {"points": points(rows[cut.side], cut, alone=len(pairs) == 1)} for cut in gate.cuts]
        questions.append({"question": gate.question, "type": gate.type, "pooled": gate.pooled, "cuts": cuts})
    return {
        "coverage": found.coverage.to_dict(),
        "accuracy": found.accuracy.to_dict(),
        "questions": questions,
        "can": _can(found),
        "too_few": sum(not _has(gate) for gate in found.questions),
        "most_labels": max((cut.states for gate in found.questions for cut in gate.cuts), default=0),
        "asked": len(columns.names),
        "pooled": pooled,
        "by_itself": pooled and pool == "auto",
        "fewest": REFUSED_UNDER,
        "left_out": max(0, len(found.questions) - MOST_QUESTIONS),
        "policy": Policy.of(found, model=model).to_dict(),
    }


def _gates(columns: Columns, rule: Rule, pool: Pool) -> tuple[Gates, bool]:
    """The gates, and whether they are pooled: by itself where no question has the labels that all together have."""
    from clef.statistics.gates import gates

    if len(columns.names) == 1 or pool == "each":
        return gates(columns, rule), False
    if pool == "all":
        return gates(columns, rule, pooled=True), True
    each = gates(columns, rule)
    if _can(each):
        return each, False
    together = gates(columns, rule, pooled=True)
    return (together, True) if _can(together) else (each, False)


def _can(found: Gates) -> bool:
    """Whether there are labels enough to choose one gate at least."""
    return any(_has(gate) for gate in found.questions)


def _has(gate: QuestionGate) -> bool:
    """Whether one of its cut-points has labels enough."""
    return any(cut.status != "refused" for cut in gate.cuts)


def points(judged: Columns, cut: Cut, *, alone: bool) -> list[Point]:
    """Where a slider can stand, by falling threshold; none where there are too few labels to choose a gate."""
    from clef.statistics.risk import risk_coverage

    if cut.status == "refused":
        return []
    curve = risk_coverage(judged).points
    step = 1 if alone else max(1, -(-len(curve) // MOST_POINTS))
    kept = {point.threshold: point.rate for point in [*curve[::step], *curve[-1:]]}
    if cut.threshold is not None and cut.optimistic_accuracy is not None:
        kept[cut.threshold] = cut.optimistic_accuracy
    return [
        (threshold, rate.count, rate.correct, *(rate.interval or (0.0, 1.0)))
        for threshold, rate in sorted(kept.items(), reverse=True)
    ]
