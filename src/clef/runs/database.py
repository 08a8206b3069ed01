"""Turns a file into a database with one writer and many readers, its schema up to date.

    writes   go through one thread with one connection, each call a transaction: all of it or nothing
    reads    go through a small pool of threads, each with a connection of its own; WAL lets them pass the writer

A full disk, a locked or a damaged file is a StoreError in words; what was written before stays.
"""

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from importlib.resources import files
from pathlib import Path
from typing import IO, TypeVar

from clef.errors import StoreError

T = TypeVar("T")
BUSY_MS = 5000
"""How long a write waits for another process before it is an error."""
READERS = 4


class Database:
    """One SQLite file."""

    def __init__(self, path: Path, *, alone: bool = True) -> None:
        """Open or make the file and bring its schema up to date. Raises StoreError where that cannot be done, or where
        another process keeps its runs there; not `alone` it only looks, and may look beside one.
        """
        self.path = path
        self._local = threading.local()
        self._writer = ThreadPoolExecutor(1, "clef-store-writer")
        self._readers = ThreadPoolExecutor(READERS, "clef-store-reader")
        self._opened: list[sqlite3.Connection] = []
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._lock = _lock(path) if alone else None
        except OSError as error:
            hint = "CLEF_DATA_DIR sets the folder"
            raise StoreError(f"runs cannot be kept in {path.parent}: {error.strerror}", hint=hint) from error
        try:
            with closing(self._connect()) as connection:
                migrate(connection, path)
        except BaseException as error:
            self._unlock()
            if isinstance(error, sqlite3.Error):
                raise _store_error(error, path) from error
            raise

    async def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do some work in one transaction, after all earlier writes. Raises StoreError; then nothing is written."""
        return await asyncio.get_running_loop().run_in_executor(self._writer, self._in_transaction, work)

    async def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Read something. Raises StoreError."""
        return await asyncio.get_running_loop().run_in_executor(self._readers, self._guarded, work)

    async def close(self) -> None:
        """Finish what was begun, and close the file."""
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        self._writer.shutdown()
        self._readers.shutdown()
        for connection in self._opened:
            connection.close()
        self._unlock()

    def _unlock(self) -> None:
        if self._lock is not None:
            self._lock.close()

    def _in_transaction(self, work: Callable[[sqlite3.Connection], T]) -> T:
        def whole(connection: sqlite3.Connection) -> T:
            with connection:
                connection.execute("begin immediate")
                return work(connection)

        return self._guarded(whole)

    def _guarded(self, work: Callable[[sqlite3.Connection], T]) -> T:
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        try:
            if connection is None:
                connection = self._local.connection = self._connect()
                self._opened.append(connection)
            return work(connection)
        except sqlite3.Error as error:
            raise _store_error(error, self.path) from error

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=BUSY_MS / 1000, isolation_level=None, check_same_thread=False)
        connection.row_factory = sqlite3.Row
        wanted = {"journal_mode": "wal", "synchronous": "1", "foreign_keys": "1", "busy_timeout": str(BUSY_MS)}
        for name, value in wanted.items():
            connection.execute(f"pragma {name} = {value}")
            found = str(connection.execute(f"pragma {name}").fetchone()[0])
            if found != value:
                connection.close()
                raise StoreError(f"the database {self.path} does not take {name} = {value} (it says {found})")
        return connection


def _lock(path: Path) -> IO[bytes]:
    """An open lock file. Two processes that take up the same unfinished runs would ask each row twice."""
    lock = path.with_suffix(".lock").open("ab")
    try:
        import fcntl
    except ImportError:  # Windows: SQLite's own locks still keep the file whole
        return lock
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        hint = "stop it, or give this one a folder of its own with CLEF_DATA_DIR"
        raise StoreError(f"another clef keeps its runs in {path.parent}", hint=hint) from None
    return lock


def migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Apply each numbered file that the database has not seen, one transaction a file."""
    steps = sorted(
        step.name for step in files("clef.runs").joinpath("migrations").iterdir() if step.name.endswith(".sql")
    )
    (seen,) = connection.execute("pragma user_version").fetchone()
    if seen > len(steps):
        raise StoreError(f"{path} was written by a newer clef", hint="update clef, or set CLEF_DATA_DIR elsewhere")
    for number, name in enumerate(steps[seen:], seen + 1):
        script = files("clef.runs").joinpath("migrations", name).read_text()
        connection.executescript(f"begin;\n{script}\npragma user_version = {number};\ncommit;")


def _store_error(error: sqlite3.Error, path: Path) -> StoreError:
    said = str(error)
    if "full" in said:
        return StoreError(f"the disk that holds {path} is full", hint="make room, then resume the run; nothing is lost")
    if "locked" in said or "busy" in said:
        return StoreError(
            f"another program holds {path}", hint="is a second clef running? close it, then resume the run"
        )
    if "malformed" in said or "not a database" in said:
        hint = "move it away to start anew, or restore it from a copy"
        return StoreError(f"{path} is damaged or not a database of clef", hint=hint)
    return StoreError(f"the database {path} failed: {said}")
