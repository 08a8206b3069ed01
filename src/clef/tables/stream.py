"""Turns a table of any size into its records, one at a time, in constant memory: CSV, JSONL, Parquet, or a pipe.

For labelling: records are kept as they are, and only the state and the images are looked for. What is wrong with one
record is said in that record; what is wrong with the table as a whole is raised before the first.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO

from clef.decisions.questions import Json
from clef.errors import InputError, NotFound, Problem
from clef.tables.columns import SYNONYMS, assign
from clef.tables.decoding import decode
from clef.tables.headers import FIELD_LIMIT, HEAD_LINES, find_layout
from clef.tables.pictures import checked_images
from clef.tables.table import Notes, shown

BATCH = 1000
"""Records of a Parquet file that are held at once."""
_PARQUET, _BOOKS = b"PAR1", (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """How to read, where the guess is wrong."""

    encoding: str | None = None
    separator: str | None = None
    mapping: Mapping[str, str] = field(default_factory=dict)
    """Role → column header; state and images are used."""


@dataclass(frozen=True, slots=True)
class Record:
    """One record, as it stands in the source."""

    row: int
    """Spreadsheet row: the header of a CSV is row 1; of other sources the first record is row 1."""
    cells: Mapping[str, Any]
    state: Json = None
    images: tuple[str, ...] = ()
    problem: str | None = None
    """Why it cannot be asked about."""


@dataclass(frozen=True, slots=True)
class Stream:
    """A table that is being read."""

    kind: str
    """csv, jsonl or parquet."""
    header: tuple[str, ...]
    """Columns, of JSONL the keys of its first object."""
    separator: str
    """What separates the columns of a CSV; a comma for other sources."""
    records: Iterator[Record]
    schema: Any = None
    """The Arrow schema of a Parquet file."""
    is_piped: bool = False
    """Whether the next record may be long in coming."""


def open_stream(source: Path | BinaryIO, options: StreamOptions) -> Stream:
    """The records of a file or of a pipe. Raises NotFound, or InputError where it is no table or has no state."""
    if isinstance(source, Path):
        if not source.is_file():
            raise NotFound(f"no file {source}")
        with source.open("rb") as file:
            start = file.read(4096)
        if start.startswith(_PARQUET):
            return _parquet(source, options)
        if start.startswith(_BOOKS):
            hint = "save it as CSV: neither can be read row by row"
            raise InputError.of([Problem("a workbook or an archive is not labelled as a stream", "format", hint=hint)])
        notes = Notes()
        lines = decode(source, options.encoding, notes).lines()
    else:
        lines = _piped(source, options.encoding or "utf-8-sig")
    # a pipe may give its first record long after its header, so only the header is waited for
    head = list(islice(lines, HEAD_LINES)) if isinstance(source, Path) else _through_first(lines)
    first = next((line.strip() for line in head if line.strip()), "")
    if not first:
        raise InputError.of([Problem("the table is empty", "empty")])
    rest = chain(head, lines)
    stream = _jsonl(rest, options) if first[0] == "{" else _csv(head, rest, options)
    return replace(stream, is_piped=not isinstance(source, Path))


def _through_first(lines: Iterator[str]) -> list[str]:
    """The lines up to the first that is not blank."""
    head = []
    for line in lines:
        head.append(line)
        if line.strip():
            break
    return head


def _piped(source: BinaryIO, encoding: str) -> Iterator[str]:
    try:
        text = io.TextIOWrapper(source, encoding, newline="\n")
        yield from text
    except LookupError:
        raise InputError(f'unknown encoding "{encoding}"') from None
    except UnicodeDecodeError as error:
        raise InputError(f"standard input is not {encoding} text", hint="say which: --encoding") from error


def _csv(head: list[str], lines: Iterator[str], options: StreamOptions) -> Stream:
    layout = find_layout(head, options.separator, lambda header: assign(header, options.mapping, ("",), labelled=False))
    for _ in range(layout.data_line - 1):
        next(lines)
    state, images = _roles(layout.header, options.mapping)
    return Stream("csv", layout.header, layout.separator, _csv_records(lines, layout, state, images))


def _csv_records(lines: Iterator[str], layout: Any, state: str | None, images: str | None) -> Iterator[Record]:
    csv.field_size_limit(FIELD_LIMIT)
    header, width = layout.header, len(layout.header)
    reader = csv.reader(lines, delimiter=layout.separator, strict=True)
    row = layout.row
    while True:
        try:
            cells = next(reader, None)
        except csv.Error as error:
            line = layout.data_line + reader.line_num - 1
            hint = "clef check lists everything that is wrong with the table"
            raise InputError.of([Problem(f"this is not CSV: {error}", "not_csv", line=line, hint=hint)]) from None
        if cells is None:
            return
        if not cells:
            continue
        row += 1
        found = dict(zip(header, cells, strict=False))
        if len(cells) != width:
            yield Record(row, found, problem=f"{len(cells)} cells; the header has {width}")
        else:
            yield _record(row, found, state, images)


def _jsonl(lines: Iterator[str], options: StreamOptions) -> Stream:
    objects = _objects(lines)
    first = next(objects)
    if isinstance(first[1], str):
        raise InputError.of([Problem(first[1], "not_json", line=first[0])])
    header = tuple(first[1])
    state, images = _roles(header, options.mapping)

    def records() -> Iterator[Record]:
        for number, (_, found) in enumerate(chain([first], objects), 1):
            if isinstance(found, str):
                yield Record(number, {}, problem=found)
            else:
                yield _record(number, found, state, images)

    return Stream("jsonl", header, ",", records())


def _objects(lines: Iterator[str]) -> Iterator[tuple[int, dict[str, Any] | str]]:
    """Line and object, or what is wrong with the line."""
    for line, text in enumerate(lines, 1):
        if not text.strip():
            continue
        try:
            found = json.loads(text)
        except ValueError as error:
            yield line, f"line {line} is not JSON: {error}"
            continue
        yield line, found if isinstance(found, dict) else f"line {line} is no JSON object: {shown(found)}"


def _parquet(path: Path, options: StreamOptions) -> Stream:
    try:
        import pyarrow.parquet as pq
    except ImportError:
        hint = "pip install 'clef[parquet]', or give CSV or JSONL"
        problem = Problem("Parquet needs the pyarrow library, which is not installed", "missing_library", hint=hint)
        raise InputError.of([problem]) from None
    try:
        file = pq.ParquetFile(path)
    except Exception as error:
        raise InputError(f"{path.name} is no Parquet file: {error}") from error
    header = tuple(str(name) for name in file.schema_arrow.names)
    state, images = _roles(header, options.mapping)

    def records() -> Iterator[Record]:
        rows = (row for batch in file.iter_batches(BATCH) for row in batch.to_pylist())
        for number, cells in enumerate(rows, 1):
            yield _record(number, cells, state, images)

    return Stream("parquet", header, ",", records(), file.schema_arrow)


def _roles(header: tuple[str, ...], mapping: Mapping[str, str]) -> tuple[str | None, str | None]:
    """The columns of the state and of the images. Raises InputError where it is not clear which is the state."""
    twice = {name for name in header if header.count(name) > 1}
    roles = assign(header, mapping, ("",), labelled=False)
    problems = [Problem(f"two columns are called {shown(name)}", "doubled_column") for name in sorted(twice)]
    problems += [
        Problem(
            f"there is no column {shown(name)}", "unknown_column", hint=f"the columns are {', '.join(header)[:200]}"
        )
        for role, name in roles.unmapped.items()
    ]
    if "state" in roles.doubled:
        names = " and ".join(shown(header[at]) for at in roles.doubled["state"])
        problems.append(
            Problem(f"{names} may each be the state", "doubled_role", hint="say which: --column state:NAME")
        )
    elif not {"state", "images"} & set(roles.columns) and "state" not in roles.unmapped:
        hint = f"name one of them: --column state:NAME; it is found by itself when called {SYNONYMS['state'][0]}"
        problems.append(Problem(f"no column holds the state: {', '.join(header)[:200]}", "no_state", hint=hint))
    if problems:
        raise InputError.of(problems, "the table")
    state, images = (roles.columns.get(role) for role in ("state", "images"))
    return None if state is None else header[state], None if images is None else header[images]


def _record(row: int, cells: Mapping[str, Any], state: str | None, images: str | None) -> Record:
    try:
        pictures = checked_images(cells.get(images) if images else None, images or "images")
    except InputError as error:
        return Record(row, cells, problem="; ".join(f"{one.column}: {one.message}" for one in error.problems))
    found = cells.get(state) if state else None
    if found is None or found in ("", {}, []) or (isinstance(found, str) and not found.strip()):
        return Record(row, cells, "", pictures) if pictures else Record(row, cells, problem="the state is empty")
    return Record(row, cells, found if isinstance(found, str | dict | list) else str(found), pictures)
