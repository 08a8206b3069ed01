"""What a score's answers are worth, with scikit-learn and definitions written out as oracles."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from clef.statistics.columns import as_columns
from clef.statistics.ordinal import ordinal, ranked_probability_scores
from tests.statistics.making import PAIR, URGENT, drawn, each, steady

ANSWERS = st.lists(st.integers(1, 9), min_size=4, max_size=4).map(lambda w: [one / sum(w) for one in w])


@steady
@given(st.lists(st.tuples(ANSWERS, st.integers(0, 3)), min_size=1, max_size=30))
def test_exact_near_error_and_ranked_score_by_their_definitions(rows: list[tuple[list[float], int]]) -> None:
    found = ordinal(each(*rows, question=URGENT))[0]
    level = [max(range(4), key=p.__getitem__) for p, _ in rows]
    assert found.exact.correct == sum(at == label for at, (_, label) in zip(level, rows, strict=True))
    assert found.within_one.correct == sum(abs(at - label) <= 1 for at, (_, label) in zip(level, rows, strict=True))
    errors = [abs(sum(k * p for k, p in enumerate(answer)) - label) for answer, label in rows]
    assert found.mean_error.value == pytest.approx(np.mean(errors))
    scores = [
        sum((sum(answer[: k + 1]) - (k >= label)) ** 2 for k in range(3)) / 3  # the last level adds nothing
        for answer, label in rows
    ]
    assert found.ranked_probability_score.value == pytest.approx(np.mean(scores))


@steady
@given(st.lists(st.tuples(ANSWERS, st.integers(0, 3)), min_size=2, max_size=30))
def test_kappa_is_scikit_learns_where_it_says_something(rows: list[tuple[list[float], int]]) -> None:
    found = ordinal(each(*rows, question=URGENT))[0].kappa
    labels = [label for _, label in rows]
    level = [max(range(4), key=p.__getitem__) for p, _ in rows]
    if len(set(labels)) == 1 or len(set(level)) == 1:
        assert found.value is None
        assert found.reason is not None
        assert "same level" in found.reason
    else:
        assert found.value == pytest.approx(cohen_kappa_score(labels, level, weights="quadratic", labels=range(4)))


def test_the_ranked_score_knows_near_from_far() -> None:
    near, far = each(([0, 1.0, 0, 0], 0), ([0, 0, 0, 1.0], 0), question=URGENT)
    assert ranked_probability_scores(as_columns([near, far])).tolist() == pytest.approx([1 / 3, 1])


def test_only_scores_are_ordinal() -> None:
    assert ordinal(each(([0.6, 0.4], 0), question=PAIR)) == ()


def test_intervals_hold_the_value() -> None:
    found = ordinal(drawn(300, 4, URGENT))[0]
    for estimate in (found.mean_error, found.kappa, found.ranked_probability_score):
        assert estimate.interval is not None
        assert estimate.value is not None
        assert estimate.interval.low < estimate.value < estimate.interval.high
