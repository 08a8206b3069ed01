"""Slices: who is in them, and that looking at many is allowed for."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import false_discovery_control, fisher_exact

from clef.decisions.examples import Outcome
from clef.statistics.slices import benjamini_hochberg, slices
from tests.statistics.making import each, outcome, steady


def rows(column: str, right: dict[str, tuple[int, int]]) -> list[Outcome]:
    found: list[Outcome] = []
    for value, (correct, count) in right.items():
        for at in range(count):
            label = 0 if at < correct else 1
            found.append(outcome((0.9, 0.1), label, row=len(found) + 2, extra={column: value}))
    return found


@steady
@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_adjusted_as_scipy_does(p_values: list[float]) -> None:
    assert benjamini_hochberg(p_values) == pytest.approx(false_discovery_control(p_values).tolist(), abs=1e-12)


def test_a_bad_slice_is_found_and_tested_against_all_other_rows() -> None:
    found = slices(rows("lang", {"en": (180, 200), "de": (60, 100), "fr": (90, 100)}))
    by_value = {one.value: one for one in found.slices}
    assert by_value["de"].different
    expected = fisher_exact([[60, 40], [270, 30]]).pvalue
    assert by_value["de"].p == pytest.approx(expected)
    assert by_value["de"].rate.value == 0.6


def test_small_slices_are_shown_and_not_tested() -> None:
    found = slices(rows("lang", {"en": (90, 100), "de": (0, 19)}))
    assert [(one.rate.count, one.p, one.different) for one in found.slices if one.value == "de"] == [(19, None, False)]


def test_denominators_stand_beside_every_slice() -> None:
    given_rows = [
        outcome((0.5, 0.5), 0, row=2, extra={"x": "a"}),
        outcome(None, 0, row=3, extra={"x": "a"}),
        outcome((0.9, 0.1), None, row=4, extra={"x": "a"}),
        outcome((0.9, 0.1), 0, row=5, extra={"x": "b"}),
        outcome((0.9, 0.1), 0, row=6),
    ]
    first, second = slices(given_rows).slices
    assert (first.rate.count, first.failed, first.unlabelled, first.ties) == (1, 1, 1, 1)
    assert second.rate.count == 1


def test_a_column_of_texts_makes_no_slices_and_says_so() -> None:
    found = slices([outcome((0.9, 0.1), 0, row=at, extra={"id": str(at), "all": "x"}) for at in range(2, 70)])
    assert found.slices == ()
    assert set(found.skipped) == {"id", "all"}


def test_rows_that_share_a_state_do_not_make_a_difference_look_surer() -> None:
    found = []
    for state in range(60):
        label = int(state % 30 < (15 if state < 30 else 8))  # wrong in 15 of the first 30 states, in 8 of the others
        for copy in range(10):
            extra = {"half": "first" if state < 30 else "second"}
            found.append(outcome((0.9, 0.1), label, state=f"s{state}", row=state * 10 + copy + 2, extra=extra))
    once, ten_times = slices(found[::10]).slices[0].p, slices(found).slices[0].p
    assert once == pytest.approx(fisher_exact([[15, 15], [22, 8]]).pvalue)
    assert ten_times is not None
    assert 0.03 < ten_times < 0.2
    assert fisher_exact([[150, 150], [220, 80]]).pvalue < 1e-6


def test_a_stream_of_outcomes_is_enough_and_late_columns_count_from_where_they_come() -> None:
    rows = each(*[([0.9, 0.1], at % 2) for at in range(60)])
    rows = [
        replace(row, example=replace(row.example, extra={"late": "xy"[at % 2]} if at > 20 else {}))
        for at, row in enumerate(rows)
    ]
    found = slices(iter(rows))
    assert [(one.value, one.rate.count) for one in found.slices] == [("y", 20), ("x", 19)]
    assert found == slices(rows, ["late"])
