"""Turns gates into a small policy that can be kept as a file, and a policy with an answer into act or review.

Invariants: what a policy does not know is reviewed, with the reason: a question it has no threshold for, other answers
than it was measured on, a tie, a failure. A pooled policy knows every question of its types. A policy holds no rows;
what was measured stands beside its thresholds for people to read.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
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
Reason = Literal[
    "below the threshold",
    "the policy does not know this question",
    "the policy measured a question of another type",
    "the policy measured other answers",
    "two answers share the top probability",
    "no threshold could be set",
    "no answer came back",
]


@dataclass(frozen=True, slots=True)
class Ruling:
    """Act or review, and why."""

    decision: Decision
    reason: Reason | None = None
    """Why it is to be reviewed."""
    probability: float | None = None
    """The top probability that was compared, recalibrated where the policy says so."""
    threshold: float | None = None

    def to_dict(self) -> dict[str, object]:
        """The ruling as JSON."""
        return {
            "decision": self.decision,
            "reason": self.reason,
            "probability": self.probability,
            "threshold": self.threshold,
        }


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
    pooled: Mapping[QuestionType, QuestionPolicy] = field(default_factory=dict)
    """For the questions that `questions` does not name, by type: what was measured on all questions together."""

    @classmethod
    def of(
        cls, gates: Gates | GuaranteedGates, *, recalibration: Recalibrator | None = None, model: str = ""
    ) -> Policy:
        """The policy of gates. Give the map through which the outcomes went before they were measured, if any."""
        if isinstance(gates, Gates):
            rule = gates.rule.to_dict()
        else:
            rule = {"rule": "guarantee", "risk": gates.risk, "confidence": gates.confidence}
        own = {gate.question: _question(gate) for gate in gates.questions if not gate.pooled}
        pooled = {gate.type: _question(gate) for gate in gates.questions if gate.pooled}
        return cls(rule, own, recalibration, model, pooled)

    def to_dict(self) -> dict[str, object]:
        """The policy as JSON."""
        return {
            "version": VERSION,
            "measure": "top_probability",
            "rule": dict(self.rule),
            "model": self.model,
            "recalibration": self.recalibration.to_dict() if self.recalibration else None,
            "questions": {name: _written(one) for name, one in self.questions.items()},
            "pooled": {kind: _written(one) for kind, one in self.pooled.items()},
        }

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> Policy:
        """The policy that `to_dict` wrote. Raises InputError with every problem, or for another version."""
        if not isinstance(raw, Mapping) or raw.get("version") != VERSION or raw.get("measure") != "top_probability":
            said = raw.get("version") if isinstance(raw, Mapping) else None
            raise InputError(f"not a policy this clef reads (version {said!r})", hint=f"version {VERSION} is expected")
        problems: list[Problem] = []
        questions = _read_questions(raw.get("questions"), "questions", problems)
        pooled = {one.type: one for one in _read_questions(raw.get("pooled", {}), "pooled", problems).values()}
        if problems:
            raise InputError.of(problems, "the policy")
        kept = raw.get("recalibration")
        recalibration = None if kept is None else Recalibrator.from_dict(kept)
        rule = raw.get("rule")
        known = dict(rule) if isinstance(rule, Mapping) else {}
        return cls(known, questions, recalibration, str(raw.get("model", "")), pooled)


def decide(policy: Policy, question_name: str, answer: Answer) -> Decision:
    """`act` where the answer reaches its threshold and nothing speaks against it, else `review`."""
    return ruling(policy, question_name, answer).decision


def ruling(policy: Policy, question_name: str, answer: Answer | None) -> Ruling:
    """As `decide`, with the reason and what was compared; None stands for an answer that never came."""
    if answer is None:
        return Ruling("review", "no answer came back")
    question = policy.questions.get(question_name) or policy.pooled.get(answer.type)
    if question is None:
        return Ruling("review", "the policy does not know this question")
    if question.type != answer.type:
        return Ruling("review", "the policy measured a question of another type")
    if question.answers is not None and question.answers != answer.names:
        return Ruling("review", "the policy measured other answers")
    side: Side = "all"
    if answer.type == "noul":
        side = "yes" if answer.top == 0 else "no"
    seen = answer if policy.recalibration is None else policy.recalibration.apply(answer)
    threshold = question.thresholds.get(side)
    compared = (seen.top_probability, threshold)
    if answer.tie:
        return Ruling("review", "two answers share the top probability", *compared)
    if threshold is None:
        return Ruling("review", "no threshold could be set", *compared)
    if seen.top_probability < threshold:
        return Ruling("review", "below the threshold", *compared)
    return Ruling("act", None, *compared)


def counted(rulings: Iterable[Ruling]) -> dict[str, object]:
    """How many rulings say act, how many review, and how many for each reason."""
    reasons = Counter(one.reason for one in rulings)
    act = reasons.pop(None, 0)
    return {"act": act, "review": reasons.total(), "reasons": dict(reasons.most_common())}


def _question(gate: QuestionGate | GuaranteedGate) -> QuestionPolicy:
    thresholds = {cut.side: cut.threshold for cut in gate.cuts if cut.threshold is not None}
    return QuestionPolicy(gate.type, gate.answers, thresholds, gate.to_dict())


def _written(one: QuestionPolicy) -> dict[str, object]:
    return {
        "type": one.type,
        "answers": None if one.answers is None else list(one.answers),
        "thresholds": dict(one.thresholds),
        "measured": dict(one.measured),
    }


def _read_questions(raw: Any, where: str, problems: list[Problem]) -> dict[str, QuestionPolicy]:
    """The questions of an object that can be read; what is wrong with the others is added to `problems`."""
    if not isinstance(raw, Mapping):
        problems.append(Problem("expected an object of questions", "policy", column=where))
        return {}
    found = {}
    for name, one in raw.items():
        read = _read_question(one)
        if isinstance(read, str):
            problems.append(Problem(read, "policy", column=f"{where}.{name}"))
        else:
            found[str(name)] = read
    return found


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
