"""Turns bytes into text: byte order marks, strict UTF-8, UTF-16 by its pattern, then a guess that is shown.

Line ends are never touched. The text is opened as a stream, so a file is never held twice.
"""

from __future__ import annotations

import codecs
import io
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TextIO

from clef.errors import InputError, Problem
from clef.tables.table import Notes

_CHUNK = 1 << 20
_BLOCK = 1 << 18
"""Characters handed on at a time."""
_SAMPLE = 1 << 16
"""Bytes a guess looks at: charset-normalizer takes about 0.1 s for them."""
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # begins with the mark of UTF-16, so it comes first
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_CENTRAL = frozenset({"cp1250", "iso8859_2", "cp1254", "iso8859_9", "cp1257", "iso8859_13", "iso8859_4"})
_ENOUGH = 40
"""Letters beyond ASCII from which on a guess between Latin alphabets is worth something."""
_UNDEFINED_1252 = frozenset(b"\x81\x8d\x8f\x90\x9d")


@dataclass(frozen=True)
class TextSource:
    """Bytes with the encoding they are read in."""

    source: bytes | Path
    encoding: str
    skip: int = 0
    """Bytes of the byte order mark."""
    guessed: bool = False
    escaped: bool = False
    """Whether some bytes are no UTF-8; they come out as lone surrogates, for the reader to report by row."""
    has_nul: bool = False

    def open(self) -> TextIO:
        """The text from its start, marks left out, lines ending as they do in the file."""
        raw: io.BufferedIOBase
        raw = io.BytesIO(self.source) if isinstance(self.source, bytes) else self.source.open("rb")
        raw.seek(self.skip)
        errors = "surrogateescape" if self.escaped else "strict"
        return io.TextIOWrapper(raw, self.encoding, errors=errors, newline="\n")

    def blocks(self) -> Iterator[str]:
        """Pieces of many lines, cut where one ends. U+FEFF at the start is left out, however often it is there."""
        with self.open() as text:
            rest = text.read(_BLOCK).lstrip("\ufeff")
            while more := text.read(max(_BLOCK, len(rest))):
                end = rest.rfind("\n") + 1 or rest.rfind("\r", 0, -1) + 1
                if end:
                    yield rest[:end]
                rest = rest[end:] + more
            if rest:
                yield rest

    def lines(self) -> Iterator[str]:
        """Lines with their ends (CR, LF or both), one at a time."""
        for block in self.blocks():
            yield from split_lines(block)


def split_lines(block: str) -> Iterator[str]:
    """The lines of a piece of text with their ends: CR, LF or both, and nothing else that Unicode calls a line end."""
    return io.StringIO(block, newline="")


def decode(source: bytes | Path, encoding: str | None, notes: Notes) -> TextSource:
    """How to read these bytes as text. Raises InputError where they are no text in `encoding`, or no text at all."""
    start = _head(source, _SAMPLE)
    if encoding is not None:
        return _as_told(source, encoding, start)
    for mark, name in _MARKS:
        if start.startswith(mark):
            return _marked(source, name, len(mark), notes)
    pattern = _utf16_pattern(start)
    if pattern:
        notes.warn(Problem(f"no byte order mark; read as {pattern} by its pattern of zero bytes", "encoding_guessed"))
        return _checked(TextSource(source, pattern, guessed=True))
    scan = _scan_utf8(source)
    if scan.valid:
        return TextSource(source, "utf-8", has_nul=scan.has_nul)
    if scan.good > scan.bad:
        return TextSource(source, "utf-8", escaped=True, has_nul=scan.has_nul)
    if scan.has_nul:
        raise InputError("this is no text file: it has zero bytes", hint="save it as CSV (UTF-8), XLSX or JSONL")
    return _guess(source, scan.first_bad, notes)


def _as_told(source: bytes | Path, encoding: str, start: bytes) -> TextSource:
    try:
        name = codecs.lookup(encoding).name
        codecs.getincrementaldecoder(name)
        "".encode(name)
    except (LookupError, UnicodeError, ValueError, TypeError):
        hint = "use a name such as utf-8, utf-16, windows-1252 or shift_jis"
        problem = Problem(f'unknown encoding "{encoding}"', "unknown_encoding", column="encoding", hint=hint)
        raise InputError.of([problem]) from None
    skip = next((len(mark) for mark, codec in _MARKS if start.startswith(mark) and _same(name, codec)), 0)
    return _checked(TextSource(source, name, skip))


def _same(name: str, codec: str) -> bool:
    return codecs.lookup(name).name in (codec, codec.removesuffix("-le").removesuffix("-be") + "-sig", codec)


def _marked(source: bytes | Path, name: str, skip: int, notes: Notes) -> TextSource:
    if name != "utf-8":
        return _checked(TextSource(source, name, skip))
    scan = _scan_utf8(source)
    if not scan.valid:
        notes.warn(Problem("the byte order mark says UTF-8, but some bytes are not", "not_utf8"))
    return TextSource(source, name, skip, escaped=not scan.valid, has_nul=scan.has_nul)


def _checked(text: TextSource) -> TextSource:
    """Read it once, so that the reader can rely on it. Raises InputError with the line of what cannot be read."""
    line, has_nul = 1, False
    try:
        with text.open() as stream:
            while block := stream.read(_CHUNK):
                line += block.count("\n")
                has_nul = has_nul or "\0" in block
    except (UnicodeError, ValueError) as error:
        reason = getattr(error, "reason", str(error))
        message = f"this cannot be read as {text.encoding}: {reason} (after line {line})"
        problem = Problem(message, "encoding", line=line, hint="choose another encoding")
        raise InputError.of([problem]) from None
    return TextSource(text.source, text.encoding, text.skip, text.guessed, has_nul=has_nul)


@dataclass
class _Scan:
    """How far bytes are UTF-8."""

    valid: bool = True
    good: int = 0
    """Characters beyond ASCII that are well formed, counted only where something is not."""
    bad: int = 0
    first_bad: int = 0
    has_nul: bool = False


def _scan_utf8(source: bytes | Path) -> _Scan:
    scan = _Scan()
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for block in _blocks(source):
            scan.has_nul = scan.has_nul or b"\0" in block
            if not (block.isascii() and not decoder.getstate()[0]):
                decoder.decode(block)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        scan.valid = False
        _count_faults(source, scan)
    return scan


def _count_faults(source: bytes | Path, scan: _Scan) -> None:
    decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
    position = 0
    for block in _blocks(source):
        text = decoder.decode(block)
        scan.has_nul = scan.has_nul or "\0" in text
        high = [char for char in text if char > "\x7f"]
        bad = sum("\udc80" <= char <= "\udcff" for char in high)
        scan.good += len(high) - bad
        if bad and not scan.bad:
            scan.first_bad = position
        scan.bad += bad
        position += len(block)
    rest = decoder.decode(b"", final=True)
    scan.bad += len(rest)


def _guess(source: bytes | Path, near: int, notes: Notes) -> TextSource:
    sample = b"".join(line for line in _from(source, near).splitlines(keepends=True) if not line.isascii())[:_SAMPLE]
    name = _detected(sample)
    message = f"not UTF-8; read as {name}, which is a guess"
    hint = "look at the letters beyond A to Z in the rows below; if they are wrong, choose another encoding"
    undefined = _first_undefined(source) if name == "cp1252" else None
    if undefined:
        name = "latin-1"
        byte, line = undefined
        message = f"not UTF-8; read as {name}, which is a guess: byte 0x{byte:02X} in line {line} is no Windows-1252"
    try:
        text = _checked(TextSource(source, name, guessed=True))
    except InputError:
        text = _checked(TextSource(source, "latin-1", guessed=True))
        message = f"not UTF-8; read as latin-1, as nothing else ({name} was likely) reads all of it"
    notes.warn(Problem(message, "encoding_guessed", hint=hint))
    return text


def _first_undefined(source: bytes | Path) -> tuple[int, int] | None:
    """(byte, line) of the first byte that Windows-1252 leaves undefined."""
    line = 1
    for block in _blocks(source):
        at = min((found for byte in _UNDEFINED_1252 if (found := block.find(byte)) >= 0), default=None)
        if at is not None:
            return block[at], line + block.count(b"\n", 0, at)
        line += block.count(b"\n")
    return None


def _detected(sample: bytes) -> str:
    """A likely codec for bytes that are not UTF-8.

    In Latin alphabets letters beyond ASCII stand alone, in others side by side. charset-normalizer takes short
    Western European text for cp1250, cp1251 or an EBCDIC page, so for a Latin alphabet it needs a longer text, and a
    family of code pages that Windows uses, to win over Windows-1252.
    """
    from charset_normalizer import from_bytes

    high = [byte > 0x7F for byte in sample]
    count = sum(high)
    neighbours = sum(one and next_one for one, next_one in pairwise(high))
    found = from_bytes(sample).best()
    name = found.encoding if found else "cp1252"
    if neighbours < 0.4 * count:
        central = name in _CENTRAL and count >= _ENOUGH and _lenient(sample, name) != _lenient(sample, "cp1252")
        return name if central else "cp1252"
    return name


def _lenient(sample: bytes, name: str) -> str:
    return sample.decode(name, "replace")


def _utf16_pattern(start: bytes) -> str | None:
    """UTF-16 without a mark: zero bytes in every second place, and hardly any in between."""
    half = len(start) // 2
    if half < 4:
        return None
    even, odd = start[0 : 2 * half : 2].count(0) / half, start[1 : 2 * half : 2].count(0) / half
    if odd > 0.3 and even < 0.02:
        return "utf-16-le"
    return "utf-16-be" if even > 0.3 and odd < 0.02 else None


def _head(source: bytes | Path, size: int) -> bytes:
    return _from(source, 0, size)


def _from(source: bytes | Path, position: int, size: int = 4 * _SAMPLE) -> bytes:
    if isinstance(source, bytes):
        return source[position : position + size]
    with source.open("rb") as file:
        file.seek(position)
        return file.read(size)


def _blocks(source: bytes | Path) -> Iterator[bytes]:
    if isinstance(source, bytes):
        for start in range(0, len(source), _CHUNK):
            yield source[start : start + _CHUNK]
        return
    with source.open("rb") as file:
        while block := file.read(_CHUNK):
            yield block
