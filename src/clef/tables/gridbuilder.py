"""Turns records, from whatever reader, into columns of one length; what does not fit the header is a problem.

Texts that repeat in a column are kept once: that is what a million rows of ten options weigh little for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from clef.errors import Problem, TooLarge
from clef.tables.table import Notes, shown

_BLOCK = 4096
"""Records that are turned into columns at a time."""


def is_blank(cells: Sequence[str]) -> bool:
    """Whether a record has nothing but spaces; a spreadsheet shows it as an empty row."""
    return not any(map(str.strip, cells))


class GridBuilder:
    """Gathers records into columns, block by block; texts that repeat are kept once."""

    def __init__(self, width: int, optional_tail: int, max_rows: int, notes: Notes) -> None:
        self.columns: list[list[Any]] = [[] for _ in range(width)]
        self.rows: list[int] = []
        self.lines: list[int | None] = []
        self.notes = notes
        self._texts: list[dict[str, str] | None] = [{} for _ in range(width)]
        self._block: list[list[str]] = []
        self._optional_tail = optional_tail
        self._max_rows = max_rows
        self._cut: list[tuple[int, int | None]] = []
        self._short: list[tuple[int, int | None]] = []

    def extend(self, row: int, line: int | None, records: list[list[str]]) -> None:
        """Add records as wide as the header that follow each other from this row and line on."""
        if not records:
            return
        if any(not cells[0].strip() and is_blank(cells) for cells in records):
            for at, cells in enumerate(records):
                self.fit(row + at, None if line is None else line + at, cells)
            return
        rows = range(row, row + len(records))
        self.rows.extend(rows)
        if line is None:
            self.lines.extend([None] * len(records))
        else:
            self.lines.extend(self.rows[-len(records) :] if line == row else range(line, line + len(records)))
        self._block.extend(records)
        if len(self._block) >= _BLOCK:
            self._flush()

    def fit(self, row: int, line: int | None, cells: list[str]) -> None:
        """Add a record of any width if nothing but empty cells is at stake; a problem otherwise."""
        width = len(self.columns)
        if is_blank(cells):
            self.notes.blank += 1
        elif len(cells) == width:
            self.extend(row, line, [cells])
        elif len(cells) > width and not any(cell.strip() for cell in cells[width:]):
            self._cut.append((row, line))
            self.extend(row, line, [cells[:width]])
        elif width - self._optional_tail <= len(cells) < width:
            self._short.append((row, line))
            self.extend(row, line, [cells + [""] * (width - len(cells))])
        else:
            self._misfit(row, line, cells)

    def _misfit(self, row: int, line: int | None, cells: list[str]) -> None:
        width = len(self.columns)
        text = shown(" | ".join(cells), 80)
        hint = "a cell that contains the separator has to stand in quotes"
        if len(cells) < width:
            hint = "something is missing, or a line break is in a cell without quotes"
        elif any(cell.startswith(' "') for cell in cells):
            hint = "a quote after a space does not start a quoted cell: remove the space"
        message = f"found {len(cells)} cells where the header has {width}: {text}"
        self.notes.bad_records += 1
        self.notes.problem(Problem(message, "width", row, line, None, hint))

    def _flush(self) -> None:
        self._store(list(zip(*self._block, strict=True)))
        self._block.clear()

    def extend_columns(self, row: int, lines: Sequence[int], columns: Sequence[Sequence[str]]) -> None:
        """Add records that follow each other from this row on, given by column; none of them blank."""
        self._flush()
        count = len(columns[0])
        self.rows.extend(range(row, row + count))
        self.lines.extend(self.rows[-count:] if lines == range(row, row + count) else lines)
        self._store(columns)

    def _store(self, columns: Sequence[Sequence[str]]) -> None:
        if len(self.rows) > self._max_rows:
            raise too_many_rows(self._max_rows)
        for at, cells in enumerate(columns):
            texts = self._texts[at]
            if texts is None:
                self.columns[at].extend(cells)
                continue
            self.columns[at].extend(map(texts.setdefault, cells, cells))
            if len(texts) > 64 and len(texts) * 2 > len(self.columns[at]):
                self._texts[at] = None

    def finish(self) -> None:
        """Hand on what is left, and tell what was dropped or filled."""
        self._flush()
        for marks, code, what in (
            (self._cut, "extra_cells", "empty cells beyond the header were dropped"),
            (self._short, "short_rows", "the row ends before the last columns, which are taken as empty"),
        ):
            if marks:
                row, line = marks[0]
                count = f" (here and in {len(marks) - 1:,} more rows)" if len(marks) > 1 else ""
                self.notes.warn(Problem(f"{what}{count}", code, row, line))


def too_many_rows(max_rows: int) -> TooLarge:
    """The error of a table over the row limit."""
    return TooLarge(f"more than {max_rows:,} rows", hint="split the table, or raise the limit (CLEF_MAX_ROWS)")
