"""Brier, log loss and calibration error: scikit-learn as oracle, definitions written out, and known traps."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import brier_score_loss, log_loss

from clef.decisions.questions import Choice
from clef.statistics.binning import calibration_error, equal_mass, equal_width, error_value
from clef.statistics.calibration import calibration, calibrations
from clef.statistics.columns import as_columns
from clef.statistics.summary import summarise
from tests.statistics.making import ANGRY, PAIR, TEAM, drawn, each, outcome, steady

ANSWERS = st.lists(st.integers(0, 9), min_size=3, max_size=3).filter(any).map(lambda w: [one / sum(w) for one in w])
ROWS = st.lists(st.tuples(ANSWERS, st.integers(0, 2)), min_size=1, max_size=40)


@steady
@given(ROWS)
def test_brier_and_log_loss_are_scikit_learns(rows: list[tuple[list[float], int]]) -> None:
    found = calibration(each(*rows, question=TEAM))
    probabilities = np.array([answer for answer, _ in rows])
    labels = [label for _, label in rows]
    expected = brier_score_loss(labels, probabilities, labels=[0, 1, 2], scale_by_half=False)
    assert found.brier.value == pytest.approx(expected)
    clipped = np.maximum(probabilities, 1e-15)
    assert found.log_loss.value == pytest.approx(
        log_loss(labels, clipped / clipped.sum(axis=1)[:, None], labels=[0, 1, 2])
    )


@steady
@given(ROWS)
def test_the_decomposition_adds_up_to_the_brier_score(rows: list[tuple[list[float], int]]) -> None:
    found = calibration(each(*rows, question=TEAM))
    terms = found.decomposition
    assert terms is not None
    assert terms.reliability - terms.resolution + terms.uncertainty == pytest.approx(found.brier.value, abs=1e-9)
    shares = np.bincount([label for _, label in rows], minlength=3) / len(rows)
    assert terms.uncertainty == pytest.approx((shares * (1 - shares)).sum())


@steady
@given(ROWS, st.integers(1, 20))
def test_the_error_is_what_its_definition_says(rows: list[tuple[list[float], int]], bins: int) -> None:
    judged = as_columns(each(*rows, question=TEAM)).judged
    found = calibration_error(judged, "equal width", bins)
    held: dict[int, list[tuple[float, bool]]] = {}
    for answer, label in rows:
        top = max(answer)
        place = sum(top >= edge / bins for edge in range(1, bins))
        held.setdefault(place, []).append((top, answer.index(top) == label))
    gaps = [abs(sum(p - right for p, right in inside)) for inside in held.values()]
    assert found.value == pytest.approx(sum(gaps) / len(rows))
    assert found.value == pytest.approx(error_value(judged, bins))
    assert sum(one.rate.count for one in found.bins) == len(rows)


@steady
@given(st.lists(st.floats(0, 1), min_size=1, max_size=200), st.integers(1, 20))
def test_no_row_falls_out_and_equal_ones_stay_together(values: list[float], bins: int) -> None:
    for cut in (equal_width, equal_mass):
        place = cut(np.array(values), bins)
        assert len(place) == len(values)
        assert 0 <= place.min() <= place.max() <= bins - 1
        together: dict[float, set[int]] = {}
        for value, at in zip(values, place.tolist(), strict=True):
            together.setdefault(value, set()).add(at)
        assert all(len(found) == 1 for found in together.values())


def test_equal_mass_is_equal_where_values_allow_it() -> None:
    counts = np.bincount(equal_mass(np.random.default_rng(0).random(1500), 15))
    assert counts.tolist() == [100] * 15


def test_both_ends_and_edges_of_ten_bins_are_counted_once() -> None:
    values = [0.0, 0.1, 0.2, 0.3, 0.6, 0.7, 1.0, 1.0]
    assert np.bincount(equal_width(np.array(values), 10), minlength=10).sum() == 8
    assert equal_width(np.array([0.3, 0.1 + 0.2]), 10).tolist() == [3, 3]
    assert equal_width(np.array([1.0, 0.0]), 10).tolist() == [9, 0]


def test_a_calibrated_answer_has_no_error_whatever_its_confidence() -> None:
    rows = each(*[([0.75, 0.25], 0)] * 75, *[([0.75, 0.25], 1)] * 25)
    error = calibration(rows).error
    assert error is not None
    assert error.value == pytest.approx(0)
    assert not error.above_noise
    four = Choice("Which?", ["a", "b", "c", "d"])
    banded = summarise(each(([0.4, 0.2, 0.2, 0.2], 0), question=four)).bands
    assert [band.low for band in banded if band.rate.count] == [0.0]


def test_probabilities_of_two_decimals_do_not_make_the_error_vanish() -> None:
    rows = each(*[([0.9, 0.1], 0)] * 120, *[([0.9, 0.1], 1)] * 80)
    found = calibration(rows)
    assert found.error is not None
    assert found.error_equal_mass is not None
    assert found.error.value == found.error_equal_mass.value == pytest.approx(0.3)
    assert found.error.above_noise


def test_a_label_with_no_probability_is_clipped_and_counted() -> None:
    found = calibration(each(([0.0, 1.0], 0), ([0.8, 0.2], 0), ([0.3, 0.7], 1), question=ANGRY))
    assert found.clipped == 1
    assert found.log_loss.value == pytest.approx((-math.log(1e-15) - math.log(0.8) - math.log(0.7)) / 3)


def test_a_model_that_is_too_sure_is_above_the_noise_and_a_calibrated_one_is_not() -> None:
    good, sure = calibration(drawn(2000, 1)).error, calibration(drawn(2000, 1, sharpness=3)).error
    assert good is not None
    assert sure is not None
    assert not good.above_noise
    assert sure.above_noise
    assert good.interval is not None
    assert good.interval.low == 0
    assert good.corrected is not None
    assert good.corrected < good.value
    assert sure.interval is not None
    assert sure.interval.low < sure.value
    assert all(one.gap > 0 for one in sure.bins if one.rate.count > 100)


def test_the_noise_floor_is_what_a_calibrated_model_shows() -> None:
    shown = [error_value(as_columns(drawn(400, seed)).judged) for seed in range(60)]
    error = calibration(drawn(400, 99)).error
    assert error is not None
    assert np.mean(shown) == pytest.approx(error.noise_floor, rel=0.1)


def test_questions_are_apart_and_failures_are_counted() -> None:
    rows = [*each(([0.9, 0.1], 0)), outcome(None, 0, row=9), outcome([0.2, 0.8], None, ANGRY, row=10)]
    first, second = calibrations(rows)
    assert (first.question, first.count, first.failed) == (PAIR.instructions, 1, 1)
    assert (second.count, second.unlabelled, second.error, second.brier.value) == (0, 1, None, None)
    assert second.to_dict()["reason"]


def test_rows_of_one_state_widen_the_interval() -> None:
    alone = each(*[([0.8, 0.2], int(at % 4 == 0)) for at in range(120)])
    shared = [outcome([0.8, 0.2], int(at // 10 % 4 == 0), state=f"s{at // 10}", row=at + 2) for at in range(120)]
    narrow, wide = calibration(alone).brier.interval, calibration(shared).brier.interval
    assert narrow is not None
    assert wide is not None
    assert wide.high - wide.low > 2 * (narrow.high - narrow.low)
