"""Turns the objects of labelled JSON into Examples, whichever tool wrote them; the keys tell the shapes apart.

request + labels   state, questions, labels                  labels of scores are positions
decision index     state, questions, expected                the same
jevl               v, request {state, questions}, label      the same; the last of equal ids counts
jev-eval           state, labels; questions given apart      labels of scores are level texts
jev-packs          state, expect; questions given apart      labels are keys or true/false
clef-evals         state, instructions, criteria, gold       one question an object
records            schema …-record/1                         have no state: a problem
anything else      columns by name, as a table would have them
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from clef.decisions.examples import Example
from clef.decisions.questions import Noul, Question, Score, as_text, state_problems
from clef.errors import InputError, Problem
from clef.tables.assemble import finished
from clef.tables.columns import SYNONYMS, normalised
from clef.tables.documents import Item
from clef.tables.files import Album
from clef.tables.options import Mismatches, match, match_level, match_noul
from clef.tables.pictures import checked_images
from clef.tables.questionset import question_in, questions_in
from clef.tables.table import Grid, Notes, ReadOptions, Table, TableFacts, shown

_TAKEN = {"state", "questions", "labels", "expected", "expect", "label", "request", "v", "images", "answers"}
_SINGLE = {"state", "instructions", "criteria", "gold", "type", "images"}


@dataclass(frozen=True)
class Shape:
    """How one tool writes labelled examples."""

    name: str
    labels: str = ""
    """The key that holds question id → label."""
    score_labels: str = "index"
    own_questions: bool = True
    """Whether each object brings its questions."""


REQUEST = Shape("request + labels", "labels")
INDEX = Shape("decision index", "expected")
JEVL = Shape("jevl", "label")
EVAL = Shape("jev-eval", "labels", "text", own_questions=False)
PACKS = Shape("jev-packs", "expect", "text", own_questions=False)
SINGLE = Shape("clef-evals")
RECORD = Shape("record")


def shape_of(value: Mapping[str, Any]) -> Shape | None:
    """The shape of an object; None where it is a row of a plain table."""
    if str(value.get("schema", "")).endswith("-record/1"):
        return RECORD
    if "request" in value and ("v" in value or isinstance(value["request"], Mapping)):
        return JEVL
    if isinstance(value.get("questions"), Mapping | list):
        return INDEX if "expected" in value else REQUEST
    if isinstance(value.get("labels"), Mapping):
        return EVAL
    if isinstance(value.get("expect"), Mapping) or isinstance(value.get("expected"), Mapping):
        return PACKS if "expect" in value else replace(INDEX, own_questions=False)
    if "state" in value and "instructions" in value and ("gold" in value or "criteria" in value):
        return SINGLE
    return None


class ShapeReader:
    """Reads objects of known shapes; equal questions become one object."""

    def __init__(self, options: ReadOptions, notes: Notes) -> None:
        self.given = options.questions_by_id
        self.album = options.album
        self.notes = notes
        self.shapes: dict[str, None] = {}
        self.score_labels: dict[str, None] = {}
        self.read = self.used = 0
        self._examples: list[list[Example]] = []
        self._by_id: dict[str, int] = {}
        self._sets: dict[str, dict[str, Question]] = {}
        self._same: dict[str, Question] = {}
        self._replaced = 0
        self._mismatches = Mismatches()

    def add(self, item: Item, shape: Shape) -> None:
        """Read one object; what is wrong with it becomes problems."""
        self.read += 1
        self.shapes[shape.name] = None
        problems: list[Problem] = []
        try:
            examples = self._examples_of(item, shape, problems)
        except InputError as error:
            problems += error.problems or [Problem(error.message)]
            examples = []
        for problem in problems:
            self.notes.problem(replace(problem, row=item.row, line=item.line))
        if examples:
            self._keep(examples, item, shape)

    def _keep(self, examples: list[Example], item: Item, shape: Shape) -> None:
        key = str(item.value.get("id", "")) if shape is JEVL else ""
        if key and key in self._by_id:
            self._examples[self._by_id[key]] = examples
            self._replaced += 1
            return
        if key:
            self._by_id[key] = len(self._examples)
        self._examples.append(examples)
        self.used += 1

    def _examples_of(self, item: Item, shape: Shape, problems: list[Problem]) -> list[Example]:
        value = item.value
        if shape is RECORD:
            hint = "evaluate the file the answers were made from"
            raise InputError.of([Problem("a record of answers has no state to decide about", "no_state", hint=hint)])
        if shape is SINGLE:
            return self._single(item)
        request: Mapping[str, Any] = value
        if shape is JEVL:
            _check_version(value)
            request = value["request"] if isinstance(value["request"], Mapping) else {}
        images, unusable = _images(request, self.album)
        state = request.get("state", "" if request.get("images") else None)
        unusable += state_problems(state, has_images=bool(request.get("images")))
        problems += unusable
        asked = self._questions(request, shape)
        labels = value.get(shape.labels)
        if labels is not None and not isinstance(labels, Mapping):
            labels = {next(iter(asked)): labels} if len(asked) == 1 else {}
        labels = labels or {}
        hint = f"the questions are {', '.join(map(shown, list(asked)[:10]))}"
        problems += [
            Problem(
                f"a label for {shown(name)}, which is not asked", "unknown_question", column=shape.labels, hint=hint
            )
            for name in labels
            if name not in asked
        ]
        extra = _extra(value, _TAKEN)
        examples = []
        for name, question in asked.items():
            label, problem = self._label(labels.get(name), question, shape.score_labels)
            if problem:
                problems.append(replace(problem, column=f"{shape.labels}.{name}"))
            else:
                written = _written(labels.get(name))
                examples.append(Example(state, question, label, written, item.row, item.line, name, extra, images))
        return [] if unusable else examples

    def _single(self, item: Item) -> list[Example]:
        value = item.value
        raw = {key: value[key] for key in ("instructions", "criteria", "type") if key in value}
        gold = value.get("gold")
        if "type" not in raw and isinstance(gold, bool):
            raw["type"] = "noul"
        question = question_in(raw, "")
        question = self._same.setdefault(repr(question), question)
        label, problem = self._label(gold, question, "index")
        found = [replace(problem, column="gold")] if problem else []
        images, unusable = _images(value, self.album)
        found += unusable + state_problems(value["state"], has_images=bool(value.get("images")))
        if found:
            raise InputError.of(found)
        name = as_text(question.instructions or "")
        extra = _extra(value, _SINGLE)
        return [Example(value["state"], question, label, _written(gold), item.row, item.line, name, extra, images)]

    def _questions(self, request: Mapping[str, Any], shape: Shape) -> Mapping[str, Question]:
        if not isinstance(request.get("questions"), Mapping | list):
            if self.given:
                return self.given
            hint = "give the questions in a JSON file of their own"
            raise InputError.of([Problem("labels without questions", "no_questions", column="questions", hint=hint)])
        key = json.dumps(request["questions"], ensure_ascii=False)
        if key not in self._sets:
            read = questions_in(request["questions"])
            self._sets[key] = {name: self._same.setdefault(repr(question), question) for name, question in read.items()}
        return self._sets[key]

    def _label(self, raw: Any, question: Question, by: str) -> tuple[int | None, Problem | None]:
        """(position, None), (None, None) without a label, or (None, what is wrong)."""
        if raw is None or raw == "":
            return None, None
        names = question.answers
        if isinstance(raw, dict | list):
            return None, Problem(f"expected a label, found {shown(raw)}", "label")
        if isinstance(question, Noul):
            label = match_noul(_written(raw))
            hint = "use true or false"
            return label, None if label is not None else Problem(
                f"{shown(raw)} is neither true nor false", "label", hint=hint
            )
        if isinstance(question, Score) and not isinstance(raw, bool):
            return self._level(raw, question, by)
        label = match(_written(raw), names)
        if label is None:
            return None, self._mismatches.problem(_written(raw), names)
        return label, None

    def _level(self, raw: str | float, question: Score, by: str) -> tuple[int | None, Problem | None]:
        """A number is a position where the shape has positions; a text is a level, whatever the shape."""
        names = question.answers
        positions = by == "index" and not isinstance(raw, str)
        written = _written(raw)
        label = match_level(written, names, "index" if positions else "text")
        if label is None and not positions and by == "index":
            label = match_level(written, names, "index")
            positions = label is not None
        if label is None:
            if positions:
                return None, Problem(f"{written} is no position from 0 to {len(names) - 1}", "label")
            return None, self._mismatches.problem(written, names, what="levels")
        self.score_labels["index" if positions else "text"] = None
        return label, None

    def table(self, facts: TableFacts) -> Table:
        """Everything read, in the order of the file."""
        if self._replaced:
            message = f"{self._replaced} lines have an id that comes again further down; the last one counts"
            self.notes.warn(Problem(message, "replaced"))
        facts = replace(
            facts,
            shape=" + ".join(self.shapes),
            options_from=("given",),
            score_labels=" and ".join(self.score_labels) or None,
            read=self.read + self.notes.bad_records,
            used=self.used,
        )
        return finished([example for examples in self._examples for example in examples], self.notes, facts)


def _check_version(value: Mapping[str, Any]) -> None:
    version = value.get("v", 1)
    if not isinstance(version, int) or isinstance(version, bool) or version != 1:
        hint = "only version 1 is known"
        raise InputError.of([Problem(f"version {shown(version)} of this format", "version", column="v", hint=hint)])


def _written(raw: Any) -> str:
    if raw is None:
        return ""
    if isinstance(raw, float) and raw.is_integer() and abs(raw) < 1e15:
        return str(int(raw))
    return raw if isinstance(raw, str) else json.dumps(raw, ensure_ascii=False)


def _extra(value: Mapping[str, Any], taken: Iterable[str]) -> dict[str, str]:
    return {key: as_text(item) if item is not None else "" for key, item in value.items() if key not in taken}


def _images(value: Mapping[str, Any], album: Album | None) -> tuple[tuple[str, ...], list[Problem]]:
    said = value.get("images")
    try:
        return checked_images(album.taken(said) if album and said else said, "images"), []
    except InputError as error:
        return (), list(error.problems)


def flat_grid(items: Sequence[Item]) -> Grid:
    """Objects without a shape as a table whose columns are their keys, in the order they first appear.

    A state may be JSON and stays so; every other value becomes text.
    """
    keys = dict.fromkeys(key for item in items for key in item.value)
    names = {normalised(name) for name in SYNONYMS["state"]}
    columns = [
        [_state_cell(item.value.get(key)) if normalised(key) in names else _cell(item.value.get(key)) for item in items]
        for key in keys
    ]
    return Grid(tuple(keys), columns, [item.row for item in items], [item.line for item in items], None, None)


def _cell(value: Any) -> str:
    return "" if value is None else _written(value)


def _state_cell(value: Any) -> Any:
    return value if isinstance(value, dict | list) else _cell(value)
