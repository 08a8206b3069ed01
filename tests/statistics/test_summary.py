"""The numbers of a run: what is counted, what is kept out, and that nothing falls between two bands."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clef.decisions.questions import Noul, Score
from clef.statistics.intervals import Rate, wilson
from clef.statistics.summary import BAND_EDGES, band_of, summarise
from tests.statistics.making import ANGRY, PAIR, TEAM, drawn, each, outcome, steady


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


@steady
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


def test_every_class_has_its_rate_and_what_stands_beside_it() -> None:
    rows = each(([0.9, 0.1], 0), ([0.2, 0.8], 0), ([0.5, 0.5], 1), (None, 1), ([0.9, 0.1], None))
    first, second = summarise(rows).questions[0].classes
    assert (first.name, first.rate.correct, first.rate.count) == ("a", 1, 2)
    assert (second.rate.correct, second.rate.count, second.failed, second.ties) == (0, 1, 1, 1)


def test_bands_can_be_on_the_confidence_and_a_noul_has_none() -> None:
    rows = [*each(([0.75, 0.25], 0)), outcome([0.75, 0.25], 0, ANGRY, row=9)]
    on_top, on_confidence = summarise(rows), summarise(rows, bands_on="confidence")
    assert [band.low for band in on_top.bands if band.rate.count] == [0.7]
    assert [(band.low, band.rate.count) for band in on_confidence.bands if band.rate.count] == [(0.5, 1)]
    assert (on_top.unbanded, on_confidence.unbanded, on_confidence.banded_on) == (0, 1, "confidence")


def test_baselines_stand_with_the_difference_and_its_interval() -> None:
    always_no = each(*[([0.1, 0.9], 1)] * 90, *[([0.1, 0.9], 0)] * 10, question=ANGRY)
    found = summarise(always_no)
    for above in (found.above_majority, found.questions[0].above_majority):
        assert above.value == 0
        assert above.interval is not None
        assert above.interval.low < 0 < above.interval.high
    assert found.above_chance.value == pytest.approx(0.4)
    low, high = wilson(90, 100)
    assert found.above_chance.interval is not None
    assert (found.above_chance.interval.low, found.above_chance.interval.high) == pytest.approx((low - 0.5, high - 0.5))
    better = summarise(each(*[([0.9, 0.1], 0)] * 60, *[([0.1, 0.9], 1)] * 60)).above_majority
    assert better.value == pytest.approx(0.5)
    assert better.interval is not None
    assert better.interval.excludes_zero


def test_a_tie_of_majorities_is_the_first_answer_and_options_may_differ_by_row() -> None:
    rows = [*each(([0.9, 0.1], 0), ([0.9, 0.1], 1)), outcome([0.5, 0.3, 0.2], 2, TEAM, row=9, name="Which one?")]
    question = summarise(rows).questions[0]
    assert question.majority == "a"
    assert question.majority_share == pytest.approx(1 / 3)
    assert question.chance == pytest.approx((1 / 2 + 1 / 2 + 1 / 3) / 3)


def test_rows_that_share_a_state_make_every_interval_wider() -> None:
    assert summarise(drawn(400, 1, PAIR)).overall.effective is None
    copies = summarise(
        [outcome((0.9, 0.1), int(at < 10), state=f"s{at}", row=2) for at in range(40) for _ in range(10)]
    )
    assert (copies.states, copies.overall.count) == (40, 400)
    assert copies.overall.effective is not None
    assert copies.overall.effective <= 40
    assert copies.overall.interval is not None
    assert wilson(300, 400)[1] - wilson(300, 400)[0] < copies.overall.interval[1] - copies.overall.interval[0]
    assert copies.questions[0].rate.effective == copies.overall.effective
    assert copies.with_failures.effective == pytest.approx(copies.overall.effective)


def test_the_mean_of_questions_has_an_interval_that_holds_it() -> None:
    rows = [*drawn(200, 1, PAIR, name="x"), *drawn(100, 2, TEAM, name="y")]
    apart = summarise(
        [
            outcome(
                o.answer.probabilities, o.example.label, o.example.question, row=at + 2, name=o.example.question_name
            )
            for at, o in enumerate(rows)
            if o.answer
        ]
    ).question_mean
    together = summarise(rows).question_mean  # both questions about the same states
    for found in (apart, together):
        assert found.value is not None
        assert found.interval is not None
        assert found.interval.low < found.value < found.interval.high
        assert found.interval.high - found.interval.low < 0.2
    certain = summarise([outcome((0.9, 0.1), 0, state="s", row=at + 2, name=f"q{at}") for at in range(6)]).question_mean
    assert certain.interval is not None
    assert certain.interval.low < 0.9


def test_failures_counted_wrong_keep_their_interval() -> None:
    found = summarise(each(*[([0.9, 0.1], 0)] * 6, *[(None, 0)] * 4))
    assert found.with_failures == Rate(6, 10)
    assert found.questions[0].with_failures == Rate(6, 10)
    shown = found.to_dict()["with_failures"]
    assert isinstance(shown, dict)
    assert (shown["low"], shown["high"]) == pytest.approx(wilson(6, 10))
