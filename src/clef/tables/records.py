"""Turns delimited text into a Grid: records with their spreadsheet row and text line, every one as wide as the header.

Invariants: the header alone decides the width; a record that is wider or narrower is a problem, never shifted or
padded; a quote that swallows rows is found, reported with its lines, and the swallowed lines are read again.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from clef.errors import InputError, Problem
from clef.tables.decoding import TextSource, split_lines
from clef.tables.gridbuilder import GridBuilder, is_blank
from clef.tables.headers import Layout
from clef.tables.table import Grid, Notes, shown

_READ_AGAIN = 200_000
"""Lines that may be read a second time after stray quotes, in all: what keeps a hostile file linear."""
_KEPT = 1 << 20
"""Characters of one record that are moved from one block of text to the next."""


@dataclass(frozen=True)
class Suspect:
    """A record of several lines each of which looks like a row of its own."""

    row: int
    first_line: int
    last_line: int
    lines: tuple[str, ...]


def _below(text: TextSource, skip: int) -> Iterator[str]:
    """Blocks of the text after its first `skip` lines."""
    for block in text.blocks():
        if not skip:
            yield block
            continue
        lines = list(split_lines(block))
        if skip < len(lines):
            yield "".join(lines[skip:])
        skip = max(0, skip - len(lines))


def _whole_records(blocks: Iterator[str]) -> Iterator[str]:
    """The same text, cut before a line that opens a quote which its block does not close."""
    kept = ""
    for more in blocks:
        block = kept + more
        kept = ""
        if block.count('"') % 2:
            cut = block.rfind("\n", 0, block.rfind('"')) + 1
            if block.count('"', cut) % 2 and len(block) - cut < _KEPT:
                block, kept = block[:cut], block[cut:]
        if block:
            yield block
    if kept:
        yield kept


def _has_line_end(cells: Sequence[str]) -> bool:
    whole = "".join(cells)
    return "\n" in whole or "\r" in whole


class RecordReader:
    """Reads the records below the header into a grid; what cannot be a record is a problem in `notes`.

    Lines that are one record, with no quote or quotes around whole cells, are split directly: four times as fast as
    the csv module, and the same. All others go through the csv module one record at a time.
    """

    def __init__(self, text: TextSource, layout: Layout, grid: GridBuilder, notes: Notes) -> None:
        self.separator = layout.separator
        self.width = len(layout.header)
        self.grid = grid
        self.notes = notes
        self._between = [self.separator] * (self.width - 1)
        self.row = layout.row + 1
        """Spreadsheet row of the next record."""
        self.line = layout.data_line
        """Text line of the next record."""
        self.suspects: list[Suspect] = []
        self._blocks = _whole_records(_below(text, layout.data_line - 1))
        self._block: list[str] = []
        self._at = 0
        """Position in the block of the next line to read."""
        self._taken = 0
        """Position in the block behind the lines that the record being read has taken."""
        self._quoted = self._csv_reader()
        self._budget = _READ_AGAIN
        self._doubtful = text.has_nul or text.escaped

    def read(self) -> None:
        """Read to the end."""
        for block in self._blocks:
            if not self._doubtful and self._read_whole(block):
                continue
            self._block, self._at = list(split_lines(block)), 0
            while self._at < len(self._block):
                if not self._doubtful:
                    self._read_plain()
                if self._at < len(self._block):
                    self._read_one()

    def _read_whole(self, block: str) -> bool:
        """Read a block at once, if all of it is records of the header's width and all quotes are around whole cells.

        Quoted cells are taken out first, so that what is left can be split without looking at each line: four times
        as fast as line by line. A block with anything else in it is left to that.
        """
        parts = block.split('"')
        inside, bare = parts[1::2], "\0".join(parts[::2])
        cells = self._split_bare(bare) if len(parts) % 2 else []
        if not cells:
            return False
        columns = self._columns(cells, inside)
        if not columns:
            return False
        if not all(map(str.strip, columns[0])) and any(map(is_blank, zip(*columns, strict=True))):
            return False
        rows = len(columns[0])
        lines = self._line_starts(columns) if _has_line_end(inside) else range(self.line, self.line + rows + 1)
        if lines is None:
            return False
        self.grid.extend_columns(self.row, lines[:-1], columns)
        self.row += rows
        self.line = lines[-1]
        return True

    def _columns(self, cells: list[str], inside: list[str]) -> list[list[str]]:
        """The columns of these cells, quoted ones put back; nothing where a quote is not around a whole cell."""
        width = self.width
        columns = [cells[at :: width + 1] for at in range(width)]
        if not inside:
            return columns
        quoted = [at for at, column in enumerate(columns) if "\0" in column]
        if sum(columns[at].count("\0") for at in quoted) != len(inside):
            return []
        if len(inside) == width * len(columns[0]):
            return [inside[at::width] for at in range(width)]
        back = iter(inside)
        if len(quoted) == 1:
            columns[quoted[0]] = [next(back) if cell == "\0" else cell for cell in columns[quoted[0]]]
            return columns
        cells = [next(back) if cell == "\0" else cell for cell in cells]
        return [cells[at :: width + 1] for at in range(width)]

    def _split_bare(self, bare: str) -> list[str]:
        """The cells of a text without quotes, a line feed after each row's; nothing where a row has another width."""
        separator, width = self.separator, self.width
        end = "\n" if "\n" in bare else "\r"
        returns = bare.count("\r") if end == "\n" else 0
        if not bare.endswith(end):
            returns, bare = (returns + 1, f"{bare}\r\n") if returns else (0, bare + end)
        cells = bare.replace(end, f"{separator}\n{separator}").split(separator)[:-1]
        rows = len(cells) // (width + 1)
        if len(cells) % (width + 1) or cells[width :: width + 1] != ["\n"] * rows or cells.count("\n") != rows:
            return []
        if returns:
            last = [cell[:-1] for cell in cells[width - 1 :: width + 1] if cell[-1:] == "\r"]
            if len(last) != rows or returns != rows:
                return []
            cells[width - 1 :: width + 1] = last
        return cells

    def _line_starts(self, columns: Sequence[Sequence[str]]) -> Sequence[int] | None:
        """The text line of each record and of the one below them, where cells have several lines.

        None where the lines of a record could be rows of their own: then a quote may have gone astray.
        """
        more = [0] * len(columns[0])
        for column, cells in enumerate(columns):
            if not _has_line_end(cells):
                continue
            for at, cell in enumerate(cells):
                ends = cell.count("\n")
                if "\r" in cell:
                    ends += cell.count("\r") - cell.count("\r\n")
                if ends:
                    if more[at] or self._looks_like_rows(cell, column, ends):
                        return None
                    more[at] = ends
        return list(accumulate(more, lambda line, extra: line + 1 + extra, initial=self.line))

    def _looks_like_rows(self, cell: str, column: int, ends: int) -> bool:
        """Whether each line of the only cell with several lines completes, with what is around it, a whole row."""
        if cell.count(self.separator) != ends * (self.width - 1):
            return False
        lines = [line.count(self.separator) for line in split_lines(cell)]
        lines[0] += column
        lines[-1] += self.width - 1 - column
        return all(count == self.width - 1 for count in lines)

    def _read_plain(self) -> None:
        """Read records up to the first line that is none, or not alone one."""
        separator, width, records = self.separator, self.width, []
        for at in range(self._at, len(self._block)):
            text = self._block[at]
            cells = text.rstrip("\r\n").split(separator) if '"' not in text else self._split_quoted(text)
            if len(cells) != width:
                break
            records.append(cells)
        self.grid.extend(self.row, self.line, records)
        self._advance(len(records))

    def _split_quoted(self, text: str) -> list[str]:
        """The cells of a line where all quotes are around whole cells without any inside; nothing for other lines."""
        separator = self.separator
        parts = text.split('"')
        if len(parts) == 3:
            before, cell, after = parts
            after = after.rstrip("\r\n")
            if (before and before[-1] != separator) or (after and after[0] != separator):
                return []
            cells = before[:-1].split(separator) if before else []
            cells.append(cell)
            return cells + after[1:].split(separator) if after else cells
        if len(parts) == 2 * self.width + 1 and parts[2:-1:2] == self._between:
            return parts[1::2] if not parts[0] and not parts[-1].rstrip("\r\n") else []
        return []

    def _advance(self, records: int, lines: int | None = None) -> None:
        self.row += records
        self.line += records if lines is None else lines
        self._at += records if lines is None else lines

    def _csv_reader(self) -> Iterator[list[str]]:
        return csv.reader(self._feed(), delimiter=self.separator, strict=True)

    def _feed(self) -> Iterator[str]:
        """Lines from the next one on; more are fetched while a quote is open at the end of the block."""
        while True:
            if self._taken == len(self._block):
                more = next(self._blocks, None)
                if more is None:
                    return
                self._block.extend(split_lines(more))
            self._taken += 1
            yield self._block[self._taken - 1]

    def _read_one(self) -> None:
        """Read the record that starts at the next line, whatever it is."""
        self._taken = self._at
        try:
            cells = next(self._quoted)
        except csv.Error as error:
            self._quoted = self._csv_reader()
            self._stray_quote(str(error))
            return
        held = self._block[self._at : self._taken]
        if len(held) > 1 and not self._plausible(held, cells):
            self._stray_quote(f"{len(cells)} cells")
            return
        if not self._doubtful or self._usable(cells):
            self.grid.fit(self.row, self.line, cells)
        self._advance(1, len(held))

    def _plausible(self, held: list[str], cells: list[str]) -> bool:
        """Whether a record of several lines is one; it is kept as a suspect where its lines would be rows as well."""
        rows_alike = sum(text.count(self.separator) == self.width - 1 for text in held)
        if len(cells) == self.width and rows_alike == len(held):
            self.suspects.append(Suspect(self.row, self.line, self.line + len(held) - 1, tuple(held)))
        return len(cells) == self.width or not rows_alike

    def _stray_quote(self, reason: str) -> None:
        """Report the record that starts at the next line, and go on with the line below it."""
        lines = self._taken - self._at
        self.notes.bad_records += 1
        self.notes.problem(self._explained(lines, reason))
        if 1 < lines <= self._budget:
            self._budget -= lines
            lines = 1
        self._advance(1, max(1, lines))

    def _explained(self, lines: int, reason: str) -> Problem:
        first = self._block[self._at]
        excerpt = shown(first.rstrip("\r\n"))
        if lines > 1:
            end = "is never closed" if "end of data" in reason else "swallows the rows below it"
            where = f"lines {self.line} to {self.line + lines - 1}"
            message = f"a quote opened in line {self.line} {end} ({where}): {excerpt}"
            hint = 'a quote inside a quoted cell is written twice (""); remove a single one'
        elif "end of data" in reason:
            message, hint = f"a quote opened in line {self.line} is never closed: {excerpt}", "close or remove it"
        else:
            message = f"a quoted cell goes on after its closing quote: {excerpt}"
            hint = 'put the whole cell in quotes and write those inside it twice ("")'
            if '\\"' in first:
                hint += '; this file writes them as \\", which CSV does not know'
        return Problem(message, "stray_quote", self.row, self.line, None, hint)

    def _usable(self, cells: list[str]) -> bool:
        """Whether all characters can be used; a problem otherwise."""
        whole = "".join(cells)
        if "\0" in whole:
            cell = next(cell for cell in cells if "\0" in cell)
            hint = "remove it; if every second character is one, the file is UTF-16"
            problem = Problem(f"a zero byte in {shown(cell)}", "nul", self.row, self.line, None, hint)
        else:
            bad = next((char for char in whole if "\udc80" <= char <= "\udcff"), None)
            if bad is None:
                return True
            message = f"byte 0x{ord(bad) - 0xDC00:02X} is not UTF-8, as the rest of the file is"
            hint = "save the file as UTF-8, or choose its encoding"
            problem = Problem(message, "not_utf8", self.row, self.line, None, hint)
        self.notes.bad_records += 1
        self.notes.problem(problem)
        return False


def read_records(
    text: TextSource, layout: Layout, optional_tail: int, max_rows: int, notes: Notes
) -> tuple[Grid, list[Suspect]]:
    """Every record below the header. `optional_tail` columns at the end may be missing from a record.

    Raises TooLarge beyond `max_rows`.
    """
    grid = GridBuilder(len(layout.header), optional_tail, max_rows, notes)
    reader = RecordReader(text, layout, grid, notes)
    try:
        reader.read()
    except UnicodeError as error:
        raise InputError(f"the text cannot be read: {error}") from None
    grid.finish()
    return Grid(layout.header, grid.columns, grid.rows, grid.lines, layout.row, layout.line), reader.suspects


def drop_swallowed(grid: Grid, suspects: list[Suspect], separator: str, column: int | None, notes: Notes) -> None:
    """Take out records that a stray quote has made of several rows.

    Each of their lines has the header's width. That may be chance, so a record is taken out only where each line,
    read alone, also repeats a cell of `column` (the question) from another record; without that it is a warning.
    """
    if not suspects:
        return
    own = {suspect.row for suspect in suspects}
    known: set[str] = set()
    if column is not None:
        known = {cell for cell, row in zip(grid.columns[column], grid.rows, strict=True) if row not in own}
    bad = set()
    for suspect in suspects:
        alone = [line.rstrip("\r\n").split(separator) for line in suspect.lines]
        repeats = [column is not None and cells[column].strip('"') for cells in alone]
        where = f"lines {suspect.first_line} to {suspect.last_line}"
        if all(repeat in known for repeat in repeats) or (len(repeats) > 1 and repeats[0] and len(set(repeats)) == 1):
            bad.add(suspect.row)
            message = f"a stray quote makes one row of {where}"
            hint = "remove the quote, or write it twice inside a quoted cell"
            notes.bad_records += 1
            notes.problem(Problem(message, "stray_quote", suspect.row, suspect.first_line, None, hint))
        elif len(repeats) > 2:
            message = f"{where} are one row with line breaks in a cell; each of them could be a row"
            hint = "check that no quote is missing"
            notes.warn(Problem(message, "several_lines", suspect.row, suspect.first_line, None, hint))
    if bad:
        keep = [at for at, row in enumerate(grid.rows) if row not in bad]
        grid.columns = [[cells[at] for at in keep] for cells in grid.columns]
        grid.rows = [grid.rows[at] for at in keep]
        grid.lines = [grid.lines[at] for at in keep]
