"""Wilson intervals, with scipy as oracle."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from clef.statistics.intervals import Rate, wilson


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
