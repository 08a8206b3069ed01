"""Turns JSON and JSONL text into objects with their place; a broken one is a problem and does not hide the others.

Rows count objects from 1. What JSON leaves open is not left open here: a key given twice, NaN, and half of a surrogate
pair are problems, since each parser makes something else of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from clef.errors import Problem
from clef.tables.decoding import TextSource
from clef.tables.gridbuilder import too_many_rows
from clef.tables.table import Notes, shown

_CONTAINERS = ("examples", "items", "cases", "rows", "data", "records")
"""Keys under which a JSON document may hold its list of objects."""
_WHITE = " \t\r\n\ufeff"


@dataclass(frozen=True)
class Item:
    """One object and where it stands."""

    value: dict[str, Any]
    row: int
    line: int | None


class _Wrong(ValueError):
    """What is wrong with JSON that a parser accepts."""


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        double = next(name for name in names if names.count(name) > 1)
        raise _Wrong(f"the key {shown(double)} is there twice")
    return found


def _constant(name: str) -> Any:
    raise _Wrong(f"{name} is not JSON")


DECODER = json.JSONDecoder(object_pairs_hook=_pairs, parse_constant=_constant)


def parse(text: str) -> Any:
    """One JSON value. Raises ValueError with what is wrong."""
    try:
        value = DECODER.decode(text)
    except RecursionError:
        raise _Wrong("nested too deep") from None
    _check_surrogates(text, value)
    return value


def _check_surrogates(text: str, value: Any) -> None:
    if "\\u" not in text and text.isprintable():
        return
    if "\\u0000" in text:
        raise _Wrong("a zero byte (\\u0000)")
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise _Wrong("half of a surrogate pair (\\ud800 to \\udfff), or a byte that is not UTF-8") from None


def explain(error: ValueError) -> str:
    """The error in words, with the character where the parser gave up."""
    if isinstance(error, json.JSONDecodeError):
        at = (
            f" at character {error.colno}" if error.lineno == 1 else f" at line {error.lineno}, character {error.colno}"
        )
        return f"{error.msg}{at}"
    return str(error)


def is_one_document(text: TextSource) -> bool:
    """Whether the text is one JSON value over several lines, and not one value a line."""
    container = False
    for line in text.lines():
        stripped = line.strip(_WHITE)
        if not stripped:
            continue
        if container:
            return False
        if stripped[0] == "[":
            return True
        try:
            value = DECODER.decode(stripped)
        except (ValueError, RecursionError):
            return stripped == "{" or not stripped.endswith("}")
        if not any(isinstance(value.get(key), list) for key in _CONTAINERS):
            return False
        container = True
    return container


def read_lines(text: TextSource, max_rows: int, notes: Notes) -> Iterator[Item]:
    """The object of each line; blank lines are passed over. Raises TooLarge beyond `max_rows`."""
    row = 0
    for number, line in enumerate(text.lines(), 1):
        stripped = line.strip(_WHITE)
        if not stripped:
            continue
        row += 1
        if row > max_rows:
            raise too_many_rows(max_rows)
        try:
            value = parse(stripped)
        except ValueError as error:
            problem = Problem(f"not JSON: {explain(error)}: {shown(stripped)}", "json", row, number)
            notes.bad_records += 1
            notes.problem(problem)
            continue
        if isinstance(value, dict):
            yield Item(value, row, number)
        else:
            notes.bad_records += 1
            notes.problem(Problem(f"expected an object, found {shown(stripped)}", "json", row, number))


def read_document(text: TextSource, max_rows: int, notes: Notes) -> Iterator[Item]:
    """The objects of a JSON list, of a list under a known key, or the one object there is."""
    whole = "".join(text.lines())
    try:
        value = parse(whole.strip(_WHITE))
    except ValueError as error:
        line = error.lineno if isinstance(error, json.JSONDecodeError) else None
        notes.problem(Problem(f"not JSON: {explain(error)}", "json", line=line))
        return
    items = value
    if isinstance(value, dict):
        key = next((key for key in _CONTAINERS if isinstance(value.get(key), list)), None)
        items = [value] if key is None else value[key]
    if not isinstance(items, list):
        notes.problem(Problem(f"expected a list of objects, found {shown(whole.strip())}", "json", line=1))
        return
    if len(items) > max_rows:
        raise too_many_rows(max_rows)
    for row, item in enumerate(items, 1):
        if isinstance(item, dict):
            yield Item(item, row, None)
        else:
            notes.bad_records += 1
            notes.problem(Problem(f"expected an object, found {shown(item)}", "json", row))
