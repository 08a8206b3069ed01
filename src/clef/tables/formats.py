"""Turns any source (bytes, a file, a frame, a dataset) into a Table, by finding out what it is.

What a file is called is a hint only; what it begins with decides.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from clef.errors import InputError, NotFound, Problem, TooLarge
from clef.tables.assemble import assemble, finished
from clef.tables.columns import Roles, assign, role_problems
from clef.tables.decoding import TextSource, decode
from clef.tables.documents import Item, is_one_document, read_document, read_lines
from clef.tables.files import (
    MAX_TABLE_BYTES,
    Album,
    Archive,
    Files,
    Folder,
    folders_as_grid,
    is_book,
    named_images,
    table_in,
    with_images,
)
from clef.tables.frames import from_dataset, from_frame, from_parquet, is_dataset, is_frame
from clef.tables.guards import OUR_COLUMNS, OWN_ROLES, is_own_export, unguard
from clef.tables.headers import HEAD_LINES, SPELT, Judge, find_layout, readable
from clef.tables.records import drop_swallowed, read_records
from clef.tables.shapes import ShapeReader, flat_grid, shape_of
from clef.tables.sheets import Workbook, read_sheet
from clef.tables.table import Grid, Notes, ReadOptions, Table, TableFacts, shown

_DEFAULTS = ReadOptions()


def read(source: Any, options: ReadOptions = _DEFAULTS) -> Table:
    """Read a table: bytes, a path, a pandas frame, any Arrow table, or a Hugging Face dataset.

    What is wrong with the content is in the table's problems. Raises InputError for what is wrong with the request:
    a file that is not there, an unknown encoding or sheet, TooLarge for more rows than `max_rows`.
    """
    notes = Notes()
    with _no_collections():
        try:
            return _read(source, options, notes)
        except (TooLarge, NotFound):
            raise
        except InputError as error:
            if any(problem.code in _REQUEST for problem in error.problems):
                raise
            for problem in error.problems or (Problem(error.message, "unreadable", hint=error.hint),):
                notes.problem(problem)
            return finished((), notes, TableFacts())


_REQUEST = frozenset({"unknown_encoding", "unknown_sheet", "bad_separator", "bad_source", "missing_library"})
"""Problems of what was asked for rather than of the table."""


@contextmanager
def _no_collections() -> Iterator[None]:
    """Reading makes many objects and no cycles; looking for cycles took a quarter of its time.

    Freezing and unfreezing counts what was made among the old objects, without a look at each.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.freeze()
            gc.unfreeze()
            gc.enable()


def _read(source: Any, options: ReadOptions, notes: Notes) -> Table:
    if isinstance(source, bytearray | memoryview):
        source = bytes(source)
    if isinstance(source, str):
        source = Path(source)
    if isinstance(source, Path) and source.is_dir():
        return _inside(Folder(source), options, notes, TableFacts("folder"))
    if isinstance(source, Path) and not source.is_file():
        raise NotFound(f"no file {source}")
    if isinstance(source, bytes | Path):
        if isinstance(source, Path) and options.beside:
            options = replace(options, album=Album(Folder(source.parent), whole=False))
        return _file(source, options, notes)
    if is_dataset(source):
        return _grid_table(from_dataset(source, options.max_rows, notes), options, notes, TableFacts("dataset"))
    if is_frame(source):
        return _grid_table(from_frame(source, options.max_rows, notes), options, notes, TableFacts("frame"))
    problem = Problem(
        f"cannot read a table from a {type(source).__name__}", "bad_source", hint="give bytes, a path or a frame"
    )
    raise InputError.of([problem])


_FOREIGN = (
    (b"%PDF", "a PDF"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"7z\xbc\xaf", "a 7z archive"),
    (b"\x28\xb5\x2f\xfd", "a Zstandard archive"),
    (b"GGUF", "a model"),
    (b"SQLite format 3\0", "an SQLite database"),
    (b"\x89PNG", "an image"),
)
_ZIP, _NO_FILES = b"PK\x03\x04", b"PK\x05\x06"
_BOOKS = ((_ZIP, "xlsx"), (b"\xd0\xcf\x11\xe0", "xls"))
_JSON_NAMES = (".jsonl", ".ndjson", ".json", ".jevl")


def _inside(files: Files, options: ReadOptions, notes: Notes, facts: TableFacts) -> Table:
    """The table in an archive or a folder, with the images it names; or the one that its folders make."""
    name = table_in(files)
    if name is None:
        return _grid_table(folders_as_grid(files), replace(options, album=Album(files)), notes, facts)
    content = files.read(name, MAX_TABLE_BYTES)
    if _start(content).startswith(_ZIP) and not is_book(content):
        raise InputError(
            f"{shown(name)} is an archive, not a table", hint="give CSV, XLSX, ODS, JSON, JSONL or Parquet"
        )
    return _file(content, replace(options, name=name, album=Album(files, name)), notes)


def _file(source: bytes | Path, options: ReadOptions, notes: Notes) -> Table:
    start = _start(source)
    if start.startswith((_ZIP, _NO_FILES)) and not is_book(source):
        return _inside(Archive(source), options, notes, TableFacts("zip"))
    for mark, what in _FOREIGN:
        if start.startswith(mark):
            raise InputError(f"this is {what}, not a table", hint="give CSV, XLSX, ODS, JSON, JSONL or Parquet")
    if start.startswith(b"PAR1"):
        return _grid_table(from_parquet(source, options.max_rows, notes), options, notes, TableFacts("parquet"))
    kind = next((kind for mark, kind in _BOOKS if start.startswith(mark)), None)
    if kind:
        ods = kind == "xlsx" and b"opendocument.spreadsheet" in start[:200]
        return _sheet(source, options, notes, TableFacts("ods" if ods else kind))
    options = replace(options, separator=_told_separator(options.separator))
    text = decode(source, options.encoding, notes)
    name = options.name or (source.name if isinstance(source, Path) else "")
    if _is_json(text, name):
        return _json(text, options, notes)
    return _delimited(text, options, notes)


def _start(source: bytes | Path) -> bytes:
    if isinstance(source, bytes):
        return source[:4096]
    with source.open("rb") as file:
        return file.read(4096)


def _is_json(text: TextSource, name: str) -> bool:
    """Whether the first thing is an object or a list; a header in brackets is neither, unless the name says JSON."""
    first = next((stripped for line in text.lines() if (stripped := line.strip())), "")
    if first[:1] not in ("{", "["):
        return False
    if name.lower().endswith(_JSON_NAMES):
        return True
    return first[:1] == "{" or first == "[" or first[1:].lstrip()[:1] == "{"


def _json(text: TextSource, options: ReadOptions, notes: Notes) -> Table:
    document = is_one_document(text)
    facts = TableFacts("json" if document else "jsonl", encoding=text.encoding, encoding_guessed=text.guessed)
    items = (read_document if document else read_lines)(text, options.max_rows, notes)
    reader = ShapeReader(options, notes)
    flat: list[Item] = []
    for item in items:
        shape = shape_of(item.value)
        if shape is None and not reader.read:
            flat.append(item)
        elif shape is None or flat:
            notes.bad_records += 1
            message = f"this object is of another kind than the first one: {shown(item.value)}"
            notes.problem(Problem(message, "shape", item.row, item.line))
        else:
            reader.add(item, shape)
    if reader.read:
        return reader.table(facts)
    if not flat:
        if not notes.problems:
            notes.problem(Problem("the file is empty", "empty"))
        return finished((), notes, replace(facts, read=notes.bad_records))
    return _grid_table(flat_grid(flat), options, notes, facts)


def _sheet(source: bytes | Path, options: ReadOptions, notes: Notes, facts: TableFacts) -> Table:
    book = Workbook(source, options.sheet)
    facts = replace(facts, sheet=book.sheet, sheets=book.sheets)
    return _grid_table(read_sheet(book, _judge(options), options.max_rows, notes), options, notes, facts)


def _told_separator(separator: str | None) -> str | None:
    """The separator the user means, who may have written its name."""
    if separator is None:
        return None
    meant = SPELT.get(separator.lower(), separator)
    if len(meant) != 1 or meant in '"\r\n\0':
        hint = "give one character, such as ; or tab"
        raise InputError.of([Problem(f"{shown(separator)} cannot separate columns", "bad_separator", hint=hint)])
    return meant


def _judge(options: ReadOptions) -> Judge:
    ids = tuple(options.questions_by_id)

    def judge(header: Sequence[str]) -> Roles:
        mapping = named_images(header, options.mapping) if options.album else options.mapping
        return assign(header, mapping, ids, labelled=options.labelled)

    return judge


def _delimited(text: TextSource, options: ReadOptions, notes: Notes) -> Table:
    judge = _judge(options)
    facts = TableFacts("csv", encoding=text.encoding, encoding_guessed=text.guessed)
    layout, unreadable = readable(find_layout(list(islice(text.lines(), HEAD_LINES)), options.separator, judge))
    notes.warnings.extend(layout.warnings)
    facts = replace(facts, separator=layout.separator, header_row=layout.row, columns=layout.header)
    if is_own_export(layout.header):
        options = replace(options, mapping={**OWN_ROLES, **options.mapping})
        facts = replace(facts, own_export=True)
        judge = _judge(options)
    roles = judge(layout.header)
    wrong = unreadable + role_problems(roles, layout.header, layout.row, layout.line)
    if wrong:
        return _without_roles(wrong, roles, notes, facts)
    grid, suspects = read_records(text, layout, _optional_tail(roles, layout.header), options.max_rows, notes)
    drop_swallowed(grid, suspects, layout.separator, roles.columns.get("question"), notes)
    if facts.own_export:
        grid = _own(grid)
        roles = judge(grid.header)
    return _with_roles(grid, roles, options, notes, facts)


def _own(grid: Grid) -> Grid:
    """A CSV that clef wrote, as the table it came from: results left out, guards taken off."""
    keep = [at for at, name in enumerate(grid.header) if at >= len(OUR_COLUMNS) or name in OWN_ROLES.values()]
    columns = [[unguard(cell) for cell in grid.columns[at]] for at in keep]
    return replace(grid, header=tuple(unguard(grid.header[at]) for at in keep), columns=columns)


def _optional_tail(roles: Roles, header: tuple[str, ...]) -> int:
    """How many columns at the end a record can do without."""
    about = "state" if "state" in roles.columns else "images"
    needed = [roles.columns[role] for role in (about, "question", "label") if role in roles.columns]
    return len(header) - 1 - max([*needed, *roles.wide.values()])


def _grid_table(grid: Grid, options: ReadOptions, notes: Notes, facts: TableFacts) -> Table:
    roles = _judge(options)(grid.header)
    facts = replace(facts, header_row=grid.header_row, columns=grid.header, read=len(grid.rows) + notes.bad_records)
    wrong = role_problems(roles, grid.header, grid.header_row, grid.header_line)
    return _without_roles(wrong, roles, notes, facts) if wrong else _with_roles(grid, roles, options, notes, facts)


def _without_roles(wrong: list[Problem], roles: Roles, notes: Notes, facts: TableFacts) -> Table:
    """The table of a header that cannot be used; its facts let the user say which column is what."""
    for problem in wrong:
        notes.problem(problem)
    return finished((), notes, replace(facts, roles=roles.named(facts.columns)))


def _with_roles(grid: Grid, roles: Roles, options: ReadOptions, notes: Notes, facts: TableFacts) -> Table:
    if not grid.rows and not notes.problems:
        notes.problem(Problem("no rows below the header", "no_rows", grid.header_row, grid.header_line))
    if options.album:
        grid = with_images(grid, roles, options.album)
    return assemble(grid, roles, options, notes, facts)
