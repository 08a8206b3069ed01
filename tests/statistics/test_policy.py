"""A policy acts only on what it was measured on, and comes back from a file as it was."""

import json
from dataclasses import replace

import pytest

from clef.decisions.answers import Answer
from clef.errors import InputError
from clef.statistics.curves import Temperature
from clef.statistics.gates import gates
from clef.statistics.guarantee import guaranteed_gates
from clef.statistics.ladder import ReviewBudget, TargetAccuracy
from clef.statistics.policy import Policy, QuestionPolicy, counted, decide, ruling
from clef.statistics.recalibration import Recalibrator
from tests.statistics.making import ANGRY, drawn

POLICY = Policy(
    {"rule": "by hand"},
    {
        "team": QuestionPolicy("choice", ("a", "b"), {"all": 0.9}),
        "angry": QuestionPolicy("noul", ("yes", "no"), {"yes": 0.9, "no": 0.6}),
        "never": QuestionPolicy("choice", None, {}),
    },
)


def choice(*probabilities: float, names: tuple[str, ...] = ("a", "b")) -> Answer:
    return Answer("choice", names, probabilities)


@pytest.mark.parametrize(
    ("question", "answer", "expected"),
    [
        ("team", choice(0.9, 0.1), "act"),
        ("team", choice(0.1, 0.9), "act"),
        ("team", choice(0.8999, 0.1001), "review"),
        ("team", choice(0.1, 0.9, names=("b", "a")), "review"),
        ("team", choice(0.95, 0.03, 0.02, names=("a", "b", "c")), "review"),
        ("team", Answer("noul", ("yes", "no"), (0.99, 0.01)), "review"),
        ("unknown", choice(1.0, 0.0), "review"),
        ("never", choice(1.0, 0.0), "review"),
        ("angry", Answer("noul", ("yes", "no"), (0.8, 0.2)), "review"),
        ("angry", Answer("noul", ("yes", "no"), (0.2, 0.8)), "act"),
    ],
)
def test_what_it_does_not_know_is_reviewed(question: str, answer: Answer, expected: str) -> None:
    assert decide(POLICY, question, answer) == expected


def test_a_tie_is_reviewed_whatever_the_threshold() -> None:
    lax = Policy({}, {"team": QuestionPolicy("choice", ("a", "b"), {"all": 0.0})})
    assert decide(lax, "team", choice(0.5, 0.5)) == "review"


def test_the_threshold_is_compared_with_the_recalibrated_probability() -> None:
    cooler = Policy(POLICY.rule, POLICY.questions, Recalibrator("temperature", Temperature(2.0)))
    assert decide(POLICY, "team", choice(0.95, 0.05)) == "act"
    assert decide(cooler, "team", choice(0.95, 0.05)) == "review"


def test_a_policy_acts_on_exactly_the_share_its_gate_reports() -> None:
    rows = [*drawn(400, 1, name="team"), *drawn(400, 2, ANGRY, name="angry")]
    report = gates(rows, TargetAccuracy(0.85))
    policy = Policy.of(report, model="m")
    for gate in report.questions:
        mine = [row for row in rows if row.example.question_name == gate.question]
        acted = sum(row.answer is not None and decide(policy, gate.question, row.answer) == "act" for row in mine)
        assert acted == sum(round((cut.coverage.value or 0) * cut.count) for cut in gate.cuts)


@pytest.mark.parametrize("promised", [True, False])
def test_it_comes_back_from_json_as_it_was(promised: bool) -> None:
    rows = drawn(300, 1)
    map = Recalibrator("temperature", Temperature(1.5))
    policy = Policy.of(guaranteed_gates(rows) if promised else gates(rows, TargetAccuracy(0.8)), recalibration=map)
    text = json.dumps(policy.to_dict(), allow_nan=False)
    assert Policy.from_dict(json.loads(text)) == policy


@pytest.mark.parametrize(
    ("question", "answer", "reason"),
    [
        ("team", choice(0.95, 0.05), None),
        ("team", None, "no answer came back"),
        ("team", choice(0.5, 0.5), "two answers share the top probability"),
        ("team", choice(0.8, 0.2), "below the threshold"),
        ("team", choice(0.8, 0.2, names=("x", "y")), "the policy measured other answers"),
        ("angry", choice(0.95, 0.05), "the policy measured a question of another type"),
        ("never", choice(0.95, 0.05), "no threshold could be set"),
        ("unknown", choice(0.95, 0.05), "the policy does not know this question"),
    ],
)
def test_a_review_says_why(question: str, answer: Answer | None, reason: str | None) -> None:
    found = ruling(POLICY, question, answer)
    assert (found.decision, found.reason) == ("review" if reason else "act", reason)


def test_rulings_are_counted_by_reason() -> None:
    answers = [choice(0.95, 0.05), choice(0.6, 0.4), choice(0.7, 0.3), None]
    found = counted(ruling(POLICY, "team", answer) for answer in answers)
    reasons = {"below the threshold": 2, "no answer came back": 1}
    assert found == {"act": 1, "review": 3, "reasons": reasons}


def test_a_pooled_policy_knows_every_question_of_its_type() -> None:
    rows = [row for n in range(100) for row in drawn(3, n, name=f"question {n}")]
    rows = [replace(row, example=replace(row.example, state=f"state {at}")) for at, row in enumerate(rows)]
    alone, pooled = gates(rows, TargetAccuracy(0.85)), gates(rows, TargetAccuracy(0.85), pooled=True)
    assert {cut.status for gate in alone.questions for cut in gate.cuts} == {"refused"}
    (gate,) = pooled.questions
    assert (gate.pooled, gate.count, gate.cuts[0].status) == (100, 300, "ready")
    policy = Policy.from_dict(json.loads(json.dumps(Policy.of(pooled).to_dict())))
    assert policy == Policy.of(pooled)
    assert decide(policy, "never seen", choice(0.999, 0.001)) == "act"
    assert decide(policy, "never seen", Answer("noul", ("yes", "no"), (0.999, 0.001))) == "review"


def test_a_pooled_gate_is_refused_under_50_and_provisional_under_200() -> None:
    for rows, status in ((49, "refused"), (199, "provisional"), (200, "ready")):
        each = [drawn(1, n, name=f"question {n}")[0] for n in range(rows)]
        each = [replace(row, example=replace(row.example, state=f"state {at}")) for at, row in enumerate(each)]
        assert gates(each, ReviewBudget(0.5), pooled=True).questions[0].cuts[0].status == status
        cut = guaranteed_gates(each, 0.3, pooled=True).questions[0].cuts[0]
        assert cut.status in (status, "unreachable")


def valid() -> dict[str, object]:
    return {
        "version": 1,
        "measure": "top_probability",
        "questions": {"q": {"type": "choice", "thresholds": {"all": 0.9}}},
    }


def test_the_smallest_policy_written_by_hand_can_be_read() -> None:
    policy = Policy.from_dict(valid())
    assert decide(policy, "q", choice(0.9, 0.1)) == "act"


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2},
        {"measure": "confidence"},
        {"questions": []},
        {"questions": {"q": []}},
        {"questions": {"q": {"type": "poem", "thresholds": {}}}},
        {"questions": {"q": {"type": "noul", "thresholds": {"all": 0.9}}}},
        {"questions": {"q": {"type": "choice", "thresholds": {"all": 1.1}}}},
        {"questions": {"q": {"type": "choice", "thresholds": {"all": "0.9"}}}},
        {"questions": {"q": {"type": "choice", "thresholds": {"all": True}}}},
        {"questions": {"q": {"type": "choice", "thresholds": {"all": float("nan")}}}},
        {"questions": {"q": {"type": "choice", "answers": "ab", "thresholds": {}}}},
        {"recalibration": {"version": 9}},
        {"pooled": []},
        {"pooled": {"choice": {"type": "noul", "thresholds": {"all": 0.9}}}},
    ],
)
def test_what_is_no_policy_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(InputError):
        Policy.from_dict(valid() | change)


def test_every_problem_of_a_policy_is_named() -> None:
    bad = {"one": {"type": "poem"}, "two": {"type": "choice", "thresholds": {"yes": 1}}}
    with pytest.raises(InputError) as caught:
        Policy.from_dict(valid() | {"questions": bad})
    assert [problem.column for problem in caught.value.problems] == ["questions.one", "questions.two"]
