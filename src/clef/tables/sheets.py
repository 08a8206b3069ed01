"""Turns a workbook (XLSX, ODS, XLS) into a Grid, with its cells as a spreadsheet program shows them.

Numbers lose a decimal part that is zero, since a workbook holds 1 as 1.0; true and false are TRUE and FALSE; dates are
in ISO form. Row numbers are the sheet's own, whatever is empty above.
"""

from __future__ import annotations

import datetime as dt
import io
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clef.errors import InputError, Problem
from clef.tables.gridbuilder import GridBuilder
from clef.tables.headers import Judge, find_header_row
from clef.tables.table import Grid, Notes

if TYPE_CHECKING:
    from python_calamine import CalamineSheet, CalamineWorkbook

_LOOKED_AT = 20
"""Rows in which the header is looked for."""


class Workbook:
    """An open workbook. Raises InputError where the bytes are none, or hold no sheet of that name."""

    def __init__(self, source: bytes | Path, sheet: str | None) -> None:
        book = _opened(source)
        self.sheets = tuple(book.sheet_names)
        if not self.sheets:
            raise InputError("the workbook has no sheets")
        if sheet is not None and sheet not in self.sheets:
            listed = ", ".join(f'"{name}"' for name in self.sheets)
            problem = Problem(f'no sheet "{sheet}"', "unknown_sheet", column="sheet", hint=f"the sheets are {listed}")
            raise InputError.of([problem])
        self.sheet = self.sheets[0] if sheet is None else sheet
        self._cells: CalamineSheet = _guarded(lambda: book.get_sheet_by_name(self.sheet))

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """(spreadsheet row, cells as text) from row 1; the reader leaves out empty columns at the left, not rows."""
        left = [""] * (self._cells.start or (0, 0))[1]
        for row, cells in enumerate(_guarded(self._cells.iter_rows), 1):
            yield row, left + [_text(cell) for cell in cells]

    def has_merged_cells(self, below: int) -> bool:
        """Whether cells of several rows under this row are merged; only their first row has the text."""
        ranges = self._cells.merged_cell_ranges or ()
        return any(end[0] > start[0] and end[0] >= below for start, end in ranges)


def _opened(source: bytes | Path) -> CalamineWorkbook:
    from python_calamine import CalamineWorkbook

    given = io.BytesIO(source) if isinstance(source, bytes) else source
    book: CalamineWorkbook = _guarded(lambda: CalamineWorkbook.from_object(given))
    return book


def _guarded(step: Any) -> Any:
    """Run a step of the workbook reader; its errors, and a panic of its native code, are about the file."""
    try:
        return step()
    except Exception as error:
        raise InputError(f"the workbook cannot be read: {error}", hint="save it again, or save it as CSV") from None
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise InputError("the workbook cannot be read: it is damaged", hint="save it again as XLSX or CSV") from None


def _text(cell: Any) -> str:
    if isinstance(cell, str):
        return cell
    if isinstance(cell, bool):
        return "TRUE" if cell else "FALSE"
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() and abs(cell) < 1e15 else repr(cell)
    if isinstance(cell, dt.datetime):
        return cell.date().isoformat() if cell.time() == dt.time() else cell.isoformat(" ")
    return "" if cell is None else str(cell)


def read_sheet(book: Workbook, judge: Judge, max_rows: int, notes: Notes) -> Grid:
    """The records of the sheet below its header."""
    rows = book.rows()
    head = list(islice(rows, _LOOKED_AT))
    row, header, warnings = find_header_row(head, judge)
    notes.warnings.extend(warnings)
    grid = GridBuilder(len(header), 0, max_rows, notes)
    below: Iterator[tuple[int, list[str]]] = chain([entry for entry in head if entry[0] > row], rows)
    width = len(header)
    for at, found in below:
        cells = found + [""] * (width - len(found))
        while len(cells) > width and not cells[-1].strip():
            cells.pop()
        grid.fit(at, None, cells)
    grid.finish()
    if book.has_merged_cells(row):
        hint = "write the text into each of its rows"
        notes.warn(Problem("the sheet has merged cells: only their first row has the text", "merged", hint=hint))
    return Grid(header, grid.columns, grid.rows, _no_lines(grid.rows), row, None)


def _no_lines(rows: Sequence[int]) -> list[None]:
    return [None] * len(rows)
