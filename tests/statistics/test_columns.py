"""The arrays say of every outcome what its Answer says, whatever the mix of types, failures and ties."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clef.decisions.examples import Outcome
from clef.decisions.questions import Choice, Question
from clef.statistics.columns import as_columns, confidence
from tests.statistics.making import ANGRY, PAIR, TEAM, URGENT, outcome, steady

QUESTIONS: list[Question] = [TEAM, PAIR, ANGRY, URGENT, Choice("One?", ["only"])]


@st.composite
def any_outcome(draw: st.DrawFn) -> Outcome:
    question = draw(st.sampled_from(QUESTIONS))
    size = len(question.answers)
    label = draw(st.none() | st.integers(0, size - 1))
    if draw(st.integers(0, 5)) == 0:
        return outcome(None, label, question)
    weights = draw(st.lists(st.integers(0, 4), min_size=size, max_size=size).filter(any))
    return outcome([weight / sum(weights) for weight in weights], label, question, row=draw(st.integers(2, 9)))


@steady
@given(st.lists(any_outcome(), max_size=25))
def test_every_entry_is_what_the_answer_says(outcomes: list[Outcome]) -> None:
    columns = as_columns(outcomes)
    sure = confidence(columns)
    for place, one in enumerate(outcomes):
        assert columns.names[columns.question[place]] == one.example.question_name
        if one.answer is None:
            assert (columns.predicted[place], columns.tie[place], math.isnan(sure[place])) == (-1, False, True)
            continue
        assert columns.predicted[place] == one.answer.top
        assert columns.top[place] == one.answer.top_probability
        assert columns.tie[place] == one.answer.tie
        assert columns.correct[place] == bool(one.correct)
        expected = one.answer.confidence
        assert math.isnan(sure[place]) if expected is None else sure[place] == pytest.approx(expected, abs=1e-12)


@steady
@given(st.lists(any_outcome(), max_size=25))
def test_a_part_is_the_same_as_the_columns_of_the_part(outcomes: list[Outcome]) -> None:
    columns = as_columns(outcomes)
    for name, part in zip(columns.names, columns.by_question(), strict=True):
        alone = as_columns([one for one in outcomes if one.example.question_name == name])
        assert part.flat.tolist() == alone.flat.tolist()
        assert part.label.tolist() == alone.label.tolist()
        assert part.judged.label_probability.tolist() == alone.judged.label_probability.tolist()
        classes = [part.class_names[place] for place in part.judged.label_class]
        judged = [one.example for one in outcomes if one.correct is not None and one.example.question_name == name]
        assert classes == [one.question.answers[one.label] for one in judged if one.label is not None]


def test_rows_share_a_state_when_text_and_images_are_equal_and_keys_in_any_order() -> None:
    states = [{"a": 1, "b": 2}, {"b": 2, "a": 1}, '{"a": 1, "b": 2}', "x", "x"]
    columns = as_columns([outcome((0.6, 0.4), 0, state=state) for state in states])
    assert columns.state.tolist() == [0, 0, 1, 2, 2]


def test_long_states_and_images_are_told_apart_and_outcomes_may_stream_by() -> None:
    long = "x" * 5000
    rows = [outcome((0.6, 0.4), 0, state=state) for state in (long, long + "y", long, "\ud800" * 99)]
    pictured = replace(rows[0], example=replace(rows[0].example, images=("data:,a",)))
    assert as_columns(iter([*rows, pictured])).state.tolist() == [0, 1, 0, 2, 3]


def test_a_class_is_an_answer_by_name_wherever_it_stands_in_the_options() -> None:
    turned = Choice("Which one?", ["b", "a"])
    columns = as_columns([outcome((0.9, 0.1), 0), outcome((0.1, 0.9), 1, turned)]).judged
    assert len(set(columns.label_class.tolist())) == 1
    assert columns.class_names == ("a", "b")


def test_other_probabilities_make_other_predictions() -> None:
    columns = as_columns([outcome((0.9, 0.1), 0)]).with_probabilities(np.array([0.2, 0.8]))
    assert (columns.predicted.tolist(), columns.top.tolist()) == ([1], [0.8])
