"""Turns JSON into typed questions, or into the full list of what is wrong with it.

A question is a Choice, a Noul (yes/no) or a Score. Its `answers` are the names a person sees, in their order:
the options; yes and no; the levels, lowest first. Instructions, descriptions, levels and the two meanings of a
noul are *text*: a string, or a JSON object or array. A constructor refuses what no server could answer;
`problems_in` adds what a person certainly did not mean, such as a single option.
"""

from __future__ import annotations  # the aliases below are strings until read by a type checker

import json
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias

from clef.errors import InputError, Problem

QuestionType = Literal["choice", "noul", "score"]
Text: TypeAlias = str | Sequence[Any] | Mapping[str, Any]
"""A string, or a JSON object or array."""
Json: TypeAlias = Text | int | float | bool | None

MAX_OPTIONS = 255
"""Options a choice may have: the limit of Clef and of TypeSafe's API."""
MIN_LEVELS, MAX_LEVELS = 2, 10
"""Levels a score may have."""
MAX_DEPTH = 64
"""Nesting accepted in a JSON value; servers fail at about a thousand levels."""
WHOLE = range(-(2**63), 2**64)
"""Whole numbers that every JSON reader on the way keeps exact."""
TOO_BIG = "a whole number beyond 64 bits would lose digits"
YES, NO = "yes", "no"


@dataclass(frozen=True, slots=True)
class Option:
    """One answer a choice allows."""

    name: str
    description: Text | None = None
    """What the option means, for the model; None where the name says it."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Exactly one of several options, in the order given. Options may be names, Options, or name → description."""

    instructions: Text
    options: tuple[Option, ...]
    type: ClassVar[QuestionType] = "choice"

    def __init__(
        self, instructions: Text, options: Iterable[str | Option] | Mapping[str, Text | None], *, where: str = ""
    ) -> None:
        """Raise InputError for no option, more than 255, an empty name, or two names that are the same text."""
        if isinstance(options, Mapping):
            listed = tuple(Option(name, description) for name, description in options.items())
        else:
            listed = tuple(item if isinstance(item, Option) else Option(item) for item in options)
        object.__setattr__(self, "instructions", instructions)
        object.__setattr__(self, "options", listed)
        _raise(_instruction_problems(instructions, where) + _option_problems(listed, where))

    @property
    def answers(self) -> tuple[str, ...]:
        """Option names, in the user's order."""
        return tuple(option.name for option in self.options)


@dataclass(frozen=True, slots=True)
class Noul:
    """Is it true? `true` and `false` may say what each answer means. Instructions may be None if one of them does."""

    instructions: Text | None
    true: Text | None = None
    false: Text | None = None
    type: ClassVar[QuestionType] = "noul"

    def __post_init__(self) -> None:
        """Raise InputError where nothing says what is asked."""
        if _is_empty(self.instructions) and _is_empty(self.true) and _is_empty(self.false):
            raise InputError.of([Problem("the question is empty", "empty_question", column="question")])

    @property
    def answers(self) -> tuple[str, ...]:
        """Yes, then no."""
        return (YES, NO)


@dataclass(frozen=True, slots=True)
class Score:
    """Where on an ordered scale of 2 to 10 levels, lowest first."""

    instructions: Text
    levels: tuple[Text, ...]
    type: ClassVar[QuestionType] = "score"

    def __init__(self, instructions: Text, levels: Iterable[Text], *, where: str = "") -> None:
        """Raise InputError for fewer than 2 or more than 10 levels, or an empty one."""
        listed = tuple(levels)
        object.__setattr__(self, "instructions", instructions)
        object.__setattr__(self, "levels", listed)
        _raise(_instruction_problems(instructions, where) + _level_problems(listed, where))

    @property
    def answers(self) -> tuple[str, ...]:
        """The levels as text, lowest first."""
        return tuple(as_text(level) for level in self.levels)


Question = Choice | Noul | Score


def as_text(value: Json) -> str:
    """A JSON value as a person reads it: strings as they are, the rest as compact JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, allow_nan=False)


def fold(name: str) -> str:
    """What two names share if a person would call them the same: NFC, case-folded, surrounding space ignored."""
    if name.isascii():
        return name.strip().lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).strip().casefold())


def problems_in(question: Question, where: str = "") -> list[Problem]:
    """What a server would accept and a person cannot mean: one option, or names that differ in case only."""
    if isinstance(question, Noul):
        return []
    field = _path(where, "answers" if isinstance(question, Choice) else "levels")
    if isinstance(question, Choice) and len(question.options) == 1:
        only = f'"{question.options[0].name}"'
        hint = "give at least two options; one option is always right"
        return [Problem(f"only one option: {only}", "one_option", column=field, hint=hint)]
    return [
        Problem(
            f'"{first}" and "{second}" are the same answer twice',
            "duplicate_options",
            column=field,
            hint="names that differ only in case or surrounding space count as one; remove or rename one",
        )
        for first, second in _collisions(question.answers, fold)
    ]


def read_question(raw: Any, where: str = "") -> Question:
    """A question from the API's JSON: `question`, `type` (choice unless given), `answers`, `true`/`false`, `levels`.

    `where` is the path of `raw` in the body. Raises InputError with every problem in this question.
    """
    if not isinstance(raw, Mapping):
        problem = Problem(f"expected an object, found {_kind(raw)}", "not_an_object", column=where or None)
        raise InputError.of([problem])
    kind = raw.get("type", "choice")
    readers: dict[str, Callable[[Mapping[str, Any], str], Question]] = {
        "choice": _read_choice,
        "noul": _read_noul,
        "score": _read_score,
    }
    if not isinstance(kind, str) or kind not in readers:
        message = f"unknown question type {json.dumps(kind, default=str)}"
        hint = "use choice, noul or score"
        raise InputError.of([Problem(message, "unknown_type", column=_path(where, "type"), hint=hint)])
    question = readers[kind](raw, where)
    _raise(problems_in(question, where))
    return question


def read_questions(raw: Any, where: str = "questions") -> tuple[Question, ...]:
    """Every question of a list. Raises InputError with the problems of all of them."""
    if not isinstance(raw, Sequence) or isinstance(raw, str):
        raise InputError.of([Problem(f"expected a list of questions, found {_kind(raw)}", "not_a_list", column=where)])
    if not raw:
        raise InputError.of([Problem("no question to ask", "no_question", column=where, hint="add one")])
    questions: list[Question] = []
    problems: list[Problem] = []
    for position, item in enumerate(raw):
        try:
            questions.append(read_question(item, f"{where}[{position}]"))
        except InputError as error:
            problems.extend(error.problems)
    if problems:
        raise InputError.of(problems, "the questions")
    return tuple(questions)


def state_problems(state: Json, where: str = "state", *, has_images: bool = False) -> list[Problem]:
    """What is wrong with a state: null, empty, a bare number, nested too deep, or with numbers that lose digits.

    Images may say all there is to decide about: the text beside them may be empty.
    """
    if has_images and isinstance(state, str) and not state.strip():
        return []
    if state is None or _is_empty(state):
        hint = "give the text or JSON to decide about"
        return [Problem("the state is empty", "empty_state", column=where, hint=hint)]
    if isinstance(state, bool | int | float):
        return [Problem(f"expected text, an object or a list, found {_kind(state)}", "state_type", column=where)]
    if too_deep(state):
        return [Problem(f"nested deeper than {MAX_DEPTH} levels", "too_deep", column=where)]
    return _big_problems(state, where)


def _big_problems(value: Json, where: str) -> list[Problem]:
    found = []
    for path in big_numbers(value):
        steps = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
        found.append(Problem(TOO_BIG, "big_number", column=where + steps, hint="write it as text, in quotes"))
    return found


def big_numbers(value: Json, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Where whole numbers beyond 64 bits stand in a JSON value that is not nested deep."""
    if isinstance(value, str):
        return
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from big_numbers(item, (*path, key))
    elif isinstance(value, Sequence):
        for position, item in enumerate(value):
            yield from big_numbers(item, (*path, position))
    elif isinstance(value, int) and value not in WHOLE:
        yield path


def too_deep(value: Json, levels: int = MAX_DEPTH) -> bool:
    """Whether a JSON value is nested deeper than so many levels; walks without recursion."""
    layer: list[Json] = [value]
    for _ in range(levels + 1):
        deeper: list[Json] = []
        for item in layer:
            if isinstance(item, Mapping):
                deeper.extend(item.values())
            elif isinstance(item, Sequence) and not isinstance(item, str):
                deeper.extend(item)
        if not deeper:
            return False
        layer = deeper
    return True


def _read_choice(raw: Mapping[str, Any], where: str) -> Choice:
    answers = raw.get("answers")
    column = _path(where, "answers")
    problems = _text_problems(raw.get("question"), _path(where, "question"))
    options: list[Option] = []
    if isinstance(answers, Mapping):
        answers = [{"answer": name, "description": text} for name, text in answers.items()]
    if not isinstance(answers, list):
        problems.append(Problem(f"expected a list of answers, found {_kind(answers)}", "not_a_list", column=column))
        raise InputError.of(problems, "the question")
    for position, item in enumerate(answers):
        at = f"{column}[{position}]"
        name, description = (item.get("answer"), item.get("description")) if isinstance(item, dict) else (item, None)
        if not isinstance(name, str):
            expected = 'text or {"answer": "…", "description": "…"}'
            problems.append(Problem(f"expected {expected}, found {_kind(item)}", "answer_type", column=at))
            continue
        if description is not None:
            problems += _text_problems(description, f"{at}.description", may_be_empty=True)
        options.append(Option(name, None if _is_empty(description) else description))
    _raise(problems)
    return Choice(raw["question"], options, where=where)


def _read_noul(raw: Mapping[str, Any], where: str) -> Noul:
    problems = _text_problems(raw.get("question"), _path(where, "question"))
    for side in ("true", "false"):
        if raw.get(side) is not None:
            problems += _text_problems(raw[side], _path(where, side), may_be_empty=True)
    _raise(problems)
    meanings = {side: None if _is_empty(raw.get(side)) else raw[side] for side in ("true", "false")}
    return Noul(raw["question"], **meanings)


def _read_score(raw: Mapping[str, Any], where: str) -> Score:
    column = _path(where, "levels")
    problems = _text_problems(raw.get("question"), _path(where, "question"))
    levels = raw.get("levels", raw.get("answers"))
    if not isinstance(levels, list):
        problems.append(Problem(f"expected a list of levels, found {_kind(levels)}", "not_a_list", column=column))
        raise InputError.of(problems, "the question")
    for position, level in enumerate(levels):
        problems += _text_problems(level, f"{column}[{position}]")
    _raise(problems)
    return Score(raw["question"], levels, where=where)


def _text_problems(value: Any, column: str, *, may_be_empty: bool = False) -> list[Problem]:
    if value is None or (not may_be_empty and _is_empty(value)):
        return [Problem("is empty", "empty_text", column=column, hint="write what is asked")]
    if not isinstance(value, str | Mapping | list):
        return [Problem(f"expected text, an object or a list, found {_kind(value)}", "text_type", column=column)]
    if too_deep(value):
        return [Problem(f"nested deeper than {MAX_DEPTH} levels", "too_deep", column=column)]
    return _big_problems(value, column)


def _instruction_problems(instructions: Text, where: str) -> list[Problem]:
    if _is_empty(instructions):
        return [Problem("the question is empty", "empty_question", column=_path(where, "question"))]
    return []


def _option_problems(options: Sequence[Option], where: str) -> list[Problem]:
    column = _path(where, "answers")
    if not options:
        return [Problem("no options to choose from", "no_options", column=column, hint="give at least two")]
    if len(options) > MAX_OPTIONS:
        message = f"{len(options)} options; at most {MAX_OPTIONS} are possible"
        return [Problem(message, "too_many_options", column=column)]
    empty = [
        Problem("an option without a name", "empty_option", column=f"{column}[{position}]")
        for position, option in enumerate(options)
        if not option.name.strip()
    ]
    same = _collisions([option.name for option in options], nfc)
    return empty + [
        Problem(f'the option "{first}" is there twice', "duplicate_options", column=column) for first, _ in same
    ]


def _level_problems(levels: Sequence[Text], where: str) -> list[Problem]:
    column = _path(where, "levels")
    if not MIN_LEVELS <= len(levels) <= MAX_LEVELS:
        message = f"{len(levels)} levels; a score has {MIN_LEVELS} to {MAX_LEVELS}"
        return [Problem(message, "level_count", column=column)]
    return [
        Problem("an empty level", "empty_level", column=f"{column}[{position}]")
        for position, level in enumerate(levels)
        if _is_empty(level)
    ]


def nfc(text: str) -> str:
    """Unicode's composed form: what llama.cpp's tokenizer expects and does not make itself."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def _collisions(names: Sequence[str], key: Callable[[str], str]) -> list[tuple[str, str]]:
    """Pairs (first seen, later) of names that `key` maps to the same text."""
    if len(set(map(key, names))) == len(names):
        return []
    seen: dict[str, str] = {}
    pairs = []
    for name in names:
        folded = key(name)
        if folded in seen:
            pairs.append((seen[folded], name))
        seen.setdefault(folded, name)
    return pairs


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, str) and not value.strip()) or value in ([], {}, ())


def _path(where: str, field: str) -> str:
    return f"{where}.{field}" if where else field


def _kind(value: Any) -> str:
    """How JSON calls a value, for messages."""
    names = {type(None): "nothing", bool: "true/false", int: "a number", float: "a number", str: "text"}
    return names.get(type(value), "an object" if isinstance(value, Mapping) else "a list")


def _raise(problems: list[Problem]) -> None:
    if problems:
        raise InputError.of(problems, "the question")
