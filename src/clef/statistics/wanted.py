"""Turns what a person asks of a gate into the gates of some outcomes, and the policy that applies them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import get_args

from clef.errors import InputError, Problem
from clef.statistics.columns import Columns, Outcomes, as_columns
from clef.statistics.gates import Gates, gates
from clef.statistics.guarantee import GuaranteedGates, guaranteed_gates
from clef.statistics.ladder import Cost, ReviewBudget, Rule, TargetAccuracy
from clef.statistics.methods import Method, Recalibrate
from clef.statistics.policy import Policy
from clef.statistics.recalibration import fitted


@dataclass(frozen=True, slots=True)
class Found:
    """Gates, and the policy that holds their thresholds."""

    gates: Gates | GuaranteedGates
    policy: Policy

    def to_dict(self) -> dict[str, object]:
        """The gates as JSON, with the policy."""
        return self.gates.to_dict() | {"policy": self.policy.to_dict()}


@dataclass(frozen=True, slots=True)
class Wanted:
    """One way to choose thresholds, and on which probabilities. Exactly one of the first four ways is named."""

    accuracy: float | None = None
    """Target accuracy of what is not checked."""
    review: float | None = None
    """Share of the rows that may be checked."""
    wrong: float | None = None
    """What a wrong answer costs; goes with `check`."""
    check: float | None = None
    """What checking one row costs."""
    risk: float | None = None
    """Guaranteed: at most this share of what is not checked is wrong."""
    confidence: float = field(default=0.95)
    """How sure the guarantee is."""
    recalibrate: Recalibrate = "none"
    """Thresholds on the engine's own probabilities, or on those of a map fitted on these rows."""
    pooled: bool = False
    """One gate for all questions of a type, for tables in which each row asks its own question."""

    def measure(self, outcomes: Outcomes, *, model: str = "") -> Found:
        """The gates of labelled outcomes. Raises InputError unless exactly one way is named, and where a map cannot be
        fitted or may not be used.

        A recalibrated gate is judged on rows its threshold was not chosen on, as any other.
        """
        rule = self._rule()
        columns = as_columns(outcomes)
        if self.recalibrate == "none":
            measured = self._gates(columns, rule)
            return Found(measured, Policy.of(measured, model=model))
        method: Method = self.recalibrate
        map = fitted(columns, method)
        measured = self._gates(map.transform(columns), rule)
        return Found(measured, Policy.of(measured, recalibration=map, model=model))

    def _gates(self, columns: Columns, rule: Rule | None) -> Gates | GuaranteedGates:
        if rule is not None:
            return gates(columns, rule, pooled=self.pooled)
        assert self.risk is not None, "_rule has raised"
        return guaranteed_gates(columns, self.risk, self.confidence, pooled=self.pooled)

    def _rule(self) -> Rule | None:
        """The rule that was named, None for the guarantee."""
        cost = self.wrong is not None or self.check is not None
        ways = (self.accuracy is not None, self.review is not None, cost, self.risk is not None)
        if sum(ways) != 1 or (cost and None in (self.wrong, self.check)):
            hint = "give accuracy, or review, or wrong and check, or risk"
            raise InputError.of([Problem("one gate is measured at a time", "gate_rule", hint=hint)])
        if self.recalibrate not in get_args(Recalibrate):
            hint = f"give one of {', '.join(get_args(Recalibrate))}"
            raise InputError.of([Problem(f'no recalibration "{self.recalibrate}"', "recalibrate", hint=hint)])
        if self.accuracy is not None:
            return TargetAccuracy(self.accuracy)
        if self.review is not None:
            return ReviewBudget(self.review)
        if cost:
            return Cost(self.wrong or 0.0, self.check or 0.0)
        if self.recalibrate != "none":
            hint = "take the guarantee on the engine's own probabilities, or another rule"
            message = "a guarantee needs rows that no map was fitted on"
            raise InputError.of([Problem(message, "gate_rule", hint=hint)])
        return None
