"""How sure is it: every measure against values worked out by hand, and properties that must hold for any answer."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clef.decisions.answers import Answer, choice_confidence, score_confidence


def choice(*probabilities: float) -> Answer:
    return Answer("choice", tuple("abcdefghij"[: len(probabilities)]), probabilities)


def noul(true: float) -> Answer:
    return Answer("noul", ("yes", "no"), (true, 1 - true))


def score(*probabilities: float) -> Answer:
    return Answer("score", tuple(f"level {n}" for n in range(len(probabilities))), probabilities)


distributions = st.lists(st.floats(0.001, 1), min_size=2, max_size=20).map(lambda ws: [w / sum(ws) for w in ws])


@pytest.mark.parametrize(("count", "expected"), [(2, 0.5), (3, 0.625), (10, 0.75 - 0.25 / 9)])
def test_confidence_of_the_same_probability_depends_on_the_number_of_options(count: int, expected: float) -> None:
    rest = [0.25 / (count - 1)] * (count - 1)
    assert choice_confidence([0.75, *rest]) == pytest.approx(expected)


def test_documented_example_of_typesafe() -> None:
    assert choice_confidence([0.88, 0.12, 0.0]) == pytest.approx(0.82)


def test_score_confidence_is_that_of_llama_cpp() -> None:
    # published by a llama.cpp server for these probabilities
    assert score_confidence([0.143019771315393, 0.7410970851201854, 0.11588314356442159]) == pytest.approx(
        0.6116456276802781
    )


def test_one_option_is_certain() -> None:
    assert choice(1.0).confidence == 1.0
    assert choice(1.0).margin == 1.0
    assert not choice(1.0).tie


def test_noul_has_no_confidence_and_ranks_by_its_distance_from_a_half() -> None:
    assert noul(0.9).confidence is None
    assert noul(0.9).rank == pytest.approx(0.8)
    assert noul(0.1).rank == pytest.approx(0.8)
    assert noul(0.1).prediction == "no"


def test_noul_at_a_half_is_yes_and_a_tie() -> None:
    assert noul(0.5).prediction == "yes"
    assert noul(0.5).tie
    assert noul(0.5).rank == 0


def test_of_two_equal_options_the_first_in_the_users_order_is_predicted_and_it_is_a_tie() -> None:
    answer = Answer("choice", ("Z", "a"), (0.5, 0.5))
    assert (answer.prediction, answer.tie, answer.margin) == ("Z", True, 0.0)


def test_expected_level_and_most_likely_level_may_differ() -> None:
    answer = score(0.4, 0.0, 0.3, 0.3)
    assert answer.score == pytest.approx(1.5)
    assert answer.level == 0
    assert answer.prediction == "level 0"
    assert choice(0.4, 0.6).score is None
    assert choice(0.4, 0.6).level is None


def test_ranked_keeps_the_users_order_among_equals() -> None:
    assert [name for name, _ in choice(0.2, 0.4, 0.4).ranked()] == ["b", "c", "a"]


@given(distributions)
def test_measures_stay_in_their_ranges(probabilities: list[float]) -> None:
    for confidence in (choice_confidence(probabilities), score_confidence(probabilities)):
        assert 0 <= confidence <= 1
    answer = Answer("choice", tuple(map(str, range(len(probabilities)))), tuple(probabilities))
    assert 0 <= answer.margin <= 1
    assert -1e-12 <= answer.entropy <= math.log(len(probabilities)) + 1e-9


@given(st.integers(2, 10))
def test_an_even_distribution_has_no_confidence(count: int) -> None:
    assert choice_confidence([1 / count] * count) == pytest.approx(0)


@given(st.floats(0, 1))
def test_a_noul_ranks_as_a_choice_of_two_would(true: float) -> None:
    assert noul(true).rank == pytest.approx(choice_confidence([true, 1 - true]))
