"""Turns a file of questions (YAML or JSON; ours, the wire's, or another tool's) into typed questions.

A set is an object id → question, or a list of questions that carry their id; either may stand under `questions`.
docs/question-files.md shows the form, questions.schema.json tells it to editors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from clef.decisions.questions import Choice, Noul, Option, Question, Score, problems_in
from clef.errors import InputError, NotFound, Problem
from clef.tables.decoding import decode
from clef.tables.documents import explain, parse
from clef.tables.resolve import TYPES
from clef.tables.table import Notes, shown
from clef.tables.yamltext import Document, read_yaml, write_yaml

_TEXT_KEYS = ("instructions", "question", "definition", "prompt", "text")
_LIST_KEYS = ("criteria", "options", "levels", "answers", "choices")
_ID_KEYS = ("id", "name", "qid")
KEYS = (*_TEXT_KEYS, *_LIST_KEYS, *_ID_KEYS, "type", "kind", "primitive", "true", "false", "description", "labels")
"""Keys that a question may have; others are left alone, since other tools keep notes of their own there."""


def read_question_set(source: bytes | Path) -> dict[str, Question]:
    """The questions of a YAML or JSON file by id. Raises NotFound, or InputError with everything that is wrong and
    where it stands.
    """
    if isinstance(source, Path) and not source.is_file():
        raise NotFound(f"no file {source}")
    text = "".join(decode(source, None, Notes()).lines())
    if not text.strip():
        raise InputError.of([Problem("the file of questions is empty", "no_question", column="questions")])
    is_json = text.lstrip()[:1] in ("{", "[")
    document = None if is_json else read_yaml(text)
    try:
        return questions_in(parse(text.strip()) if document is None else document.value)
    except InputError as error:
        raise InputError.of([_placed(problem, text, document) for problem in error.problems], "the questions") from None
    except ValueError as error:
        raise InputError(f"the questions are not JSON: {explain(error)}") from None


def _placed(problem: Problem, text: str, document: Document | None) -> Problem:
    """The problem with the line it stands on, where that can be told."""
    try:
        document = document or read_yaml(text)  # JSON is YAML as well, nearly always
    except InputError:
        return problem
    path = problem.column or "questions"
    if isinstance(document.value, Mapping) and not _listed(document.value):
        path = path.removeprefix("questions").removeprefix(".")
    elif not isinstance(document.value, Mapping):
        path = path.removeprefix("questions")
    elif "questions" not in document.value:
        path = f"columns{path.removeprefix('questions')}"
    around, _, last = path.rpartition(".")
    name, bracket, index = last.partition("[")
    called = next((keys for keys in (_LIST_KEYS, _TEXT_KEYS) if name in keys), ())
    spelt = [f"{around}.{key}{bracket}{index}" for key in called]  # the author may have said `options` for `answers`
    found = [
        place for one in (*spelt, *(f"{around}.{key}" for key in called)) if (place := document.place(one, exact=True))
    ]
    place = found[0] if found else document.place(path)
    return problem if place is None else replace(problem, line=place.line)


def _listed(raw: Mapping[str, Any]) -> Any:
    """What stands under `questions`, where that holds them all; else None."""
    found = raw.get("questions") or raw.get("columns")
    return found if isinstance(found, Mapping | list) else None


def questions_in(raw: Any, where: str = "questions") -> dict[str, Question]:
    """Questions by id from parsed JSON. Raises InputError with the problems of all of them."""
    if isinstance(raw, Mapping) and _listed(raw):
        raw = _listed(raw)
    entries = _entries(raw, where)
    questions: dict[str, Question] = {}
    problems: list[Problem] = []
    for place, (name, item) in enumerate(entries):
        try:
            if name in questions:
                raise InputError.of([Problem(f"the question {shown(name)} is there twice", "duplicate_question")])
            at = f"{where}[{place}]" if isinstance(raw, list) else f"{where}.{name}"
            problems.extend(_misspelt(item, at))
            questions[name] = question_in(item, at)
        except InputError as error:
            problems.extend(error.problems)
    if problems:
        raise InputError.of(problems, "the questions")
    if not questions:
        raise InputError.of([Problem("no question to ask", "no_question", column=where)])
    return questions


def _entries(raw: Any, where: str) -> list[tuple[str, Any]]:
    if isinstance(raw, Mapping):
        return [(str(name), item) for name, item in raw.items() if name != "$schema"]
    if isinstance(raw, list):
        return [(_id(item, n), item) for n, item in enumerate(raw, 1)]
    message = f"expected questions by id, found {shown(raw)}"
    raise InputError.of([Problem(message, "questions", column=where)])


def _id(item: Any, number: int) -> str:
    if isinstance(item, Mapping):
        return next((str(item[key]) for key in _ID_KEYS if item.get(key) not in (None, "")), f"q{number}")
    return f"q{number}"


def _misspelt(raw: Any, where: str) -> list[Problem]:
    """Keys that are nearly one of ours. Left alone, a choice whose options are misspelt would be a yes/no question."""
    found = []
    for key in raw if isinstance(raw, Mapping) else ():
        near = get_close_matches(str(key), KEYS, 1, 0.75)
        if key not in KEYS and near:
            hint = f'write it as "{near[0]}"'
            found.append(Problem(f"unknown key {shown(str(key))}", "unknown_key", column=f"{where}.{key}", hint=hint))
    return found


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
        question = _noul(raw, text, criteria, where)
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


def _noul(raw: Mapping[str, Any], text: Any, criteria: Any, where: str) -> Noul:
    sides = criteria if isinstance(criteria, Mapping) else raw
    meanings = {
        side: sides.get(side) for side in ("true", "false") if isinstance(sides.get(side), str | Mapping | list)
    }
    try:
        return Noul(text, **meanings)
    except InputError as error:
        problems = [replace(problem, column=f"{where}.{problem.column}") for problem in error.problems]
        raise InputError.of(problems) from None


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


def write_question_set(questions: Mapping[str, Question]) -> str:
    """A question file in YAML that `read_question_set` reads as the same questions."""
    return write_yaml({name: _written(question) for name, question in questions.items()})


def _written(question: Question) -> dict[str, Any]:
    written: dict[str, Any] = {"question": question.instructions, "type": question.type}
    match question:
        case Choice():
            is_described = any(option.description is not None for option in question.options)
            named = {option.name: option.description or "" for option in question.options}
            written["options"] = named if is_described else list(named)
        case Score():
            written["levels"] = list(question.levels)
        case Noul():
            sides = {"true": question.true, "false": question.false}
            written |= {side: text for side, text in sides.items() if text is not None}
    return written
