"""Turns a ZIP archive or a folder into its one table, and the names of images in a table into the images themselves.

Without a table, images in folders make one: what a folder is called is the label of the images in it. A name leads to
no file outside its archive or folder, and only a PNG or JPEG is read.
"""

from __future__ import annotations

import io
import posixpath
import unicodedata
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any, Protocol

from clef.decisions.images import HINT, MAX_IMAGE_BYTES, as_url, bytes_fault
from clef.errors import InputError, Problem, TooLarge
from clef.tables.columns import SYNONYMS, Roles, normalised
from clef.tables.pictures import images_in
from clef.tables.table import Grid, ReadOptions, shown

MAX_TABLE_BYTES = 1_000_000_000
"""Bytes a table may have once it is unpacked: a small archive may hold a very large one."""
TABLES = (".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".jevl", ".xlsx", ".xls", ".ods", ".parquet")
IMAGES = (".png", ".jpg", ".jpeg", ".webp", ".gif", ".bmp", ".tif", ".tiff")
"""What is taken for an image in a folder; those that are not read are problems rather than left out."""
NAMED_SO = "file_name"
"""The column of a Hugging Face image folder that names its images."""
_BOOKS = ("[Content_Types].xml", "mimetype")
_NO_NAMES = ("data:", "http:", "https:", "file:")
_LISTED = 5


class Files(Protocol):
    """A place of files with names, whose folders are separated by slashes."""

    what: str
    """What the place is called in a message."""

    def names(self) -> list[str]:
        """The names of all files but hidden ones."""
        ...

    def has(self, name: str) -> bool:
        """Whether there is a file of this name."""
        ...

    def read(self, name: str, most: int) -> bytes:
        """What a file holds. Raises TooLarge above `most` bytes, InputError where it cannot be read."""
        ...


class Archive:
    """The files of a ZIP archive. Raises InputError where it is damaged or locked."""

    what = "the archive"

    def __init__(self, source: bytes | Path) -> None:
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(source) if isinstance(source, bytes) else source)
        except (zipfile.BadZipFile, OSError, ValueError) as error:
            raise InputError(f"the ZIP archive cannot be read: {error}", hint="pack it again") from None
        entries = [entry for entry in self._zip.infolist() if not entry.is_dir()]
        if any(entry.flag_bits & 1 for entry in entries):
            raise InputError("the ZIP archive is locked with a password", hint="pack it again without one")
        self._entries = {plain(entry.filename): entry for entry in entries}

    def names(self) -> list[str]:
        """The names of all files but hidden ones."""
        return [name for name in self._entries if not _is_hidden(name)]

    def has(self, name: str) -> bool:
        """Whether there is a file of this name."""
        return name in self._entries

    def read(self, name: str, most: int) -> bytes:
        """What a file holds. Raises TooLarge above `most` bytes, InputError where it cannot be read."""
        try:
            with self._zip.open(self._entries[name]) as file:
                return _at_most(file.read(most + 1), name, most)
        except (zipfile.BadZipFile, zlib.error, OSError, EOFError, NotImplementedError, RuntimeError) as error:
            raise InputError(f"{shown(name)} cannot be unpacked: {error}", hint="pack the archive again") from None


class Folder:
    """The files below a folder. Links that lead out of it are followed nowhere."""

    what = "the folder"

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()

    def names(self) -> list[str]:
        """The names of all files but hidden ones."""
        found = (path.relative_to(self._root).as_posix() for path in self._root.rglob("*") if path.is_file())
        return [name for name in found if not _is_hidden(name) and self.has(name)]

    def has(self, name: str) -> bool:
        """Whether there is a file of this name."""
        path = self._root / name
        try:
            return path.is_file() and path.resolve().is_relative_to(self._root)
        except (OSError, ValueError):  # no name that this system knows
            return False

    def read(self, name: str, most: int) -> bytes:
        """What a file holds. Raises TooLarge above `most` bytes, InputError where it cannot be read."""
        try:
            with (self._root / name).open("rb") as file:
                return _at_most(file.read(most + 1), name, most)
        except OSError as error:
            raise InputError(f"{shown(name)} cannot be read: {error.strerror}") from None


def packed(source: Path, options: ReadOptions) -> bytes | None:
    """A folder, or a table with the images beside it that it names, as a ZIP archive; None for any other table.

    That is how what is on this machine gets to a clef that may be on another.
    """
    files = Folder(source if source.is_dir() else source.parent)
    if source.is_dir():
        names = [name for name in files.names() if name.lower().endswith((*TABLES, *IMAGES))]
    elif _may_name_files(source):
        from clef.tables.formats import read

        album = Album(files, whole=False)
        read(source, replace(options, album=album, beside=False))
        names = [source.name, *album.used] if album.used else []
    else:
        names = []
    if not names:
        return None
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in names:
            is_text = name == source.name and not name.lower().endswith(TABLES)
            archive.writestr(f"{name}.csv" if is_text else name, files.read(name, MAX_TABLE_BYTES))
    return buffer.getvalue()


def _may_name_files(source: Path) -> bool:
    """Whether the beginning of a table speaks of images at all, so that most tables need not be read for it."""
    with source.open("rb") as file:
        start = file.read(65_536).lower()
    return any(word in start.replace(b"\0", b"") for word in (b"image", b"file_name", b"file name", b"pk\3\4", b"par1"))


def is_book(source: bytes | Path) -> bool:
    """Whether a ZIP is a workbook, or nothing that can be looked into."""
    try:
        with zipfile.ZipFile(io.BytesIO(source) if isinstance(source, bytes) else source) as archive:
            return any(name in _BOOKS for name in archive.namelist())
    except (zipfile.BadZipFile, OSError, ValueError):
        return True


def plain(name: str) -> str:
    """A name as it is looked up: slashes, one way of writing an accent, no detours."""
    return posixpath.normpath(unicodedata.normalize("NFC", name.replace("\\", "/").strip()))


def table_in(files: Files) -> str | None:
    """The name of the one table; None where there is none. Raises InputError for several, or for nothing at all."""
    names = files.names()
    tables = sorted(name for name in names if name.lower().endswith(TABLES))
    if len(tables) > 1:
        listed = ", ".join(map(shown, tables[:_LISTED])) + (", …" if len(tables) > _LISTED else "")
        raise InputError(f"{files.what} holds {len(tables)} tables: {listed}", hint="keep the one that is to be read")
    if not tables and not any(name.lower().endswith(IMAGES) for name in names):
        raise InputError(f"{files.what} holds no table and no images", hint=f"a table is one of {' '.join(TABLES)}")
    return tables[0] if tables else None


def folders_as_grid(files: Files) -> Grid:
    """The images of a place without a table: each a row, whose label is the name of the folder that it is in."""
    names = sorted(name for name in files.names() if name.lower().endswith(IMAGES))
    labels = [PurePosixPath(name).parent.name for name in names]
    rows = list(range(2, len(names) + 2))
    columns = {"image": names, "label": labels} if any(labels) else {"image": names}
    return Grid(tuple(columns), list(columns.values()), rows, [None] * len(rows), None, None)


class Album:
    """The images of a place, by the names that a table gives them."""

    def __init__(self, files: Files, table: str = "", *, whole: bool = True) -> None:
        """`table` is the name of the table in there: names in it count from its folder. In a place that was given as a
        `whole`, a bare name that only one file has leads to it, whatever folder that is in.
        """
        self._files = files
        self._base = posixpath.dirname(table)
        self.used: dict[str, None] = {}
        """The names of the images that were taken."""
        self._by_end: dict[str, list[str]] = {}
        for name in files.names() if whole else ():
            self._by_end.setdefault(posixpath.basename(name), []).append(name)

    def has(self, said: str) -> bool:
        """Whether there is a file of this name."""
        return self._found(said) is not None

    def url(self, said: str) -> str:
        """The data URL of an image. Raises InputError with what is wrong with it."""
        name = self._found(said)
        if name is None:
            raise InputError.of([self._missing(said)])
        content = self._files.read(name, MAX_IMAGE_BYTES)
        if fault := bytes_fault(content):
            raise InputError.of([Problem(f"{shown(name)}: {fault.message}", "image", hint=HINT)])
        self.used[name] = None
        return as_url(content)

    def taken(self, said: Any) -> list[Any]:
        """What is said of images, each in the place of its name. Raises InputError with every problem."""
        images: list[Any] = []
        problems: list[Problem] = []
        for one in images_in(said):
            try:
                images.append(self.url(one) if _is_name(one) else one)
            except InputError as error:
                problems += error.problems or [Problem(error.message, "image", hint=error.hint)]
        if problems:
            raise InputError.of(problems)
        return images

    def _found(self, said: str) -> str | None:
        name = plain(said)
        inside = [at for at in (posixpath.join(self._base, name), name) if self._files.has(plain(at))]
        ends = self._by_end.get(name, [])
        return plain(inside[0]) if inside else ends[0] if len(ends) == 1 else None

    def _missing(self, said: str) -> Problem:
        ends = self._by_end.get(posixpath.basename(plain(said)), [])
        hint = f"it may be {' or '.join(map(shown, ends[:_LISTED]))}" if ends else None
        return Problem(f"no file {shown(said)} in {self._files.what}", "no_image", hint=hint)


def named_images(header: Sequence[str], mapping: Mapping[str, str]) -> Mapping[str, str]:
    """The mapping, with `file_name` for the images of a table beside its files, unless something else is for them."""
    if set(SYNONYMS["images"]) & {normalised(name) for name in (*header, *mapping)}:
        return mapping
    named = next((name for name in header if normalised(name) == NAMED_SO), None)
    return mapping if named is None else {**mapping, "images": named}


def with_images(grid: Grid, roles: Roles, album: Album) -> Grid:
    """The grid with images in the place of their names, which stay in a column `file`.

    What cannot be taken stays a name, and is found out when images are checked.
    """
    at = roles.columns.get("images")
    if at is None or not any(_is_name(one) and album.has(one) for cell in grid.columns[at] for one in images_in(cell)):
        return grid
    cells = []
    for cell in grid.columns[at]:
        try:
            cells.append("\n".join(album.taken(cell)))
        except InputError:
            cells.append(cell)
    columns = [cells if place == at else column for place, column in enumerate(grid.columns)]
    if "file" in map(normalised, grid.header):
        return replace(grid, columns=columns)
    return replace(grid, header=(*grid.header, "file"), columns=[*columns, list(grid.columns[at])])


def _is_name(one: Any) -> bool:
    return isinstance(one, str) and not one.startswith(_NO_NAMES)


def _at_most(content: bytes, name: str, most: int) -> bytes:
    if len(content) > most:
        raise TooLarge(f"{shown(name)} has more than {most / 1e6:g} MB")
    return content


def _is_hidden(name: str) -> bool:
    return any(part.startswith((".", "__MACOSX")) for part in name.split("/"))
