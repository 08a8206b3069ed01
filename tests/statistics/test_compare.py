"""Two runs: paired by what was asked, tested exactly, and called undecided where they are."""

import json
import tracemalloc
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, norm

from clef.decisions.answers import Answer
from clef.decisions.examples import Outcome
from clef.decisions.questions import Choice
from clef.errors import InputError
from clef.statistics.compare import compare, compare_all, holm, sign_flip_p
from clef.statistics.halves import as_half
from clef.statistics.pairing import pair
from clef.statistics.policy import Policy, QuestionPolicy
from tests.statistics.making import PAIR, drawn, each, outcome, steady

RIGHT, WRONG = ([0.8, 0.2], 0), ([0.3, 0.7], 0)


def run(pattern: str) -> list[Outcome]:
    """One outcome a letter: r right, w wrong, f failed, u unlabelled."""
    shapes = {"r": RIGHT, "w": WRONG, "f": (None, 0), "u": ([0.8, 0.2], None)}
    return each(*(shapes[letter] for letter in pattern))


@steady
@given(st.integers(0, 60), st.integers(0, 60))
def test_mcnemar_is_scipys_binomial_test(fixed: int, broken: int) -> None:
    gains = np.array([1] * fixed + [-1] * broken + [0] * 5)
    expected = binomtest(fixed, fixed + broken).pvalue if fixed + broken else 1.0
    assert sign_flip_p(gains, np.arange(len(gains))) == pytest.approx(expected)


@steady
@given(st.lists(st.tuples(st.integers(-1, 1), st.integers(0, 5)), min_size=1, max_size=14))
def test_whole_states_are_exchanged_together(rows: list[tuple[int, int]]) -> None:
    sums: dict[int, int] = {}
    for gain, state in rows:
        sums[state] = sums.get(state, 0) + gain
    totals = [0]
    for value in sums.values():
        totals = [total + sign * value for total in totals for sign in (1, -1)]
    observed = abs(sum(sums.values()))
    expected = sum(abs(total) >= observed for total in totals) / len(totals)
    gains, states = (np.array(column) for column in zip(*rows, strict=True))
    assert sign_flip_p(gains, states) == pytest.approx(expected)


def test_a_large_table_takes_the_fast_way_to_the_same_number() -> None:
    sums = np.concatenate([np.full(6000, 1), np.full(5900, -1), np.full(300, 2), np.full(290, -2)])
    gains, states = [], []
    for state, value in enumerate(sums.tolist()):
        gains += [value // abs(value)] * abs(value)
        states += [state] * abs(value)
    shift, variance = abs(int(sums.sum())), float((sums**2).sum())
    found = sign_flip_p(np.array(gains), np.array(states))
    assert found == pytest.approx(2 * norm.sf((shift - 0.5) / variance**0.5), rel=0.02)


@steady
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_by_its_definition(p_values: list[float]) -> None:
    adjusted = holm(p_values)
    order = sorted(range(len(p_values)), key=lambda at: p_values[at])
    for rank, at in enumerate(order):
        steps = [min(1.0, p_values[before] * (len(p_values) - step)) for step, before in enumerate(order[: rank + 1])]
        assert adjusted[at] == pytest.approx(max(steps))


def test_what_was_fixed_and_broken_is_counted_and_listed_worst_first() -> None:
    found = compare(run("rrwwr"), run("rwrww"))
    assert (found.fixed, found.broken, found.both_wrong, found.both_right) == (1, 2, 1, 1)
    assert [flip.change for flip in found.flips] == ["broken", "broken", "fixed"]
    assert found.accuracy_change.value == pytest.approx(-0.2)
    assert found.verdict.startswith("B is worse than A by 20.0 points (")
    assert found.verdict.endswith("1 fixed, 2 broken, p = 1.00: not decisive.")


def test_a_clear_difference_is_decisive_and_no_difference_is_said_to_be_none() -> None:
    clear = compare(run("w" * 20 + "r" * 80), run("r" * 100), names=("Q4", "Q8"))
    assert clear.decisive
    assert clear.verdict.startswith("Q8 is better than Q4 by 20.0 points (")
    assert "20 fixed, 0 broken, p < 0.001: decisive." in clear.verdict
    same = compare(run("rw" * 10), run("rw" * 10))
    assert same.verdict.startswith("B is right as often as A (")
    assert same.verdict.endswith("0 fixed, 0 broken, p = 1.00: not decisive.")
    assert same.accuracy_change.interval is not None
    assert same.accuracy_change.interval.low < 0 < same.accuracy_change.interval.high


def test_rows_are_paired_by_what_was_asked_not_by_their_number() -> None:
    first = run("rwrwr")
    moved = [
        replace(one, example=replace(one.example, row=99 - place, question_name="renamed"))
        for place, one in enumerate(reversed(first))
    ]
    found = compare(first, moved)
    assert (found.fixed, found.broken, found.both_right, found.both_wrong) == (0, 0, 3, 2)
    assert found.pairs.note == "both runs have the same 5 rows"


def test_different_rows_are_intersected_and_said_or_refused() -> None:
    found = compare(run("rrrr")[:3], run("rrrr")[1:])
    assert (len(found.pairs.first), found.pairs.only_first, found.pairs.only_second) == (2, 1, 1)
    assert found.pairs.note.endswith("left out: 1 only in the first run, 1 only in the second")
    with pytest.raises(InputError, match="different rows"):
        compare(run("rrrr")[:3], run("rrrr")[1:], refuse=True)
    with pytest.raises(InputError, match="no labelled row in common"):
        compare(run("rr"), [outcome([0.8, 0.2], 0, row=50)])


def reworded(outcomes: Sequence[Outcome], text: str) -> list[Outcome]:
    return [
        replace(one, example=replace(one.example, question=replace(one.example.question, instructions=text)))
        for one in outcomes
    ]


def test_two_wordings_of_a_question_are_paired_and_said() -> None:
    found = compare(run("rwrr"), reworded(run("rrrw"), "Which of them?"))
    assert (found.fixed, found.broken, found.both_right, found.pairs.only_first) == (1, 1, 2, 0)
    assert found.pairs.note == "both runs have the same 4 rows; 1 question worded differently"


def test_no_wording_is_guessed_where_two_questions_could_be_meant() -> None:
    two = [*reworded(run("rr"), "Which?"), *reworded(run("rr"), "What else?")]
    with pytest.raises(InputError, match="no labelled row in common"):
        compare(run("rr"), two)


def test_questions_of_one_name_are_the_same_question_in_other_words() -> None:
    def named(outcomes: Sequence[Outcome], name: str) -> list[Outcome]:
        return [replace(one, example=replace(one.example, question_name=name)) for one in outcomes]

    first = [*named(reworded(run("rr"), "Angry?"), "angry"), *named(reworded(run("ww"), "Is it spam?"), "spam")]
    second = [*named(reworded(run("rr"), "Upset?"), "angry"), *named(reworded(run("rr"), "Unwanted?"), "spam")]
    found = compare(first, second)
    assert (found.fixed, found.broken, found.both_right, found.pairs.reworded) == (2, 0, 2, 2)


def test_a_repeated_input_is_paired_once_for_each_time_it_stands_there() -> None:
    twice = [outcome([0.8, 0.2], 0, state="s", row=at) for at in (2, 3)]
    once = [outcome([0.3, 0.7], 0, state="s")]
    pairs = pair(twice, once)
    assert (pairs.first.tolist(), pairs.second.tolist(), pairs.only_first, pairs.only_second) == ([0], [0], 1, 0)


def test_a_label_that_was_corrected_is_left_out_and_counted() -> None:
    before, after = run("rr"), [replace(run("r")[0], example=replace(run("r")[0].example, label=1)), run("rr")[1]]
    found = compare(before, after)
    assert (found.pairs.relabelled, len(found.pairs.first), found.pairs.same_rows) == (1, 1, False)


def test_failures_are_in_no_test_and_stand_beside() -> None:
    found = compare(run("rrru"), run("rffu"))
    assert (found.first.count, found.unanswered, found.pairs.unlabelled) == (1, (0, 2), 1)
    assert [one.to_dict()["accuracy"] for one in found.with_failures] == [1.0, pytest.approx(1 / 3)]
    nothing = compare(run("rr"), run("ff"))
    assert nothing.verdict == "A and B answered no row together: not decisive."
    assert json.loads(json.dumps(nothing.to_dict(), allow_nan=False))["brier_change"]["value"] is None


def test_coverage_and_accuracy_at_a_gate_are_compared() -> None:
    policy = Policy({}, {"Which one?": QuestionPolicy("choice", None, {"all": 0.75})})
    found = compare(
        drawn(400, 1, PAIR), [replace(one, answer=softer(one)) for one in drawn(400, 1, PAIR)], policy=policy
    )
    assert found.coverage_change.interval is not None
    assert found.coverage_change.interval.high < 0
    assert found.gate_accuracy_change.value is not None
    assert found.gate_accuracy_change.value > 0
    assert found.accuracy_change.value == 0
    assert compare(run("rr"), run("rr")).coverage_change.reason == "no gate was given"


def softer(one: Outcome) -> Answer:
    assert one.answer is not None
    return replace(one.answer, probabilities=tuple(0.5 + (p - 0.5) * 0.7 for p in one.answer.probabilities))


def test_several_runs_are_adjusted_for_their_number() -> None:
    runs = {"a": run("w" * 8 + "r" * 40), "b": run("r" * 48), "c": run("r" * 47 + "w")}
    found = compare_all(runs)
    assert [one.names for one in found] == [("a", "b"), ("a", "c"), ("b", "c")]
    assert [one.adjusted_p for one in found] == pytest.approx(holm([one.p for one in found]))
    assert found[0].p <= found[0].adjusted_p  # type: ignore[operator]
    assert "after Holm" in found[0].verdict
    (alone,) = compare_all({"a": runs["a"], "b": runs["b"]})
    assert (alone.adjusted_p, "Holm" in alone.verdict) == (None, False)
    with pytest.raises(InputError):
        compare_all({"a": runs["a"]})


def test_what_is_asked_is_the_same_whatever_row_name_and_label() -> None:
    asked = outcome([0.6, 0.4], 0, row=2, name="x", state="s")
    again = outcome(None, 0, row=9, name="y", state="s")
    turned = outcome([0.6, 0.4], 0, Choice("Which one?", ["b", "a"]), state="s")
    pairs = pair([turned, asked], [again])
    assert (pairs.first.tolist(), pairs.second.tolist(), pairs.only_first) == ([1], [0], 1)


def test_outcomes_may_stream_by_and_none_is_held() -> None:
    def passing(length: int) -> Iterator[Outcome]:
        for at in range(600):
            yield outcome([0.8, 0.2], at % 2, row=at + 2, state=f"{at} {'x' * length}")

    policy = Policy({}, {"Which one?": QuestionPolicy("choice", None, {"all": 0.75})})
    whole = compare(list(passing(3)), list(passing(3)), policy=policy)
    assert compare(as_half(passing(3), policy), as_half(passing(3), policy)).to_dict() == whole.to_dict()
    tracemalloc.start()
    as_half(passing(100_000))
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 600 * 100_000 / 10
