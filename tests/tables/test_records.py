"""Turns delimited text into records, and checks the fast ways of doing it against the csv module of Python."""

import csv
import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clef.tables import ReadOptions, decoding, read, records
from clef.tables.decoding import TextSource
from clef.tables.headers import Layout
from clef.tables.records import read_records
from clef.tables.table import Notes

HEADER = ("context", "question", "answer")
PLAIN = st.text("ab é", min_size=1, max_size=4)
WITH_QUOTES = st.builds('{}"{}'.format, PLAIN, st.text('a"', max_size=3))
QUOTED = st.text('ab,"\n\r é', max_size=6).map(lambda text: '"' + text.replace('"', '""') + '"')
CELL = st.one_of(PLAIN, PLAIN, QUOTED, WITH_QUOTES, st.just(""))
ROW = st.tuples(CELL, CELL, CELL).map(",".join)
END = st.sampled_from(["\n", "\r\n", "\r"])


@settings(max_examples=500)
@given(
    st.lists(st.one_of(ROW, ROW, ROW, st.just(""), st.just(",,")), min_size=1, max_size=8),
    st.lists(END, min_size=8, max_size=8) | END.map(lambda end: [end] * 8),
    st.sampled_from([1, 3, 16, 1 << 18]),
    st.booleans(),
)
def test_records_are_those_of_the_csv_module(rows: list[str], ends: list[str], size: int, last: bool) -> None:
    text = "".join(row + end for row, end in zip(rows, ends, strict=False))
    if not last:
        text = text.rstrip("\r\n")
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    expected, line = [], 2
    for row, cells in enumerate(reader, 2):
        if any(cell.strip() for cell in cells):
            expected.append((row, line, tuple(cells)))
        line = reader.line_num + 2
    notes = Notes()
    layout = Layout(",", HEADER, 1, 1, 2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decoding, "_BLOCK", size)
        patch.setattr(records, "_KEPT", max(4, size))
        grid, _ = read_records(TextSource(f"header\n{text}".encode(), "utf-8"), layout, 0, 1000, notes)
    found = zip(grid.rows, grid.lines, zip(*grid.columns, strict=True), strict=True)
    other_widths = [entry for entry in expected if len(entry[2]) != len(HEADER)]
    assert bool(notes.problems) == bool(other_widths)
    if not other_widths:
        assert list(found) == expected


@pytest.mark.parametrize(
    ("name", "character"), [("tab", "\t"), ("\\t", "\t"), ("Semicolon", ";"), ("comma", ","), ("bar", "|"), ("~", "~")]
)
def test_a_separator_may_be_told_by_its_name(name: str, character: str) -> None:
    data = character.join(["context", "question", "answer", "note"]) + "\n" + character.join(["x", "q", "a", "n"])
    table = read((data + "\n" + character.join(["y", "q", "b", "n"])).encode(), ReadOptions(separator=name))
    assert table.facts.separator == character
    assert len(table.require()) == 2


def test_a_told_separator_wins_over_the_header() -> None:
    table = read(b"context;question,answer;note\nx;q,a;b\n", ReadOptions(separator=","))
    assert table.facts.separator == ","
    assert table.facts.columns == ("context;question", "answer;note")
    assert [problem.code for problem in table.problems] == ["missing_column"] * 3


def test_a_record_that_is_much_longer_than_a_block_is_one_record() -> None:
    cell = "word, word\n" * 300_000
    table = read(f'context,question,answer,options\n"{cell}",q,a,a|b\nx,q,b,a|b\n'.encode())
    assert table.require()[0].state == cell
    assert table.examples[1].line == 300_003


def test_cells_longer_than_the_csv_modules_own_limit_are_read_first_thing() -> None:
    csv.field_size_limit(131_072)  # what a fresh process has
    long = "a;b, c | 'd' " * 20_000
    table = "context,question,answer,options\n" + f'"{long}",Q?,a,a|b\n' * 3
    found = read(table.encode())
    assert [example.state for example in found.examples] == [long] * 3
    assert found.problems == ()
