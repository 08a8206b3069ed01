"""Turns a run into one file that another clef can take in, and such a file into a run.

The file is an SQLite database of the same schema that holds one run: its examples, its outcomes, its questions.
"""

import secrets
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

from clef.errors import InputError, NotFound, Problem
from clef.runs.database import Database, migrate

TABLES = ("examples", "outcomes", "corrections")


async def export_run(database: Database, run_id: str, path: Path) -> None:
    """Write a run to a new file. Raises StoreError where that cannot be done."""

    def work(connection: sqlite3.Connection) -> None:
        with closing(sqlite3.connect(path, isolation_level=None)) as out:
            migrate(out, path)
            with out:
                out.execute("begin")  # else each row is a transaction, and waits for the disk
                _copy(connection, out, run_id, run_id)

    await database.read(work)


async def import_run(database: Database, path: Path) -> str:
    """Take the run of a file in; its new id. Raises InputError where the file holds no run."""
    run_id = secrets.token_hex(6)

    def work(connection: sqlite3.Connection) -> None:
        with _opened(path) as source:
            (found,) = source.execute("select id from runs").fetchone()
            _copy(source, connection, found, run_id)

    await database.write(work)
    return run_id


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    """A foreign file, read only, with nothing of its schema run; refused where it is not one run of ours."""
    hint = "give a file that `clef runs export` or the Export menu wrote"
    if not path.is_file():
        raise NotFound(f"no run to take in: no file {path}")
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as source:
            source.row_factory = sqlite3.Row
            source.execute("pragma trusted_schema = off")
            (count,) = source.execute("select count(*) from runs").fetchone()
            kinds = {kind for (kind,) in source.execute("select distinct type from sqlite_master")}
            if count != 1 or not kinds <= {"table", "index"}:
                raise InputError.of([Problem("the file holds no single run", "no_run", hint=hint)])
            yield source
    except sqlite3.DatabaseError as error:
        raise InputError.of([Problem(f"the file is no run of clef: {error}", "no_run", hint=hint)]) from error


def _copy(source: sqlite3.Connection, target: sqlite3.Connection, old: str, new: str) -> None:
    """Copy a run under a new id; questions get the target's own numbers."""
    run = dict(source.execute("select * from runs where id = ?", (old,)).fetchone())
    live = run["state"] in ("queued", "running", "paused")
    _insert(target, "runs", [run | {"id": new, "deleted": None} | ({"state": "stopped"} if live else {})])
    numbers = {}
    used = "select * from questions where id in (select distinct question from examples where run = ?)"
    for number, body in source.execute(used, (old,)).fetchall():
        target.execute("insert or ignore into questions (body) values (?)", (body,))
        (numbers[number],) = target.execute("select id from questions where body = ?", (body,)).fetchone()
    known = {name for (name,) in source.execute("select name from sqlite_master where type = 'table'")}
    for table in (table for table in TABLES if table in known):  # a file of an earlier clef may lack one
        found = source.execute(f"select * from {table} where run = ? order by position", (old,))  # noqa: S608
        rows = (dict(cells) | {"run": new} for cells in found)
        if table == "examples":
            rows = (row | {"question": numbers[row["question"]]} for row in rows)
        _insert(target, table, rows)


def _insert(target: sqlite3.Connection, table: str, rows: Iterable[dict[str, Any]]) -> None:
    """Insert rows; they come from a file, so only the columns of our own schema are taken, and those that an older
    clef did not write get their defaults.
    """
    left = iter(rows)
    first = next(left, None)
    if first is None:
        return
    names = [cells[1] for cells in target.execute(f"pragma table_info({table})") if cells[1] in first]
    marks = ", ".join("?" * len(names))
    query = f"insert into {table} ({', '.join(names)}) values ({marks})"  # noqa: S608 - names of our schema
    target.executemany(query, ([row[name] for name in names] for row in chain([first], left)))
