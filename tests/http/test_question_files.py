"""Question files on the Ask page: what a file holds comes into the form, and what the form holds goes into a file."""

import json
from typing import Any

import pytest
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st

from clef.decisions.questions import Choice, Noul, Option, Question, Score
from clef.tables.questionset import read_question_set, write_question_set
from clef.tables.yamltext import read_yaml, write_yaml

FILE = b"""team:
  question: Which team?
  options: {billing: payments, technical: bugs, other: }
angry:
  question: Is the customer angry?
  true: rude words
urgency:
  question: How urgent?
  levels: [can wait, "2", now]
"""
DRAFTS = [
    {
        "id": "team",
        "type": "choice",
        "question": "Which team?",
        "answers": [
            {"answer": "billing", "description": "payments"},
            {"answer": "technical", "description": "bugs"},
            "other",
        ],
    },
    {"id": "angry", "type": "noul", "question": "Is the customer angry?", "true": "rude words"},
    {"id": "urgency", "type": "score", "question": "How urgent?", "levels": ["can wait", "2", "now"]},
]
WHOLE = st.characters(exclude_categories=["Cs"])
TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=20).filter(str.strip)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(10**9), 10**9), st.floats(-1e9, 1e9), st.text(WHOLE)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(WHOLE), inner, max_size=3),
    max_leaves=8,
)


def test_a_file_comes_into_the_form(client: TestClient) -> None:
    assert client.post("/ask/questions", content=FILE).json() == {"questions": DRAFTS}


def test_what_is_wrong_with_a_file_is_told_with_its_line_all_at_once(client: TestClient) -> None:
    wrong = FILE.replace(b"options", b"optoins").replace(b'[can wait, "2", now]', b"[now]")
    response = client.post("/ask/questions", content=wrong)
    assert response.status_code == 400
    assert "2 problems in the file of questions" in response.text
    assert "line 3" in response.text
    assert "line 9" in response.text
    assert client.post("/ask/questions", content=b"").status_code == 400
    assert client.post("/ask/questions", content=b"a: [").status_code == 400


def test_what_the_form_has_no_field_for_is_refused_and_not_dropped(client: TestClient) -> None:
    held = json.dumps({"q": {"question": "?", "options": {"a": {"seen": [1]}, "b": None}}})
    response = client.post("/ask/questions", content=held.encode())
    assert response.status_code == 400
    assert "questions.q" in response.text
    assert "no field" in response.text


def test_the_form_goes_into_a_file_and_comes_back_with_its_ids(client: TestClient) -> None:
    for draft in ({"state": "", "questions": DRAFTS}, {"json": json.dumps({"state": "x", "questions": DRAFTS})}):
        saved = client.post("/ask/questions.yaml", content=json.dumps(draft))
        assert saved.status_code == 200
        assert client.post("/ask/questions", content=saved.content).json() == {"questions": DRAFTS}


@pytest.mark.parametrize("ids", [("", "q1", None), ("a", "a", "a"), ("q2", "q2", "q2")])
def test_questions_without_ids_of_their_own_get_some(client: TestClient, ids: tuple[Any, ...]) -> None:
    questions = [{"id": name, "type": "noul", "question": f"Is it {n}?"} for n, name in enumerate(ids)]
    saved = client.post("/ask/questions.yaml", content=json.dumps({"state": "", "questions": questions}))
    found = read_question_set(saved.content)
    assert [question.instructions for question in found.values()] == ["Is it 0?", "Is it 1?", "Is it 2?"]


def test_an_unfinished_question_is_told_and_nothing_is_saved(client: TestClient) -> None:
    draft = {"state": "", "questions": [{"type": "choice", "question": "", "answers": ["a"]}]}
    response = client.post("/ask/questions.yaml", content=json.dumps(draft))
    assert response.status_code == 400
    assert 'role="alert"' in response.text


@given(VALUES)
def test_what_is_written_as_yaml_is_read_as_the_same(value: Any) -> None:
    assert read_yaml(write_yaml(value)).value == value


@given(st.lists(TEXT, min_size=2, max_size=5, unique_by=lambda text: text.strip().casefold()), TEXT)
def test_questions_are_written_as_they_are_read(names: list[str], text: str) -> None:
    questions: dict[str, Question] = {
        "plain": Choice(text, names),
        "told": Choice(text, [Option(names[0], text), *names[1:]]),
        "yes": Noul(text, true=text),
        "how far": Score(text, names),
    }
    assert read_question_set(write_question_set(questions).encode()) == questions
