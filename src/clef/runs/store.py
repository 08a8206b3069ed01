"""Turns runs into rows of one SQLite file, and the rows back into runs, examples and outcomes.

A run's examples are written whole when it is made, each outcome in a batch as it comes: whatever kills the process,
each row has its outcome or is still to be asked, never twice.
"""

import secrets
import sqlite3
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Literal, TypeVar

import orjson

from clef.decisions.examples import Example, Outcome, Reply, Shape
from clef.engines.engine import EngineFacts
from clef.errors import NotFound
from clef.runs import browse, reading
from clef.runs.asks import Asks
from clef.runs.browse import Page, Row
from clef.runs.corrections import Corrections
from clef.runs.database import Database
from clef.runs.listing import RunFilter, counts
from clef.runs.measures import Measures
from clef.runs.narrowing import Labels, RowFilter, containing
from clef.runs.policies import Policies
from clef.runs.rows import (
    EXAMPLE_COLUMNS,
    OUTCOME_COLUMNS,
    example_row,
    outcome_row,
    placeholders,
    question_text,
)
from clef.runs.transfer import export_run, import_run

T = TypeVar("T")
RunState = Literal["queued", "running", "paused", "stopped", "finished", "failed"]
LIVE: tuple[RunState, ...] = ("queued", "running", "paused")
"""States of a run that will go on by itself."""
BLOCK = 1000
"""Rows that one statement writes or one read holds."""
UNDO = timedelta(days=1)
"""How long a deleted run can be brought back."""

_INSERT_EXAMPLE = (
    f"insert into examples (run, position, {', '.join(EXAMPLE_COLUMNS)}) values (?, ?, {placeholders(EXAMPLE_COLUMNS)})"  # noqa: S608 - names of ours
)
_INSERT_OUTCOME = (
    f"insert into outcomes (run, position, {', '.join(OUTCOME_COLUMNS)}) values (?, ?, {placeholders(OUTCOME_COLUMNS)})"  # noqa: S608 - names of ours
)


@dataclass(frozen=True, slots=True)
class NewRun:
    """What a run is made of."""

    name: str
    engine: EngineFacts
    shape: Shape = "isolated"
    note: str = ""
    use_cache: bool = True
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What the table reader understood."""


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A run as it stands in the store."""

    id: str
    name: str
    note: str
    created: datetime
    state: RunState
    reason: str | None
    """Why it is not finished, where it is not."""
    shape: Shape
    engine: EngineFacts
    identity: str
    """Which model answered; empty before the first row. Another model may not go on with this run."""
    facts: Mapping[str, Any]
    rows: int
    use_cache: bool
    done: int
    """Rows with an outcome."""
    failed: int
    """Rows whose outcome is a failure."""
    cached: int
    """Rows answered from earlier runs."""
    revision: int
    """Goes up with every change of its outcomes or labels."""
    deleted: datetime | None

    def to_dict(self) -> dict[str, Any]:
        """The run as JSON."""
        return asdict(self) | {"created": self.created.isoformat(), "engine": asdict(self.engine)}


@dataclass(frozen=True, slots=True)
class Numbered:
    """An outcome with its place in the run."""

    position: int
    outcome: Outcome
    cached: bool = False


class Store:
    """Every run of one data folder."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.policies = Policies(database)
        self.measures = Measures(database)
        self.asks = Asks(database)
        self.corrections = Corrections(database)
        self._counted = browse.Counted()

    async def create(self, new: NewRun, examples: Sequence[Example]) -> StoredRun:
        """A queued run with its examples, in one transaction."""
        run_id = secrets.token_hex(6)
        created, engine = datetime.now(UTC).isoformat(), _json(asdict(new.engine))
        facts = _json(new.facts)
        values = (run_id, new.name, new.note, created, new.shape, engine, facts, len(examples), new.use_cache)

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(
                "insert into runs (id, name, note, created, state, shape, engine, facts, rows, use_cache)"
                " values (?, ?, ?, ?, 'queued', ?, ?, ?, ?, ?)",
                values,
            )
            questions = _QuestionIds(connection)
            connection.executemany(
                _INSERT_EXAMPLE,
                (
                    (run_id, position, *example_row(example, questions.of(example)))
                    for position, example in enumerate(examples)
                ),
            )

        await self._database.write(work)
        return await self.get(run_id)

    async def get(self, run_id: str) -> StoredRun:
        """The run of this id, deleted or not. Raises NotFound."""
        found = await self._database.read(lambda connection: _runs(connection, "where id = ?", (run_id,)))
        if not found:
            raise NotFound(f'no run "{run_id}"', hint="`clef runs list`, or GET /api/runs, lists the runs there are")
        return found[0]

    async def runs(self, *, limit: int = 100, offset: int = 0, search: str = "") -> list[StoredRun]:
        """Runs that are not deleted, newest first; `search` looks in names and notes."""
        where = "where deleted is null and (name like ? escape '\\' or note like ? escape '\\')"
        tail = " order by created desc, id limit ? offset ?"
        like = containing(search)
        parameters = (like, like, limit, offset)
        return await self._database.read(lambda connection: _runs(connection, where, parameters, tail))

    async def listed(self, wanted: RunFilter) -> list[StoredRun]:
        """Runs that are not deleted, as a person wants to see them."""
        where, parameters = wanted.where
        return await self._database.read(lambda connection: _runs(connection, where, parameters, wanted.tail))

    async def run_counts(self, search: str) -> dict[str, int]:
        """How many runs each `show` of a list has."""
        return await self._database.read(lambda connection: counts(connection, search))

    async def deleted(self) -> list[StoredRun]:
        """Runs that can still be brought back, the last one deleted first."""
        after, tail = (datetime.now(UTC) - UNDO).isoformat(), " order by deleted desc, id"
        return await self._database.read(lambda connection: _runs(connection, "where deleted >= ?", (after,), tail))

    async def set_state(self, run_id: str, state: RunState, reason: str | None = None) -> None:
        """Move a run to a state."""
        await self._change("update runs set state = ?, reason = ? where id = ?", (state, reason, run_id))

    async def begin(self, run_id: str, engine: EngineFacts) -> None:
        """Mark a run as running, and by which engine."""
        query = "update runs set state = 'running', reason = null, engine = ?, identity = ? where id = ?"
        await self._change(query, (_json(asdict(engine)), engine.identity, run_id))

    async def rename(self, run_id: str, name: str, note: str) -> None:
        """Change what a person calls a run."""
        await self._change("update runs set name = ?, note = ? where id = ?", (name, note, run_id))

    async def delete(self, run_id: str) -> None:
        """Put a run away; `restore` brings it back within a day, after that `purge` ends it."""
        await self._change("update runs set deleted = ? where id = ?", (datetime.now(UTC).isoformat(), run_id))

    async def restore(self, run_id: str) -> None:
        """Bring a deleted run back."""
        await self._change("update runs set deleted = null where id = ?", (run_id,))

    async def purge(self, now: datetime | None = None) -> None:
        """End the runs that were deleted more than a day ago."""
        before = ((now or datetime.now(UTC)) - UNDO).isoformat()
        await self._change("delete from runs where deleted < ?", (before,))

    async def unanswered(self, run_id: str) -> list[int | list[int]]:
        """The places of the rows that have no outcome yet, those of one state together, in the table's order."""
        return await self._database.read(partial(reading.unanswered, run_id=run_id))

    async def examples(self, run_id: str, positions: Sequence[int]) -> dict[int, Example]:
        """The examples at some places of a run."""
        return dict(await self._database.read(partial(reading.examples, run_id=run_id, positions=positions)))

    async def add(self, run_id: str, outcomes: Sequence[Numbered], replies: Mapping[bytes, Reply]) -> None:
        """Write a batch of outcomes, and the replies that other runs may use again, in one transaction."""
        rows = [(run_id, item.position, *outcome_row(item.outcome, cached=item.cached)) for item in outcomes]
        kept = [
            (key, _json([answer.probabilities for answer in reply.answers]), reply.model)
            for key, reply in replies.items()
        ]
        failed = sum(item.outcome.failure is not None for item in outcomes)
        counts = (len(rows), failed, sum(item.cached for item in outcomes), run_id)

        def work(connection: sqlite3.Connection) -> None:
            connection.executemany(_INSERT_OUTCOME, rows)
            connection.executemany("insert or replace into answers (key, probabilities, model) values (?, ?, ?)", kept)
            query = (
                "update runs set done = done + ?, failed = failed + ?, cached = cached + ?,"
                " revision = revision + 1 where id = ?"
            )
            connection.execute(query, counts)

        await self._database.write(work)

    async def forget_failures(self, run_id: str) -> int:
        """Take the failed outcomes of a run away, so that they are asked again; how many there were."""

        def work(connection: sqlite3.Connection) -> int:
            query = "delete from outcomes where run = ? and failure is not null"
            count = connection.execute(query, (run_id,)).rowcount
            connection.execute(
                "update runs set done = done - ?, failed = 0, revision = revision + 1 where id = ?", (count, run_id)
            )
            return count

        return await self._database.write(work)

    async def known(self, keys: Sequence[bytes]) -> dict[bytes, tuple[list[list[float]], str]]:
        """Kept replies by their keys: the probabilities of each question, and the model's name."""

        def work(connection: sqlite3.Connection) -> dict[bytes, tuple[list[list[float]], str]]:
            found = {}
            for block in _blocks(keys, BLOCK):
                marks = ", ".join("?" * len(block))
                query = f"select key, probabilities, model from answers where key in ({marks})"  # noqa: S608
                found.update(
                    {cells[0]: (orjson.loads(cells[1]), cells[2]) for cells in connection.execute(query, block)}
                )
            return found

        return await self._database.read(work)

    async def pace(self, identity: str, shape: Shape) -> float | None:
        """Seconds that a request of this shape took this model in its last run of twenty rows or more; None where
        there is none.
        """
        return await self._database.read(partial(reading.pace, identity=identity, shape=shape))

    async def over(self, run_id: str, work: Callable[[Iterator[Outcome]], T]) -> T:
        """What `work` makes of the outcomes, in the table's order; they come one by one, and none is held for it."""
        return await self._database.read(lambda connection: work(reading.outcomes(connection, run_id)))

    async def blocks(self, run_id: str) -> AsyncGenerator[list[Row], None]:
        """The rows in the table's order, so many at a time; nothing is locked while one is worked on."""
        after = -1
        while block := await self._database.read(partial(reading.block, run_id=run_id, after=after, limit=BLOCK)):
            yield block
            after = block[-1].position

    async def extra_names(self, run_id: str) -> list[str]:
        """The table's own columns that play no role, in the order in which they first come."""
        return await self._database.read(partial(reading.extra_names, run_id=run_id))

    async def page(self, run_id: str, chosen: RowFilter) -> Page:
        """One page of a run's rows, and how many rows each other filter would show."""
        return await browse.page(self._database, run_id, chosen, self._counted)

    async def places(self, run_id: str, chosen: RowFilter) -> list[int]:
        """The places of the rows of a filter, in its order; `limit` and `offset` play no part."""
        return await browse.places(self._database, run_id, chosen)

    async def rank(self, run_id: str, chosen: RowFilter, position: int) -> int | None:
        """How many rows of a filter come before the one at a place; None where the filter leaves it out."""
        return await browse.rank(self._database, run_id, chosen, position)

    async def positions(self, run: StoredRun) -> Sequence[int]:
        """Where in a run its n-th outcome stands: a run that was stopped lacks some."""
        if run.done == run.rows:
            return range(run.rows)
        return await self.places(run.id, RowFilter(sort="row", descending=False))

    async def one(self, run_id: str, position: int, labels: Labels = "own") -> Row | None:
        """The row at a place of a run, or None where it has no outcome."""
        return await browse.one(self._database, run_id, position, labels)

    async def row(self, run_id: str, position: int, labels: Labels = "own") -> Row:
        """The row at a place of a run. Raises NotFound for the run as for the row."""
        await self.get(run_id)
        if (found := await self.one(run_id, position, labels)) is None:
            raise browse.no_row(position)
        return found

    async def export(self, run_id: str, path: Path) -> None:
        """Write a run to a file of its own."""
        await self.get(run_id)
        await export_run(self._database, run_id, path)

    async def take_in(self, path: Path) -> StoredRun:
        """The run of a file that `export` wrote, as a run of this store. Raises InputError where it holds none."""
        return await self.get(await import_run(self._database, path))

    async def remember(self, header: Sequence[str], mapping: Mapping[str, str]) -> None:
        """Keep which column plays which role in tables with this header."""
        query = "insert or replace into mappings (header, mapping) values (?, ?)"
        await self._change(query, (_json(list(header)), _json(dict(mapping))))

    async def remembered(self, header: Sequence[str]) -> dict[str, str]:
        """The roles that were kept for this header; empty where none were."""
        query, key = "select mapping from mappings where header = ?", _json(list(header))
        found = await self._database.read(lambda connection: connection.execute(query, (key,)).fetchone())
        return dict(orjson.loads(found[0])) if found else {}

    async def live(self) -> list[StoredRun]:
        """Runs that were under way or in line, oldest first."""
        marks = ", ".join("?" * len(LIVE))
        where = f"where deleted is null and state in ({marks})"
        return await self._database.read(lambda connection: _runs(connection, where, LIVE, " order by created"))

    async def _change(self, query: str, parameters: Sequence[Any]) -> None:
        await self._database.write(lambda connection: connection.execute(query, parameters) and None)

    async def close(self) -> None:
        """Finish what was begun."""
        await self._database.close()


class _QuestionIds:
    """Finds or makes the row of each distinct question."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._ids: dict[int, int] = {}

    def of(self, example: Example) -> int:
        known = self._ids.get(id(example.question))
        if known is not None:
            return known
        text = question_text(example.question)
        self._connection.execute("insert or ignore into questions (body) values (?)", (text,))
        (found,) = self._connection.execute("select id from questions where body = ?", (text,)).fetchone()
        return self._ids.setdefault(id(example.question), int(found))


def _runs(connection: sqlite3.Connection, where: str, parameters: Sequence[Any], tail: str = "") -> list[StoredRun]:
    query = f"select * from runs {where}{tail}"  # noqa: S608 - clauses of ours
    return [_stored(cells) for cells in connection.execute(query, parameters)]


def _stored(cells: sqlite3.Row) -> StoredRun:
    deleted = cells["deleted"]
    return StoredRun(
        id=cells["id"],
        name=cells["name"],
        note=cells["note"],
        created=datetime.fromisoformat(cells["created"]),
        state=cells["state"],
        reason=cells["reason"],
        shape=cells["shape"],
        engine=EngineFacts(**orjson.loads(cells["engine"])),
        identity=cells["identity"],
        facts=orjson.loads(cells["facts"]),
        rows=cells["rows"],
        use_cache=bool(cells["use_cache"]),
        done=cells["done"],
        failed=cells["failed"],
        cached=cells["cached"],
        revision=cells["revision"],
        deleted=datetime.fromisoformat(deleted) if deleted else None,
    )


def _blocks(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    left = iter(items)
    while block := list(islice(left, size)):
        yield block


def _json(value: Any) -> str:
    return orjson.dumps(value).decode()
