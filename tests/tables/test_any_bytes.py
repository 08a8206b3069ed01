"""Turns arbitrary bytes into the one promise a reader makes about them: a Table, or an InputError."""

import random
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from clef.errors import InputError
from clef.tables import ReadOptions, Table, read

CASES = Path(__file__).parent / "cases"
FILES = sorted(path for path in CASES.iterdir() if not path.name.startswith(".") and ".expect." not in path.name)
STARTS = [
    b"",
    b"\xef\xbb\xbf",
    b"\xff\xfe",
    b"\xfe\xff",
    b"\xff\xfe\x00\x00",
    b"PK\x03\x04",
    b"PAR1",
    b"\xd0\xcf\x11\xe0",
]
STARTS += [b"context,question,answer,options\n", b"sep=;\n", b'{"state": ', b"[", b'{"v": 1, "request": {', b"%PDF"]
CSV_TEXT = st.text(alphabet='ab,;|"\n\r\t \\=\0é\ufeff', max_size=80)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
KEYS = [
    "state",
    "questions",
    "labels",
    "expected",
    "expect",
    "label",
    "request",
    "v",
    "gold",
    "instructions",
    "criteria",
]
OBJECTS = st.dictionaries(
    st.sampled_from([*KEYS, "context", "question", "answer", "options", "type", "images"]), VALUES
)


def read_safely(data: bytes, options: ReadOptions | None = None) -> Table | None:
    """The table, or None where the reader refuses; any other outcome fails the test."""
    try:
        table = read(data, options or ReadOptions())
    except InputError:
        return None
    table.preview()
    assert table.facts.examples == len(table.examples)
    assert table.facts.used + table.facts.skipped == table.facts.read
    assert table.examples or table.problems
    return table


@settings(max_examples=400)
@given(st.sampled_from(STARTS), st.binary(max_size=200))
@example(b"", b"9" * 5000)
@example(b'{"state": ', b"9" * 5000 + b"}")
@example(b"", b"[" * 100_000)
@example(b"", b'{"a":' * 50_000)
@example(b"", b'"')
@example(b"", b"\xff\xfe")
@example(b"", b"\xff\xfea")
def test_bytes(start: bytes, rest: bytes) -> None:
    read_safely(start + rest)


@settings(max_examples=400)
@given(
    CSV_TEXT,
    st.sampled_from(
        ["context,question,answer\n", "context;question;answer;options\n", '"context",question,answer,type\n']
    ),
)
def test_delimited_text(rest: str, header: str) -> None:
    read_safely((header + rest).encode())


@settings(max_examples=300)
@given(st.lists(OBJECTS, min_size=1, max_size=3), st.booleans())
def test_json(items: list[dict[str, object]], lines: bool) -> None:
    import json

    text = "\n".join(map(json.dumps, items)) if lines else json.dumps(items)
    read_safely(text.encode(), ReadOptions(name="x.jsonl" if lines else "x.json"))


@settings(max_examples=150)
@given(
    st.binary(max_size=60),
    st.text(max_size=8) | st.none(),
    st.text(max_size=2) | st.none(),
    st.dictionaries(st.sampled_from(["state", "label", "expected_x", "nonsense", ""]), st.text(max_size=8), max_size=3),
)
def test_any_options(data: bytes, encoding: str | None, separator: str | None, mapping: dict[str, str]) -> None:
    read_safely(b"context,question,answer\nx,q,a\n" + data, ReadOptions("", encoding, separator, "S", mapping))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_damaged_files(path: Path) -> None:
    """Every case file cut off, with bytes changed, and with bytes taken out."""
    data = path.read_bytes()
    chance = random.Random(path.name)
    for _ in range(12):
        damaged = bytearray(data[: chance.randint(0, len(data))] if chance.random() < 0.5 else data)
        for _ in range(chance.randint(0, 5)):
            if damaged:
                damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        read_safely(bytes(damaged), ReadOptions(name=path.name))


@pytest.mark.parametrize(
    "name", ["hex", "zip", "idna", "punycode", "undefined", "unicode_escape", "utf-7", "rot13", "\0", ""]
)
def test_encodings_that_are_none(name: str) -> None:
    read_safely(b"context,question,answer\nx\xc3\xa9\\x,q,a\n", ReadOptions(encoding=name))
