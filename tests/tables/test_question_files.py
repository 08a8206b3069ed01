"""Question files in YAML: words as they look, each problem with its line, a schema that means what the reader does."""

import json
from importlib.resources import files

import jsonschema
import pytest

from clef.decisions.questions import Choice, Noul, Option, Score
from clef.errors import InputError
from clef.tables import read_question_set
from clef.tables.yamltext import read_yaml

SCHEMA = json.loads(files("clef.tables").joinpath("questions.schema.json").read_text())
GOOD = """
# a comment
team:
  question: Which team?
  options:
    billing: payments and refunds
    technical:
answer:
  question: Which?
  options: [yes, no, on, 2, true]
angry:
  question: Is it angry?
  true: it says so
stars:
  question: How many?
  levels: [1, 2, 3]
"""


def problems_of(text: str) -> list[tuple[int | None, str | None, str]]:
    with pytest.raises(InputError) as caught:
        read_question_set(text.encode())
    return [(problem.line, problem.column, problem.code) for problem in caught.value.problems]


def test_words_mean_what_they_look_like() -> None:
    found = read_question_set(GOOD.encode())
    assert found["team"] == Choice("Which team?", [Option("billing", "payments and refunds"), Option("technical")])
    assert found["answer"].answers == ("yes", "no", "on", "2", "true")
    assert found["angry"] == Noul("Is it angry?", true="it says so")
    assert found["stars"] == Score("How many?", ["1", "2", "3"])


def test_json_and_a_list_and_a_key_around_it_are_the_same() -> None:
    value = read_yaml(GOOD).value
    same = read_question_set(GOOD.encode())
    assert read_question_set(json.dumps(value).encode()) == same
    assert read_question_set(json.dumps({"$schema": "x", "questions": value}).encode()) == same
    assert read_question_set(json.dumps([{"id": name} | body for name, body in value.items()]).encode()) == same


def test_everything_wrong_is_said_at_once_with_its_line() -> None:
    text = """questions:
  team:
    question: Which team?
    optoins: [a, b]
  kind:
    type: essay
  same:
    question: Which?
    options: [a, A]
  levels.of:
    question: ""
    levels: [a]
"""
    assert problems_of(text) == [
        (4, "questions.team.optoins", "unknown_key"),
        (6, "questions.kind", "unknown_type"),
        (9, "questions.same.answers", "duplicate_options"),
        (11, "questions.levels.of.question", "empty_question"),
        (12, "questions.levels.of.levels", "level_count"),
    ]


def test_a_problem_in_json_has_its_line_as_well() -> None:
    assert problems_of('{"a": {"question": "Which?",\n "options": ["b"]}}') == [
        (2, "questions.a.answers", "one_option")
    ]
    assert problems_of('[{"id": "a", "question": "Which?",\n "options": ["b"]}]')[0][0] == 2


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("a: [b\nc: d", (2, "column 2", "not_yaml")),
        ("a: {question: x}\na: {question: y}", (2, "column 1", "not_yaml")),
        ("a:\n\tb: c", (2, "column 1", "not_yaml")),
        ("a: !!python/object:os.system {}", (1, "column 4", "not_yaml")),
        ("? [a]\n: b", (1, "column 3", "not_yaml")),
    ],
)
def test_what_is_no_yaml_is_told_with_line_and_column(text: str, place: tuple[int, str, str]) -> None:
    assert problems_of(text) == [place]


def test_a_small_file_cannot_stand_for_a_large_one() -> None:
    bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
    bomb += "".join(f"{b}: &{b} [{', '.join([f'*{a}'] * 10)}]\n" for a, b in zip("abcdefg", "bcdefgh", strict=True))
    with pytest.raises(InputError, match="stands for more"):
        read_question_set(bomb.encode())
    with pytest.raises(InputError):
        read_question_set(b"a: " + b"[" * 5000 + b"]" * 5000)


@pytest.mark.parametrize("text", ["", "  \n", "# only a comment\n", "hello", "3"])
def test_a_file_without_questions_says_so(text: str) -> None:
    with pytest.raises(InputError):
        read_question_set(text.encode())


AGREED = [
    (GOOD, True),
    ("a: {question: x}", True),
    ("questions: [{question: x, levels: [a, b]}]", True),
    ("a: {question: x, options: [only]}", False),
    ("a: {question: x, levels: [only]}", False),
    ("a: {question: x, levels: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]}", False),
    ("a: {question: '', options: [a, b]}", False),
    ("a: {question: x, options: [a, '']}", False),
    ("a: {question: x, type: essay}", False),
    ("a: text", False),
    ("a: {question: 3, options: [a, b]}", False),
    ("a: {question: x, options: [{answer: a, description: d}, b]}", True),
    ("a: {question: x, options: {a: '', b: null, c: {d: e}}}", True),
    ("a: {question: x, options: " + json.dumps([f"o{n}" for n in range(256)]) + "}", False),
]


@pytest.mark.parametrize(("text", "is_good"), AGREED)
def test_the_schema_says_what_the_reader_says(text: str, is_good: bool) -> None:
    try:
        read_question_set(text.encode())
        read = True
    except InputError:
        read = False
    assert (read, jsonschema.Draft202012Validator(SCHEMA).is_valid(read_yaml(text).value)) == (is_good, is_good)
