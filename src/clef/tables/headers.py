"""Turns the first lines of delimited text into its separator and its header.

The separator is the one whose header has the needed columns; prose in the cells has no say. Blank lines and title
lines above the header are passed over and told.
"""

from __future__ import annotations

import csv
import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from clef.errors import InputError, Problem
from clef.tables.columns import Roles
from clef.tables.table import shown

USUAL = (",", ";", "\t", "|")
NAMES = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar", " ": "space"}
SPELT = {name: separator for separator, name in NAMES.items()} | {"\\t": "\t", "pipe": "|"}
"""Names of separators as people write them."""
HEAD_LINES = 200
_HEAD_RECORDS = 20
_HEAD_CHARS = 100_000
"""Characters of a line that are looked at; no header is longer."""
_SEP_LINE = re.compile(r'^"?sep=(.)"?[\r\n;,\t|]*$', re.IGNORECASE | re.DOTALL)
_NOT_TEXT = re.compile("[\udc80-\udcff]+")
"""Bytes that are no UTF-8, as the decoder leaves them."""
_NO_SEPARATORS = frozenset("\"'_\r\n \0\ufeff")

Judge = Callable[[Sequence[str]], Roles]


@dataclass(frozen=True)
class Layout:
    """Where the header is and what separates columns."""

    separator: str
    header: tuple[str, ...]
    row: int
    """Spreadsheet row of the header."""
    line: int
    """Text line where the header starts."""
    data_line: int
    """Text line below the header."""
    warnings: tuple[Problem, ...] = ()


@dataclass(frozen=True)
class _Candidate:
    separator: str
    header: tuple[str, ...]
    roles: Roles
    row: int
    line: int
    data_line: int


FIELD_LIMIT = 2**31 - 1
"""Characters of a cell that the csv module takes; its own limit of 131,072 is less than a document may have."""


def find_layout(head: Sequence[str], separator: str | None, judge: Judge) -> Layout:
    """The layout of a text that begins with these lines. Raises InputError, with what was tried, where none stands out.

    `judge` tells the roles a header would have. A line `sep=;` is honoured and is not counted as a row, since
    spreadsheet programs hide it.
    """
    csv.field_size_limit(FIELD_LIMIT)
    lines = [line[:_HEAD_CHARS] for line in head[:HEAD_LINES]]
    told = _SEP_LINE.match(lines[0]) if lines else None
    warnings = []
    if told:
        lines[0] = ""
        separator = separator or told[1]
        message = f"the first line says that {_named(told[1])} separates columns; it is not counted as a row"
        warnings.append(Problem(message, "sep_line", line=1))
    hidden = 1 if told else 0
    candidates = _candidates(lines[hidden:], separator)
    found = _best(candidates, judge)
    if found.row > 1:
        warnings.append(Problem(_above(found.row), "above_header", found.row, found.line + hidden))
    line, data_line = found.line + hidden, found.data_line + hidden
    return Layout(found.separator, found.header, found.row, line, data_line, tuple(warnings))


def readable(layout: Layout) -> tuple[Layout, list[Problem]]:
    """The layout with U+FFFD for header bytes that are no text, and a problem for each such column."""
    bad = [name for name in layout.header if any("\udc80" <= char <= "\udcff" for char in name)]
    if not bad:
        return layout, []
    header = tuple(_NOT_TEXT.sub("\ufffd", name) for name in layout.header)
    hint = "save the file as UTF-8, or choose its encoding"
    problems = [
        Problem(f"the column name {shown(name)} is not UTF-8", "not_utf8", layout.row, layout.line, None, hint)
        for name in bad
    ]
    return replace(layout, header=header), problems


def _named(separator: str) -> str:
    return (
        f'{NAMES[separator]} "{separator}"'
        if separator in NAMES and separator != "\t"
        else NAMES.get(separator, shown(separator))
    )


_Header = tuple[str, tuple[str, ...], int, int, int]


def _candidates(lines: Sequence[str], separator: str | None) -> list[list[_Header]]:
    """Possible headers in groups: the separators tried first, then all other punctuation."""
    if separator is not None:
        return [_headers(lines, separator)]
    usual = [header for candidate in USUAL for header in _headers(lines, candidate)]
    seen = {char for line in lines[:_HEAD_RECORDS] for char in set(line) if _may_separate(char)}
    other = [header for candidate in sorted(seen.difference(USUAL)) for header in _headers(lines, candidate)]
    return [usual, other]


def _may_separate(char: str) -> bool:
    if char in _NO_SEPARATORS or char.isalnum():
        return False
    return unicodedata.category(char)[0] in "PS" or char in "\t\x01\x1e\x1f"


def _headers(lines: Sequence[str], separator: str) -> list[_Header]:
    """The first records under this separator as (separator, cells, row, line, next line)."""
    reader = csv.reader(lines, delimiter=separator)
    headers: list[_Header] = []
    line = 1
    for row, record in enumerate(reader, 1):
        cells = tuple(cell.replace("\ufeff", "").strip() for cell in record)
        if any(cells):
            headers.append((separator, cells, row, line, reader.line_num + 1))
        line = reader.line_num + 1
        if len(headers) == _HEAD_RECORDS:
            break
    return headers


def _best(groups: Sequence[Sequence[_Header]], judge: Judge) -> _Candidate:
    judged = [[_judged(header, judge) for header in group] for group in groups]
    for group in judged:
        complete = [candidate for candidate in group if candidate.roles.complete]
        if complete:
            first = min(candidate.line for candidate in complete)
            return _only([candidate for candidate in complete if candidate.line == first])
    everything = [candidate for group in judged for candidate in group]
    if not everything:
        raise InputError.of([Problem("the file is empty", "empty", hint="it has no header and no rows")])
    first = min(candidate.line for candidate in everything)
    usual = [candidate for candidate in judged[0] if candidate.line == first]
    promising = [candidate for candidate in usual if len(candidate.header) > 1] or usual[:1]
    most = max(candidate.roles.found for candidate in promising)
    best = [candidate for candidate in promising if candidate.roles.found == most]
    widest = max(len(candidate.header) for candidate in best)
    return _only([candidate for candidate in best if most or len(candidate.header) == widest])


def _judged(header: _Header, judge: Judge) -> _Candidate:
    separator, cells, row, line, data_line = header
    return _Candidate(separator, cells, judge(cells), row, line, data_line)


def _only(candidates: Sequence[_Candidate]) -> _Candidate:
    if len(candidates) == 1:
        return candidates[0]
    tried = "; ".join(
        f"{_named(candidate.separator)} gives {', '.join(shown(name, 30) for name in candidate.header[:6])}"
        for candidate in candidates
    )
    first = candidates[0]
    hint = "say which separator to use"
    raise InputError.of(
        [Problem(f"the column separator is not clear: {tried}", "separator", first.row, first.line, hint=hint)]
    )


def find_header_row(head: Sequence[tuple[int, list[str]]], judge: Judge) -> tuple[int, tuple[str, ...], list[Problem]]:
    """(row, header, warnings) of the first of these rows that has the needed columns, else of the first with text."""
    rows = [(row, _trimmed(cells)) for row, cells in head]
    filled = [(row, cells) for row, cells in rows if cells]
    if not filled:
        raise InputError.of([Problem("the table is empty", "empty", hint="it has no header and no rows")])
    row, header = next(((row, cells) for row, cells in filled if judge(cells).complete), filled[0])
    warnings = []
    if row > 1 and any(above < row for above, _ in filled):
        warnings.append(Problem(_above(row), "above_header", row))
    return row, header, warnings


def _trimmed(cells: Sequence[str]) -> tuple[str, ...]:
    names = [cell.replace("\ufeff", "").strip() for cell in cells]
    while names and not names[-1]:
        names.pop()
    return tuple(names)


def _above(row: int) -> str:
    return (
        f"rows 1 to {row - 1} are above the header and left out"
        if row > 2
        else "row 1 is above the header and left out"
    )
