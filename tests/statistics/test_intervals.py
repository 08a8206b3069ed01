"""Intervals of shares, with scipy as oracle."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from clef.statistics.intervals import Rate, clopper_pearson, paired_difference, undefined, wilson
from tests.statistics.making import steady


@steady
@given(st.integers(1, 5000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_as_scipy_has_it(counts: tuple[int, int]) -> None:
    correct, count = counts
    expected = binomtest(correct, count).proportion_ci(0.95, method="wilson")
    assert wilson(correct, count) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_ten_of_ten_is_not_certain() -> None:
    low, high = wilson(10, 10)
    assert (round(low, 3), high) == (0.722, 1.0)
    low, high = wilson(0, 10)
    assert (low, round(high, 3)) == (0.0, 0.278)


def test_nothing_counted_is_no_data_and_no_nan() -> None:
    assert Rate(0, 0).to_dict() == {"correct": 0, "count": 0, "accuracy": None, "low": None, "high": None}


@steady
@given(st.integers(1, 3000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_exact_interval_is_as_scipy_has_it(counts: tuple[int, int]) -> None:
    correct, count = counts
    expected = binomtest(correct, count).proportion_ci(0.95, method="exact")
    assert clopper_pearson(correct, count) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_fewer_independent_rows_make_a_wider_interval_around_the_same_share() -> None:
    alone, shared = Rate(80, 100), Rate(80, 100, effective=25)
    assert alone.interval is not None
    assert shared.interval == pytest.approx(wilson(20, 25))
    assert shared.exact == pytest.approx(clopper_pearson(20, 25))
    assert shared.to_dict()["effective"] == 25
    assert Rate(100, 100, effective=33.3).interval == pytest.approx(wilson(33.3, 33.3))


def test_two_classifiers_that_never_differ_may_still_differ_a_little() -> None:
    interval = paired_difference(0, 0, 50)
    assert interval.low < 0 < interval.high
    assert not interval.excludes_zero
    assert paired_difference(30, 2, 100).low > 0
    # worked by hand: cells 12.5 and 3.5 of 102, difference 9/102, variance (16 - 81/102) / 102²
    assert paired_difference(12, 3, 100).low == pytest.approx((9 - 1.959964 * (16 - 81 / 102) ** 0.5) / 102, abs=1e-6)


def test_an_estimate_without_a_value_says_why() -> None:
    assert undefined("nothing to do").to_dict() == {
        "value": None,
        "low": None,
        "high": None,
        "count": 0,
        "reason": "nothing to do",
    }
