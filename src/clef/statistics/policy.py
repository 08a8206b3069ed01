"""Turns gates into a small policy that can be kept as a file, and a policy with an answer into act or review.

Invariants: what a policy does not know is reviewed: a question it has no threshold for, other answers than it was
measured on, a tie. A policy holds no rows; what was measured stands beside its thresholds for people to read.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from clef.decisions.answers import Answer
from clef.decisions.questions import QuestionType
from clef.errors import InputError, Problem
from clef.statistics.gates import Gates, QuestionGate, Side
from clef.statistics.guarantee import GuaranteedGate, GuaranteedGates
from clef.statistics.recalibration import Recalibrator

VERSION = 1
Decision = Literal["act", "review"]


@dataclass(frozen=True, slots=True)
class QuestionPolicy:
    """The thresholds of one question."""

    type: QuestionType
    answers: tuple[str, ...] | None
    """The answers it was measured on; None where they differed from row to row and are not compared."""
    thresholds: Mapping[Side, float]
    """Lowest top probability that is acted on; a side that is missing is always reviewed."""
    measured: Mapping[str, object] = field(default_factory=dict)
    """The gate that it comes from, as JSON."""


@dataclass(frozen=True, slots=True)
class Policy:
    """From which top probability on each question's answers are acted on unchecked."""

    rule: Mapping[str, object]
    """The rule the thresholds were chosen by."""
    questions: Mapping[str, QuestionPolicy]
    """By the question's name."""
    recalibration: Recalibrator | None = None
    """Applied to an answer before it is compared; None where thresholds are on the engine's own probabilities."""
    model: str = ""
    """The model it was measured on."""

    @classmethod
    def of(
        cls, gates: Gates | GuaranteedGates, *, recalibration: Recalibrator | None = None, model: str = ""
    ) -> Policy:
        """The policy of gates. Give the map through which the outcomes went before they were measured, if any."""
        if isinstance(gates, Gates):
            rule = gates.rule.to_dict()
        else:
            rule = {"rule": "guarantee", "risk": gates.risk, "confidence": gates.confidence}
        questions = {gate.question: _question(gate) for gate in gates.questions}
        return cls(rule, questions, recalibration, model)

    def to_dict(self) -> dict[str, object]:
        """The policy as JSON."""
        questions = {
            name: {
                "type": one.type,
                "answers": None if one.answers is None else list(one.answers),
                "thresholds": dict(one.thresholds),
                "measured": dict(one.measured),
            }
            for name, one in self.questions.items()
        }
        return {
            "version": VERSION,
            "measure": "top_probability",
            "rule": dict(self.rule),
            "model": self.model,
            "recalibration": self.recalibration.to_dict() if self.recalibration else None,
            "questions": questions,
        }

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> Policy:
        """The policy that `to_dict` wrote. Raises InputError with every problem, or for another version."""
        if not isinstance(raw, Mapping) or raw.get("version") != VERSION or raw.get("measure") != "top_probability":
            said = raw.get("version") if isinstance(raw, Mapping) else None
            raise InputError(f"not a policy this clef reads (version {said!r})", hint=f"version {VERSION} is expected")
        questions, problems = {}, []
        listed = raw.get("questions")
        for name, one in listed.items() if isinstance(listed, Mapping) else ():
            read = _read_question(one)
            if isinstance(read, str):
                problems.append(Problem(read, "policy", column=f"questions.{name}"))
            else:
                questions[str(name)] = read
        if not isinstance(listed, Mapping):
            problems.append(Problem("expected an object of questions", "policy", column="questions"))
        if problems:
            raise InputError.of(problems, "the policy")
        kept = raw.get("recalibration")
        recalibration = None if kept is None else Recalibrator.from_dict(kept)
        return cls(dict(raw.get("rule") or {}), questions, recalibration, str(raw.get("model", "")))


def decide(policy: Policy, question_name: str, answer: Answer) -> Decision:
    """`act` where the answer reaches its threshold and nothing speaks against it, else `review`."""
    question = policy.questions.get(question_name)
    if question is None or question.type != answer.type or answer.tie:
        return "review"
    if question.answers is not None and question.answers != answer.names:
        return "review"
    side: Side = "all"
    if answer.type == "noul":
        side = "yes" if answer.top == 0 else "no"
    threshold = question.thresholds.get(side)
    if threshold is None:
        return "review"
    if policy.recalibration is not None:
        answer = policy.recalibration.apply(answer)
    return "act" if answer.top_probability >= threshold else "review"


def _question(gate: QuestionGate | GuaranteedGate) -> QuestionPolicy:
    thresholds = {cut.side: cut.threshold for cut in gate.cuts if cut.threshold is not None}
    return QuestionPolicy(gate.type, gate.answers, thresholds, gate.to_dict())


def _read_question(raw: Any) -> QuestionPolicy | str:
    """One question of a policy, or what is wrong with it."""
    if not isinstance(raw, Mapping) or raw.get("type") not in get_args(QuestionType):
        return "expected an object with a type of choice, noul or score"
    answers, thresholds = raw.get("answers"), raw.get("thresholds")
    if answers is not None and not (isinstance(answers, list) and all(isinstance(one, str) for one in answers)):
        return "expected answers to be a list of text, or null"
    allowed = {"yes", "no"} if raw["type"] == "noul" else {"all"}
    if not isinstance(thresholds, Mapping) or set(thresholds) - allowed:
        return f"expected thresholds for {' and '.join(sorted(allowed))} only"
    numbers = list(thresholds.values())
    if not all(type(n) in (int, float) and math.isfinite(n) and 0 <= n <= 1 for n in numbers):
        return "expected thresholds from 0 to 1"
    measured = raw.get("measured")
    return QuestionPolicy(
        raw["type"],
        None if answers is None else tuple(answers),
        {side: float(value) for side, value in thresholds.items()},
        dict(measured) if isinstance(measured, Mapping) else {},
    )
