"""Turns what was asked on the Ask page into rows of the store that can be listed, searched, opened again and deleted.

The newest stay, up to a number and a size. The same draft asked again of the same model replaces what it got before.
"""

import hashlib
import json
import secrets
import sqlite3
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from clef.errors import NotFound
from clef.runs.database import Database
from clef.runs.narrowing import containing

MOST = 500
"""Asks that are kept; the oldest go first."""
MOST_BYTES = 200_000_000
"""Bytes that all kept asks may have together; images are what takes room."""
SEARCHED = 20_000
"""Characters of an ask that are searched."""
_LINE = "id, at, substr(words, 1, 300) as words, questions, model, shape"


@dataclass(frozen=True, slots=True)
class AskLine:
    """A kept ask as a list shows it."""

    id: str
    at: datetime
    words: str
    """The beginning of its state and questions."""
    questions: int
    model: str
    shape: str

    def to_dict(self) -> dict[str, Any]:
        """The line as JSON."""
        return asdict(self) | {"at": self.at.isoformat()}


@dataclass(frozen=True, slots=True)
class KeptAsk:
    """A kept ask, whole."""

    line: AskLine
    draft: dict[str, Any]
    """What stood in the form."""
    reply: dict[str, Any]
    """What came back, as `predict` and `interference` tell it."""

    def to_dict(self) -> dict[str, Any]:
        """The ask as JSON."""
        return self.line.to_dict() | {"draft": self.draft, "reply": self.reply}


@dataclass(frozen=True, slots=True)
class NewAsk:
    """What is to be kept of an ask."""

    draft: str
    """The form as JSON, as it was sent."""
    reply: Mapping[str, Any]
    words: str
    questions: int
    identity: str
    """Which model answered."""


class Asks:
    """The kept asks of one data folder."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def keep(self, new: NewAsk) -> str | None:
        """Keep an ask and let the oldest go; its id, or None where a person chose to keep nothing."""
        key = hashlib.sha256(f"{new.identity}\0{new.draft}".encode()).digest()
        reply = json.dumps(new.reply)
        words = " ".join(new.words[:SEARCHED].split()).encode("utf-8", "replace").decode()
        model, shape = str(new.reply["model"]), str(new.reply["shape"])
        size = len(new.draft.encode()) + len(reply)
        cells = (secrets.token_hex(6), key, _now(), new.draft, reply, words, new.questions, model, shape, size)

        def work(connection: sqlite3.Connection) -> str | None:
            if not _keeps(connection):
                return None
            connection.execute(
                "insert into asks (id, key, at, draft, reply, words, questions, model, shape, bytes)"
                " values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
                " on conflict (key) do update set at = excluded.at, reply = excluded.reply, model = excluded.model,"
                " shape = excluded.shape, bytes = excluded.bytes",
                cells,
            )
            connection.execute(
                "delete from asks where id in (select id from (select id, row_number() over newest as place,"
                " sum(bytes) over newest as size from asks window newest as (order by at desc, id))"
                " where place > ? or (size > ? and place > 1))",
                (MOST, MOST_BYTES),
            )
            return str(connection.execute("select id from asks where key = ?", (key,)).fetchone()[0])

        return await self._database.write(work)

    async def list(self, *, search: str = "", limit: int = 100, offset: int = 0) -> list[AskLine]:
        """Kept asks, newest first; `search` looks in states, questions and answers."""
        query = f"select {_LINE} from asks where words like ? escape '\\' order by at desc, id limit ? offset ?"  # noqa: S608
        parameters = (containing(search), limit, offset)
        return await self._database.read(
            lambda connection: [_line(cells) for cells in connection.execute(query, parameters)]
        )

    async def count(self) -> int:
        """How many asks are kept."""
        query = "select count(*) from asks"
        return await self._database.read(lambda connection: int(connection.execute(query).fetchone()[0]))

    async def get(self, ask_id: str) -> KeptAsk:
        """The ask of this id. Raises NotFound."""
        query = f"select {_LINE}, draft, reply from asks where id = ?"  # noqa: S608 - names of ours
        found = await self._database.read(lambda connection: connection.execute(query, (ask_id,)).fetchone())
        if found is None:
            raise _unknown(ask_id)
        return KeptAsk(_line(found), json.loads(found["draft"]), json.loads(found["reply"]))

    async def delete(self, ask_id: str) -> None:
        """Forget an ask. Raises NotFound."""
        query = "delete from asks where id = ?"
        if not await self._database.write(lambda connection: connection.execute(query, (ask_id,)).rowcount):
            raise _unknown(ask_id)

    async def delete_all(self) -> int:
        """Forget every ask; how many there were."""
        return await self._database.write(lambda connection: connection.execute("delete from asks").rowcount)

    async def keeps(self) -> bool:
        """Whether asks are kept at all; they are until a person says otherwise."""
        return await self._database.read(_keeps)

    async def set_keeps(self, keep: bool) -> None:
        """Keep asks from now on, or none; those that are there stay."""
        query, cells = "insert or replace into choices (name, value) values ('keep_asks', ?)", (json.dumps(keep),)
        await self._database.write(lambda connection: connection.execute(query, cells) and None)


def _keeps(connection: sqlite3.Connection) -> bool:
    found = connection.execute("select value from choices where name = 'keep_asks'").fetchone()
    return found is None or bool(json.loads(found[0]))


def _line(cells: sqlite3.Row) -> AskLine:
    at = datetime.fromisoformat(cells["at"])
    return AskLine(cells["id"], at, cells["words"], cells["questions"], cells["model"], cells["shape"])


def _unknown(ask_id: str) -> NotFound:
    return NotFound(f'no ask "{ask_id}" is kept', hint="GET /api/asks lists those that are")


def _now() -> str:
    return datetime.now(UTC).isoformat()
