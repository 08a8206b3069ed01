"""The numbers of a run: what is counted, what is kept out, and that nothing falls between two bands."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clef.decisions.answers import Answer
from clef.decisions.examples import Example, Failure, Outcome
from clef.decisions.questions import Choice, Noul, Question, Score
from clef.statistics.summary import BAND_EDGES, band_of, summarise

TEAM = Choice("Which team?", ["a", "b"])


def outcome(
    probabilities: tuple[float, ...] | None, label: int | None, question: Question = TEAM, name: str = "Which team?"
) -> Outcome:
    example = Example("text", question, label, row=2, question_name=name)
    if probabilities is None:
        return Outcome(example, None, Failure("too_long", "too long: 9 of 8 tokens"))
    return Outcome(example, Answer(question.type, question.answers, probabilities))


def test_failures_are_not_wrong_answers_and_both_denominators_are_there() -> None:
    summary = summarise([outcome((0.9, 0.1), 0)] * 6 + [outcome(None, 0)] * 4).to_dict()
    assert (summary["answered"], summary["failed"]) == (6, 4)
    assert summary["accuracy"] == 1.0
    assert summary["accuracy_with_failures"] == 0.6


def test_unlabelled_rows_are_counted_and_in_no_accuracy() -> None:
    summary = summarise([outcome((0.9, 0.1), 0), outcome((0.9, 0.1), None), outcome(None, None)])
    assert (summary.unlabelled, summary.overall.count, summary.failed) == (2, 1, 0)
    assert summary.to_dict()["failed"] == 1


def test_micro_and_mean_of_questions_are_both_there() -> None:
    first = [outcome((0.9, 0.1), 0, name="A")] * 81 + [outcome((0.9, 0.1), 1, name="A")] * 9
    second = [outcome((0.9, 0.1), 0, name="B")] + [outcome((0.9, 0.1), 1, name="B")] * 9
    summary = summarise(first + second)
    assert summary.overall.value == pytest.approx(0.82)
    assert summary.mean_of_questions == pytest.approx(0.5)
    assert [question.name for question in summary.questions] == ["A", "B"]


def test_always_no_stands_beside_ninety_percent() -> None:
    angry = Noul("Angry?")
    rows = [outcome((0.1, 0.9), 1, angry)] * 90 + [outcome((0.1, 0.9), 0, angry)] * 10
    question = summarise(rows).questions[0]
    assert question.rate.value == question.majority_share == pytest.approx(0.9)
    assert question.majority == "no"
    assert question.chance == pytest.approx(0.5)


def test_a_score_is_right_when_its_most_likely_level_is_the_label() -> None:
    scale = Score("How?", ["low", "mid", "high"])
    assert summarise([outcome((0.4, 0.3, 0.3), 0, scale)]).overall.value == 1.0
    assert summarise([outcome((0.4, 0.3, 0.3), 1, scale)]).overall.value == 0.0


def test_ties_are_counted() -> None:
    assert summarise([outcome((0.5, 0.5), 0), outcome((0.6, 0.4), 0), outcome((0.5, 0.5), None)]).ties == 2


def test_a_band_is_of_the_top_probability_not_of_the_confidence() -> None:
    summary = summarise([outcome((0.75, 0.25), 0)])
    assert [(band.low, band.rate.count) for band in summary.bands if band.rate.count] == [(0.7, 1)]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=50))
def test_every_answered_row_is_in_exactly_one_band(tops: list[float]) -> None:
    summary = summarise([outcome((p, 1 - p), 0) for p in tops])
    assert sum(band.rate.count for band in summary.bands) == summary.overall.count == len(tops)


@pytest.mark.parametrize(("probability", "low"), [(0.0, 0.0), (0.5, 0.5), (0.1 + 0.2, 0.0), (0.95, 0.95), (1.0, 0.95)])
def test_edges_belong_to_the_upper_band_and_one_to_the_last(probability: float, low: float) -> None:
    assert BAND_EDGES[band_of(probability)] == low


def test_no_rows_give_nulls_that_are_json() -> None:
    summary = summarise([]).to_dict()
    assert json.loads(json.dumps(summary, allow_nan=False))["accuracy"] is None
    assert summary["mean_of_questions"] is None
