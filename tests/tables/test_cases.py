"""Turns each small file under cases/ and what is expected of it into a test."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from clef.decisions.examples import Example
from clef.errors import Problem
from clef.tables import ReadOptions, Table, read
from clef.tables.questionset import questions_in

CASES = Path(__file__).parent / "cases"
EXPECTATIONS = sorted(CASES.glob("*.expect.json"))


def expectation(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def table_of(path: Path, expected: Mapping[str, Any]) -> Table:
    source = path.with_name(path.name.removesuffix(".expect.json"))
    told = expected.get("read_options", {})
    questions = questions_in(expected["questions"]) if "questions" in expected else None
    return read(source.read_bytes(), ReadOptions(name=source.name, questions=questions, **told))


@pytest.mark.parametrize("path", EXPECTATIONS, ids=lambda path: path.name.removesuffix(".expect.json"))
def test_a_file_is_read_as_expected(path: Path) -> None:
    expected = expectation(path)
    table = table_of(path, expected)
    shown = table.preview(1000)
    expected_examples = expected.get("examples", [])
    assert agreeing(shown["examples"], expected_examples) == expected_examples
    assert explained(table.problems, expected.get("problems", [])) == []
    assert explained(table.warnings, expected.get("warnings", [])) == []
    facts = expected.get("facts", {})
    assert {name: shown_json(shown["facts"][name]) for name in facts} == facts
    if "extra" in expected:
        assert [dict(example.extra) for example in table.examples] == expected["extra"]
    if "images" in expected:
        assert [list(example.images) for example in table.examples] == expected["images"]
    json.dumps(shown, allow_nan=False)


def test_there_are_enough_cases() -> None:
    assert len(EXPECTATIONS) >= 80


def test_one_table_saved_in_any_way_is_the_same_table() -> None:
    tables = {}
    for path in EXPECTATIONS:
        expected = expectation(path)
        if "same_as" in expected:
            tables[path.name] = table_of(path, expected)
    assert len(tables) > 24
    contents = {name: [content(example) for example in table.examples] for name, table in tables.items()}
    first = contents["one_comma.csv.expect.json"]
    assert [name for name, found in contents.items() if found != first] == []


def content(example: Example) -> tuple[Any, ...]:
    """All of an example but its text line, which is another thing in another format."""
    return (example.row, example.state, example.question, example.label, example.written_label, example.question_name)


def agreeing(found: list[dict[str, Any]], expected: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What was found, cut to the fields that are expected of each example."""
    if len(found) != len(expected):
        return found
    return [{name: example[name] for name in wanted} for example, wanted in zip(found, expected, strict=True)]


def shown_json(value: Any) -> Any:
    return json.loads(json.dumps(value))


def explained(found: Iterable[Problem], expected: list[dict[str, Any]]) -> list[str]:
    """How the problems found differ from those expected, in words."""
    listed = list(found)
    if len(listed) != len(expected):
        return [f"expected {len(expected)}, found {len(listed)}", *map(repr, listed)]
    return [
        f"{problem!r} is not {wanted}"
        for problem, wanted in zip(listed, expected, strict=True)
        if not agrees(problem, wanted)
    ]


def agrees(problem: Problem, wanted: Mapping[str, Any]) -> bool:
    parts = {"says": problem.message, "hint": problem.hint or ""}
    contained = all(wanted[name] in text for name, text in parts.items() if name in wanted)
    exact = {name: value for name, value in wanted.items() if name not in parts}
    return contained and all(getattr(problem, name) == value for name, value in exact.items())
