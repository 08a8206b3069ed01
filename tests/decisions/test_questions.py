"""What may be asked, and that everything wrong with a request is named at once."""

from typing import Any

import pytest

from clef.decisions.questions import (
    MAX_DEPTH,
    Choice,
    Noul,
    Option,
    Score,
    fold,
    problems_in,
    read_question,
    read_questions,
    state_problems,
    too_deep,
)
from clef.errors import InputError


def codes(error: InputError) -> list[tuple[str, str | None]]:
    return [(problem.code, problem.column) for problem in error.problems]


def test_options_may_be_names_descriptions_or_options() -> None:
    expected = (Option("billing", "payments"), Option("technical"))
    assert Choice("Which?", {"billing": "payments", "technical": None}).options == expected
    assert Choice("Which?", [Option("billing", "payments"), "technical"]).options == expected


def test_a_question_without_type_is_a_choice() -> None:
    question = read_question({"question": "Which?", "answers": ["a", {"answer": "b", "description": "the second"}]})
    assert question == Choice("Which?", ["a", Option("b", "the second")])


def test_a_noul_with_meanings() -> None:
    question = read_question({"question": "Angry?", "type": "noul", "true": "shouts", "false": ""})
    assert question == Noul("Angry?", true="shouts", false=None)


def test_a_score_with_structured_levels() -> None:
    question = read_question({"question": "How?", "type": "score", "levels": ["low", {"label": "high"}]})
    assert question == Score("How?", ["low", {"label": "high"}])
    assert question.answers == ("low", '{"label": "high"}')


def test_structured_instructions_are_kept() -> None:
    asked = {"ask": "Which?", "note": ["short"]}
    assert read_question({"question": asked, "answers": ["a", "b"]}).instructions == asked


@pytest.mark.parametrize(
    ("raw", "code", "column"),
    [
        ({"question": "", "answers": ["a", "b"]}, "empty_text", "q.question"),
        ({"question": "   ", "answers": ["a", "b"]}, "empty_text", "q.question"),
        ({"answers": ["a", "b"]}, "empty_text", "q.question"),
        ({"question": 3, "answers": ["a", "b"]}, "text_type", "q.question"),
        ({"question": "?"}, "not_a_list", "q.answers"),
        ({"question": "?", "answers": "a|b"}, "not_a_list", "q.answers"),
        ({"question": "?", "answers": []}, "no_options", "q.answers"),
        ({"question": "?", "answers": ["a"]}, "one_option", "q.answers"),
        ({"question": "?", "answers": ["a", "a"]}, "duplicate_options", "q.answers"),
        ({"question": "?", "answers": ["a", " A "]}, "duplicate_options", "q.answers"),
        ({"question": "?", "answers": ["café", "cafe\u0301"]}, "duplicate_options", "q.answers"),
        ({"question": "?", "answers": ["a", ""]}, "empty_option", "q.answers[1]"),
        ({"question": "?", "answers": ["a", 2]}, "answer_type", "q.answers[1]"),
        ({"question": "?", "answers": [str(n) for n in range(256)]}, "too_many_options", "q.answers"),
        ({"question": "?", "type": "box", "answers": ["a"]}, "unknown_type", "q.type"),
        ({"question": "?", "type": ["noul"]}, "unknown_type", "q.type"),
        ({"question": "?", "type": "score", "levels": ["one"]}, "level_count", "q.levels"),
        ({"question": "?", "type": "score", "levels": [str(n) for n in range(11)]}, "level_count", "q.levels"),
        ({"question": "?", "type": "score", "levels": ["low", None]}, "empty_text", "q.levels[1]"),
        ({"question": "?", "type": "score", "levels": ["low", "LOW"]}, "duplicate_options", "q.levels"),
        ({"question": "?", "type": "noul", "true": 1}, "text_type", "q.true"),
        ("Which?", "not_an_object", "q"),
    ],
)
def test_what_cannot_be_asked_is_named_with_its_field(raw: Any, code: str, column: str) -> None:
    with pytest.raises(InputError) as caught:
        read_question(raw, "q")
    assert (code, column) in codes(caught.value)


def test_255_options_are_possible() -> None:
    assert len(read_question({"question": "?", "answers": [str(n) for n in range(255)]}).answers) == 255


def test_every_problem_of_every_question_comes_at_once() -> None:
    with pytest.raises(InputError) as caught:
        read_questions([{"question": "", "answers": ["a", 1]}, {"question": "fine", "answers": ["a", "b"]}, 7])
    assert codes(caught.value) == [
        ("empty_text", "questions[0].question"),
        ("answer_type", "questions[0].answers[1]"),
        ("not_an_object", "questions[2]"),
    ]


@pytest.mark.parametrize("raw", [None, [], {}, "text"])
def test_no_questions_is_a_problem(raw: Any) -> None:
    with pytest.raises(InputError):
        read_questions(raw)


def test_a_server_may_hold_a_single_option_but_a_person_did_not_mean_it() -> None:
    assert [problem.code for problem in problems_in(Choice("?", ["only"]))] == ["one_option"]
    assert problems_in(Choice("?", ["a", "b"])) == []


def test_options_that_look_alike_but_differ_stay_two() -> None:
    assert problems_in(Choice("?", ["x²", "x2"])) == []


def test_a_noul_without_any_text_is_refused() -> None:
    with pytest.raises(InputError):
        Noul(None)
    assert Noul(None, true="it rains").answers == ("yes", "no")


@pytest.mark.parametrize("state", [None, "", "  \n", {}, []])
def test_an_empty_state_is_a_problem(state: Any) -> None:
    assert [problem.code for problem in state_problems(state)] == ["empty_state"]


@pytest.mark.parametrize("state", [0, 1.5, True])
def test_a_bare_number_is_no_state(state: Any) -> None:
    assert [problem.code for problem in state_problems(state)] == ["state_type"]


@pytest.mark.parametrize("state", ["text", {"a": 1}, [{"role": "user", "content": "hi"}]])
def test_text_objects_and_lists_are_states(state: Any) -> None:
    assert state_problems(state) == []


def test_depth_is_bounded_without_recursion() -> None:
    def nest(depth: int) -> Any:
        value: Any = "x"
        for _ in range(depth):
            value = [value]
        return value

    assert not too_deep(nest(MAX_DEPTH))
    assert too_deep(nest(MAX_DEPTH + 1))
    assert [problem.code for problem in state_problems(nest(100_000))] == ["too_deep"]


def test_fold_joins_case_space_and_unicode_forms_only() -> None:
    assert fold(" Café ") == fold("CAFE\u0301")
    assert fold("01") != fold("1")
