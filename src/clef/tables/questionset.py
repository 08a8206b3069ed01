"""Turns the questions of other tools (wire form, our own, and the files beside labelled JSONL) into typed questions.

A set is an object id → question, or a list of questions that carry their id.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from clef.decisions.questions import Choice, Noul, Option, Question, Score, problems_in
from clef.errors import InputError, Problem
from clef.tables.decoding import decode
from clef.tables.documents import explain, parse
from clef.tables.resolve import TYPES
from clef.tables.table import Notes, shown

_TEXT_KEYS = ("instructions", "question", "definition", "prompt", "text")
_LIST_KEYS = ("criteria", "options", "levels", "answers", "choices")
_ID_KEYS = ("id", "name", "qid")


def read_question_set(source: bytes | Path) -> dict[str, Question]:
    """The questions of a JSON file by id. Raises InputError with everything that is wrong."""
    text = "".join(decode(source, None, Notes()).lines())
    try:
        value = parse(text.strip())
    except ValueError as error:
        raise InputError(f"the questions are not JSON: {explain(error)}") from None
    return questions_in(value)


def questions_in(raw: Any, where: str = "questions") -> dict[str, Question]:
    """Questions by id from parsed JSON. Raises InputError with the problems of all of them."""
    if isinstance(raw, Mapping) and isinstance(raw.get("questions") or raw.get("columns"), Mapping | list):
        raw = raw.get("questions") or raw.get("columns")
    entries = _entries(raw, where)
    questions: dict[str, Question] = {}
    problems: list[Problem] = []
    for name, item in entries:
        try:
            if name in questions:
                raise InputError.of([Problem(f"the question {shown(name)} is there twice", "duplicate_question")])
            questions[name] = question_in(item, f"{where}.{name}")
        except InputError as error:
            problems.extend(error.problems)
    if problems:
        raise InputError.of(problems, "the questions")
    if not questions:
        raise InputError.of([Problem("no question to ask", "no_question", column=where)])
    return questions


def _entries(raw: Any, where: str) -> list[tuple[str, Any]]:
    if isinstance(raw, Mapping):
        return [(str(name), item) for name, item in raw.items()]
    if isinstance(raw, list):
        return [(_id(item, n), item) for n, item in enumerate(raw, 1)]
    message = f"expected questions by id, found {shown(raw)}"
    raise InputError.of([Problem(message, "questions", column=where)])


def _id(item: Any, number: int) -> str:
    if isinstance(item, Mapping):
        return next((str(item[key]) for key in _ID_KEYS if item.get(key) not in (None, "")), f"q{number}")
    return f"q{number}"


def question_in(raw: Any, where: str) -> Question:
    """One question: its type under `type` or `kind`, or told by what it has. Raises InputError."""
    if not isinstance(raw, Mapping):
        raise InputError.of([Problem(f"expected an object, found {shown(raw)}", "not_an_object", column=where)])
    criteria = next((raw[key] for key in _LIST_KEYS if raw.get(key) is not None), None)
    named = raw.get("type", raw.get("kind", raw.get("primitive")))
    kind = TYPES.get(str(named).strip().casefold()) if named is not None else _kind(raw, criteria)
    if kind is None:
        problem = Problem(f"unknown question type {shown(str(named))}", "unknown_type", column=where)
        raise InputError.of([problem])
    text = next((raw[key] for key in _TEXT_KEYS if raw.get(key) not in (None, "")), None)
    if isinstance(text, bool | int | float):
        raise InputError.of([Problem(f"expected text, found {shown(text)}", "text_type", column=where)])
    question: Question
    if kind == "noul":
        question = _noul(raw, text, criteria)
    elif kind == "score":
        question = Score(text or "", _levels(criteria, where), where=where)
    else:
        question = Choice(text or "", _options(criteria, where), where=where)
    wrong = problems_in(question, where)
    if wrong:
        raise InputError.of(wrong)
    return question


def _kind(raw: Mapping[str, Any], criteria: Any) -> str:
    """Levels are a score, true/false descriptions or nothing a noul, anything else a choice."""
    if "levels" in raw or isinstance(raw.get("criteria"), list):
        return "score"
    sides = {str(name).casefold() for name in criteria} if isinstance(criteria, Mapping) else set()
    return "noul" if criteria is None or (sides and sides <= {"true", "false"}) else "choice"


def _noul(raw: Mapping[str, Any], text: Any, criteria: Any) -> Noul:
    sides = criteria if isinstance(criteria, Mapping) else raw
    meanings = {
        side: sides.get(side) for side in ("true", "false") if isinstance(sides.get(side), str | Mapping | list)
    }
    return Noul(text, **meanings)


def _options(criteria: Any, where: str) -> list[Option]:
    if isinstance(criteria, Mapping):
        return [Option(str(name), text if text not in ("", [], {}) else None) for name, text in criteria.items()]
    if not isinstance(criteria, list):
        raise InputError.of([Problem(f"expected options, found {shown(criteria)}", "not_a_list", column=where)])
    options = []
    for item in criteria:
        if isinstance(item, Mapping):
            name = next((item[key] for key in ("answer", "value", "name", "label", "id", "key") if key in item), "")
            options.append(Option(_plain(name), item.get("description", item.get("definition"))))
        else:
            options.append(Option(_plain(item)))
    return options


def _levels(criteria: Any, where: str) -> list[Any]:
    if isinstance(criteria, Mapping):
        return [text if text not in (None, "") else name for name, text in criteria.items()]
    if not isinstance(criteria, list):
        raise InputError.of([Problem(f"expected levels, found {shown(criteria)}", "not_a_list", column=where)])
    return [level if isinstance(level, str | Mapping | list) else _plain(level) for level in criteria]


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)
