"""Rates where rows share states: worth no more than their states where these agree, as many as they are where not."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clef.statistics.intervals import Rate, wilson
from clef.statistics.rates import effective_rows, rate, rates
from clef.statistics.resampling import bags, draws_for, percentile_interval, replicates, row_weights, state_sums
from tests.statistics.making import steady


def test_rows_with_a_state_each_are_the_plain_counts() -> None:
    right = np.array([True, False, True, True])
    assert rates(right, np.array([0, 0, 1, 1]), np.arange(4), 3) == (Rate(1, 2), Rate(2, 2), Rate(0, 0))


def test_copies_of_a_row_are_worth_about_one_row() -> None:
    rng = np.random.default_rng(1)
    right = np.repeat(rng.random(200) < 0.7, 5)
    found = rate(right, np.repeat(np.arange(200), 5))
    assert found.count == 1000
    assert found.effective == pytest.approx(200, rel=0.05)


def test_copies_that_are_all_right_count_once_a_state() -> None:
    found = rate(np.ones(40, dtype=bool), np.repeat(np.arange(10), 4))
    assert found.effective == 10
    assert found.interval == pytest.approx(wilson(10, 10))


@steady
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 2), st.integers(0, 5)), min_size=1, max_size=60))
def test_never_worth_more_rows_than_there_are(rows: list[tuple[bool, int, int]]) -> None:
    right, cell, state = (np.array(column) for column in zip(*rows, strict=True))
    worth = effective_rows(right.astype(bool), cell, state, 3)
    counts = np.bincount(cell, minlength=3)
    assert all(np.isnan(one) or 0 < one <= count for one, count in zip(worth, counts, strict=True))


def test_the_closed_form_is_the_variance_of_the_cluster_bootstrap() -> None:
    rng = np.random.default_rng(5)
    state = np.repeat(np.arange(300), 4)
    right = rng.random(1200) < np.repeat(rng.beta(2, 1, 300), 4)
    drawn = replicates(state_sums(state, np.stack([right, np.ones(1200)], axis=1).astype(float)), 4000)
    spread = (drawn[:, 0] / drawn[:, 1]).var()
    share = right.mean()
    found = rate(right, state)
    assert found.effective is not None
    assert share * (1 - share) / found.effective == pytest.approx(spread, rel=0.08)


def test_few_patterns_and_whole_states_are_drawn_from_the_same_distribution() -> None:
    rng = np.random.default_rng(2)
    sums = np.stack([rng.integers(0, 2, 500), np.ones(500)], axis=1).astype(float)
    jittered = sums + np.stack([rng.normal(0, 1e-9, 500), np.zeros(500)], axis=1)  # no two alike: drawn one by one
    fast, slow = replicates(sums, 4000)[:, 0], replicates(jittered, 4000)[:, 0]
    assert fast.mean() == pytest.approx(slow.mean(), rel=0.01)
    assert fast.std() == pytest.approx(slow.std(), rel=0.06)
    assert np.allclose(fast, fast.round())


def test_a_huge_table_draws_the_sums_from_their_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(4)
    sums = np.stack([rng.normal(1, 1, 3000), rng.exponential(1, 3000), np.ones(3000)], axis=1)
    plain = replicates(sums, 3000)
    monkeypatch.setattr("clef.statistics.resampling._NORMAL_FROM", 3000)
    limit = replicates(sums, 3000)
    assert limit.mean(axis=0) == pytest.approx(plain.mean(axis=0), rel=0.002)
    assert limit.std(axis=0)[:2] == pytest.approx(plain.std(axis=0)[:2], rel=0.06)
    assert limit[:, 2] == pytest.approx(3000)
    assert [draws_for(rows, 300) for rows in (0, 1000, 400_000, 10_000_000)] == [300, 300, 100, 50]


def test_a_state_is_in_the_bag_or_out_of_it_with_all_its_rows() -> None:
    state = np.array([0, 1, 0, 2, 1, 3])
    for weights in row_weights(state, 20):
        assert weights[0] == weights[2]
        assert weights[1] == weights[4]
        assert len({*state[weights == 0]} & {*state[weights > 0]}) == 0


def test_a_bag_leaves_out_a_tenth_of_the_states_whole_and_at_least_one() -> None:
    state = np.repeat(np.arange(30), 2)
    for inside in bags(state, 20, 0.1):
        assert len({*state[inside == 0]}) == 3
        assert len({*state[inside == 0]} & {*state[inside == 1]}) == 0
    assert [int((inside == 0).sum()) for inside in bags(np.arange(3), 4, 0.1)] == [1] * 4


def test_no_interval_from_repetitions_that_could_not_measure() -> None:
    assert percentile_interval(np.array([0.1, np.nan])) is None
    assert percentile_interval(np.array([])) is None
