"""Turns the numbers of a run into rows of the store, so that they are computed once, and back while they are fresh.

Numbers are fresh while the run's revision is the one they were measured at and the same formulas would make them.
"""

import sqlite3
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import orjson

from clef.runs.database import Database

FORMULAS = 1
"""To be raised when a formula or a seed of the statistics changes: what was kept before is then measured again."""
MADE_BY = f"{version('clef')}/{FORMULAS}"
KEPT = 64
"""Families of numbers that a run keeps; the oldest go."""
SUMMARY = "summary"
HEADLINE = ("rows", "correct", "count", "accuracy", "low", "high")
_FRESH = "measures.stamp = runs.revision || ' ' || ?"


class Measures:
    """The numbers kept of the runs of one data folder."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, run_id: str, name: str) -> Any:
        """The fresh numbers of this name, or None."""
        query = (
            "select measures.body from measures join runs on runs.id = measures.run"  # noqa: S608 - clauses of ours
            f" where run = ? and measures.name = ? and {_FRESH}"
        )
        parameters = (run_id, name, MADE_BY)
        found = await self._database.read(lambda connection: connection.execute(query, parameters).fetchone())
        return orjson.loads(found[0]) if found else None

    async def save(self, run_id: str, name: str, revision: int, body: Any) -> None:
        """Keep numbers that were measured at a revision of the run."""
        values = (run_id, name, f"{revision} {MADE_BY}", datetime.now(UTC).isoformat(), orjson.dumps(body).decode())
        prune = (
            "delete from measures where run = ? and name in"
            " (select name from measures where run = ? and name <> ? order by created desc limit -1 offset ?)"
        )

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(
                "insert or replace into measures (run, name, stamp, created, body) values (?, ?, ?, ?, ?)", values
            )
            connection.execute(prune, (run_id, run_id, SUMMARY, KEPT))

        await self._database.write(work)

    async def headlines(self, run_ids: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Of each run whose summary is fresh: the rows it is about, the share that is right and its interval."""
        cells = ", ".join(f"json_extract(measures.body, '$.{name}')" for name in HEADLINE)
        marks = ", ".join("?" * len(run_ids))
        query = (
            f"select run, {cells} from measures join runs on runs.id = measures.run"  # noqa: S608 - names of ours
            f" where measures.name = ? and {_FRESH} and run in ({marks})"
        )
        parameters = (SUMMARY, MADE_BY, *run_ids)

        def work(connection: sqlite3.Connection) -> dict[str, dict[str, Any]]:
            return {
                found[0]: dict(zip(HEADLINE, found[1:], strict=True)) for found in connection.execute(query, parameters)
            }

        return await self._database.read(work)
