"""Turns policies into rows of the store, by name, and the rows back into policies as JSON.

What a policy means is not known here: `clef.statistics.policy` reads and applies its body.
"""

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import orjson

from clef.errors import InputError, NotFound, Problem, Taken
from clef.runs.database import Database

LONGEST_NAME = 100


@dataclass(frozen=True, slots=True)
class StoredPolicy:
    """A policy under its name."""

    name: str
    body: Mapping[str, Any]
    """What `Policy.to_dict` wrote."""
    run: str | None
    """Id of the run that it was measured on; None for one that came as a file. The run may be gone."""
    created: datetime

    def to_dict(self) -> dict[str, Any]:
        """Name, origin and body as JSON."""
        return {
            "name": self.name,
            "run": self.run,
            "created": self.created.isoformat(),
            "policy": dict(self.body),
        }


class Policies:
    """The policies of one data folder."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def listed(self) -> list[StoredPolicy]:
        """Every policy, by name."""
        query = "select * from policies order by name"
        return await self._database.read(lambda connection: [_stored(cells) for cells in connection.execute(query)])

    async def names(self, limit: int) -> list[str]:
        """The first names, without what is under them."""
        query = "select name from policies order by name limit ?"
        return await self._database.read(lambda connection: [name for (name,) in connection.execute(query, (limit,))])

    async def get(self, name: str) -> StoredPolicy:
        """The policy of this name. Raises NotFound."""
        query = "select * from policies where name = ?"
        found = await self._database.read(lambda connection: connection.execute(query, (name,)).fetchone())
        if found is None:
            raise NotFound(f'no policy "{name}"', hint="GET /api/policies lists the policies there are")
        return _stored(found)

    async def save(
        self, name: str, body: Mapping[str, Any], *, run: str | None = None, replace: bool = False
    ) -> StoredPolicy:
        """Keep a policy. Raises InputError for a name that cannot stand in an address, Taken for one that is in use
        unless it may be replaced.
        """
        problem = _name_problem(name)
        if problem:
            raise InputError.of([Problem(problem, "policy_name", column="name")])
        made = StoredPolicy(name, dict(body), run, datetime.now(UTC))

        def work(connection: sqlite3.Connection) -> None:
            if not replace and connection.execute("select 1 from policies where name = ?", (name,)).fetchone():
                raise Taken(f'there is a policy "{name}" already', hint="choose another name, or say replace")
            connection.execute(
                "insert or replace into policies (name, body, run, created) values (?, ?, ?, ?)",
                (name, orjson.dumps(made.body).decode(), run, made.created.isoformat()),
            )

        await self._database.write(work)
        return made

    async def delete(self, name: str) -> None:
        """Forget a policy. Raises NotFound."""
        await self.get(name)

        def work(connection: sqlite3.Connection) -> None:
            connection.execute("delete from policies where name = ?", (name,))

        await self._database.write(work)


def _name_problem(name: str) -> str | None:
    """What keeps a name out of an address, or None."""
    if not name.strip() or name != name.strip():
        return "a policy needs a name, without blanks around it"
    if len(name) > LONGEST_NAME:
        return f"the name has {len(name)} characters; {LONGEST_NAME} are allowed"
    if "/" in name or "\\" in name or not name.isprintable() or name in (".", ".."):
        return f"{name!r} cannot be a name: no slashes, no control characters"
    return None


def _stored(cells: sqlite3.Row) -> StoredPolicy:
    created = datetime.fromisoformat(cells["created"])
    return StoredPolicy(cells["name"], orjson.loads(cells["body"]), cells["run"], created)
