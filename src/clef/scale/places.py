"""Turns an address (a path, s3://…, gs://…) into the table files there, and into a folder for what is written.

Everything goes through pyarrow's file systems, so that a machine needs nothing but the address to get at the same
bytes. A file is whole or not there: on a disk it is written beside its place and moved, an object store does it so.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from posixpath import basename, dirname, relpath
from typing import Any

from clef.errors import InputError, NotFound, Problem, StoreError

ENDINGS = (".csv", ".tsv", ".txt", ".jsonl", ".ndjson", ".json", ".jevl", ".parquet", ".xlsx", ".xls", ".ods")
"""What table files of a folder end in; other files there are left alone."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A table file, as any machine can open it."""

    address: str
    """The address it was found by."""
    path: str
    """Its path in the file system of that address."""
    name: str
    """What it is called in messages and results: its path below the folder that was given."""

    def read(self) -> bytes | Path:
        """What `clef.tables.read` takes: the path of a local file, or the bytes of one that is elsewhere.

        Raises InputError where it cannot be read.
        """
        import pyarrow.fs as pafs

        system, _ = _resolve(self.address)
        if isinstance(system, pafs.LocalFileSystem):
            return Path(self.path)
        with _told(self.name), system.open_input_stream(self.path, compression=None) as stream:
            content: bytes = stream.read()
            return content


def files_at(addresses: Sequence[str]) -> list[SourceFile]:
    """The table files at addresses: files, folders, or a pattern such as `s3://bucket/day-*.csv`; sorted by name.

    Raises NotFound where there is none, InputError for an address that cannot be used.
    """
    import pyarrow.fs as pafs

    found: list[SourceFile] = []
    for address in addresses:
        head, _, query = address.partition("?")
        last = basename(head)
        pattern = last if "*" in last else None
        base = f"{dirname(head)}?{query}" if pattern and query else dirname(head) if pattern else address
        system, path = _resolve(base or ".")
        with _told(address):
            info = system.get_file_info(path)
            if info.is_file:
                found.append(SourceFile(address, path, basename(path)))
                continue
            inside = system.get_file_info(pafs.FileSelector(path, recursive=not pattern, allow_not_found=True))
        names = {relpath(one.path, path): one.path for one in inside if one.is_file}
        fitting = sorted(name for name in names if (fnmatch(name, pattern) if pattern else _is_table(name)))
        if not fitting:
            raise NotFound(f"no table at {address}", hint=f"tables end in {', '.join(ENDINGS)}")
        found += [SourceFile(base, names[name], name) for name in fitting]
    return found


def _is_table(name: str) -> bool:
    hidden = any(part.startswith(("_", ".")) for part in name.split("/"))
    return not hidden and name.lower().endswith(ENDINGS)


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder that every machine can write to. What cannot be written raises StoreError."""

    address: str

    def read(self, name: str) -> bytes | None:
        """The bytes of a file; None where there is none."""
        system, path = self._at(name)
        with _told_writing(self.address):
            if not system.get_file_info(path).is_file:
                return None
            with system.open_input_stream(path, compression=None) as stream:
                content: bytes = stream.read()
                return content

    def write(self, name: str, content: bytes) -> None:
        """Write a file whole: whoever looks sees all of it or none."""
        import pyarrow.fs as pafs

        system, path = self._at(name)
        is_local = isinstance(system, pafs.LocalFileSystem)
        target = f"{path}.{secrets.token_hex(4)}.tmp" if is_local else path
        with _told_writing(self.address):
            if is_local:
                system.create_dir(dirname(path), recursive=True)
            with system.open_output_stream(target, compression=None) as stream:
                stream.write(content)
            if is_local:
                system.move(target, path)

    def names(self, below: str = "") -> list[str]:
        """The files directly in a folder below, sorted; unfinished ones are left out."""
        import pyarrow.fs as pafs

        system, path = self._at(below)
        with _told_writing(self.address):
            found = system.get_file_info(pafs.FileSelector(path, allow_not_found=True))
        return sorted(basename(one.path) for one in found if one.is_file and not one.path.endswith(".tmp"))

    def remove(self, name: str) -> None:
        """Remove a file that is there."""
        system, path = self._at(name)
        with _told_writing(self.address):
            system.delete_file(path)

    def _at(self, name: str) -> tuple[Any, str]:
        system, path = _resolve(self.address)
        return system, f"{path}/{name}" if name else path


def _resolve(address: str) -> tuple[Any, str]:
    """The file system of an address and the path in it. Raises InputError for an address of an unknown kind."""
    import pyarrow.fs as pafs

    try:
        if "://" not in address:
            return pafs.LocalFileSystem(), str(Path(address).absolute())
        system, path = pafs.FileSystem.from_uri(address)
    except (ValueError, OSError, NotImplementedError) as error:
        hint = "give a path, or an address such as s3://bucket/folder or gs://bucket/folder"
        problem = Problem(f"{address} cannot be used: {_first_line(error)}", "address", hint=hint)
        raise InputError.of([problem]) from None
    return system, path.rstrip("/")


@contextmanager
def _told(what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(f"{what} cannot be read: {_first_line(error)}") from None


@contextmanager
def _told_writing(what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        hint = "give --out a folder that every machine can write to"
        raise StoreError(f"{what} cannot be used: {_first_line(error)}", hint=hint) from None


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
