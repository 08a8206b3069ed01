"""Turns a filter into one page of a run's rows, with how many rows each other filter would show.

Sorting and filtering happen in the database, as `narrowing` puts them.
"""

import asyncio
import json
import sqlite3
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

from clef.decisions.examples import Outcome
from clef.errors import NotFound
from clef.runs.database import READERS, Database
from clef.runs.narrowing import (
    SORTS,
    Labels,
    RowFilter,
    Show,
    condition,
    from_examples,
    needs_examples,
    of_whole_texts,
    shows,
    source,
    with_states,
)
from clef.runs.rows import read_outcome, with_label

MAX_PAGE = 500
"""Rows one page may have."""
KEPT = 64
"""Filters whose counts are kept in memory."""
DEEP = 10_000
"""Rows into an order from which it is worth knowing whether its other end is nearer."""
MOST_PLACE = 2**31
"""Places that a run can have."""


@dataclass(frozen=True, slots=True)
class Row:
    """An outcome with its place in the run."""

    position: int
    outcome: Outcome
    cached: bool


@dataclass(frozen=True, slots=True)
class Page:
    """One page of rows."""

    rows: tuple[Row, ...]
    total: int
    """Rows that the filter leads to."""
    counts: dict[str, int]
    """Rows that each `show` would lead to, the rest of the filter as it is."""


_TABLES = (
    "outcomes join examples on examples.run = outcomes.run and examples.position = outcomes.position"
    " join questions on questions.id = examples.question"
)


class Counted:
    """Counts that were made, by the run as it stood and what narrows its rows: another page or order of them, and a
    look back, count nothing.
    """

    def __init__(self) -> None:
        self._counts: OrderedDict[tuple[str, int, RowFilter], dict[str, int]] = OrderedDict()

    async def of(self, database: Database, run_id: str, chosen: RowFilter, places: str | None) -> dict[str, int]:
        """The rows that each `show` would lead to."""
        query = "select revision from runs where id = ?"
        found = await database.read(lambda connection: connection.execute(query, (run_id,)).fetchone())
        narrowed = replace(chosen, show="all", sort="rank", descending=True, limit=0, offset=0)
        key = (run_id, found["revision"] if found else 0, narrowed)
        counts = self._counts.get(key)
        if counts is None:
            counts = await database.read(lambda connection: _counts(connection, run_id, chosen, places))
            self._counts[key] = counts
        self._counts.move_to_end(key)
        while len(self._counts) > KEPT:
            self._counts.popitem(last=False)
        return counts


async def page(database: Database, run_id: str, chosen: RowFilter, counted: Counted) -> Page:
    """The rows of a filter. Failures come last in any order; equal ones in the table's order."""
    places = await _narrowed(database, run_id, chosen)
    if chosen.offset < DEEP:
        rows, counts = await asyncio.gather(
            database.read(lambda connection: _rows(connection, run_id, chosen, places)),
            counted.of(database, run_id, chosen, places),
        )
    else:
        counts = await counted.of(database, run_id, chosen, places)
        total = counts[chosen.show]
        rows = await database.read(lambda connection: _rows(connection, run_id, chosen, places, total))
    return Page(rows, counts[chosen.show], counts)


async def places(database: Database, run_id: str, chosen: RowFilter) -> list[int]:
    """The places of the rows of a filter, all of them, in its order."""
    narrowed = await _narrowed(database, run_id, chosen)

    def work(connection: sqlite3.Connection) -> list[int]:
        query, parameters = _ordered(run_id, chosen, narrowed)
        return [place for (place,) in connection.execute(query, parameters)]

    return await database.read(work)


async def _narrowed(database: Database, run_id: str, chosen: RowFilter) -> str | None:
    """The places of the rows with what only their whole text tells, as a JSON list; None where all may be meant."""
    asked = of_whole_texts(chosen)
    return None if asked is None else await _matching(database, run_id, chosen, *asked)


async def _matching(database: Database, run_id: str, chosen: RowFilter, asked: str, values: Sequence[object]) -> str:
    """The places of the rows with a condition, as a JSON list: every reader looks through a part of the run."""
    query = (
        f"select outcomes.position from {with_states(chosen)} where outcomes.run = ?"  # noqa: S608 - names of ours
        f" and outcomes.position between ? and ? and {asked}"
    )
    count = "select rows from runs where id = ?"
    found = await database.read(lambda connection: connection.execute(count, (run_id,)).fetchone())
    size = -(-(found[0] if found else 0) // READERS)

    def search(start: int) -> Callable[[sqlite3.Connection], list[int]]:
        parameters = (run_id, start, start + size - 1, *values)
        return lambda connection: [place for (place,) in connection.execute(query, parameters)]

    parts = await asyncio.gather(*(database.read(search(part * size)) for part in range(READERS)))
    return json.dumps([place for part in parts for place in part])


def no_row(position: int) -> NotFound:
    """The error of a place where a run has no row."""
    return NotFound(f"no row at place {position} in this run")


async def one(database: Database, run_id: str, position: int, labels: Labels = "own") -> Row | None:
    """The row at a place of a run, or None where it has no outcome."""
    if not 0 <= position < MOST_PLACE:
        return None
    found = await database.read(lambda connection: _at(connection, run_id, [position], labels))
    return found[0] if found else None


async def rank(database: Database, run_id: str, chosen: RowFilter, position: int) -> int | None:
    """How many rows of a filter come before the one at a place, in its order; None where the filter leaves it out."""
    narrowed = await _narrowed(database, run_id, chosen)
    where, parameters = condition(run_id, chosen, narrowed)
    tables, by = source(chosen), SORTS[chosen.sort]
    itself = f"select {by} from {tables} where {where} and outcomes.position = ?"  # noqa: S608 - names of ours
    further = f"{by} {'>' if chosen.descending else '<'} ?"
    before = f"select count(*) from {tables} where {where} and ({{}})"  # noqa: S608

    def work(connection: sqlite3.Connection) -> int | None:
        found = connection.execute(itself, (*parameters, position)).fetchone()
        if found is None:
            return None
        (value,) = found
        if value is None:  # these come last
            asked, values = f"{by} is not null or outcomes.position < ?", [position]
        else:
            asked, values = f"{further} or {by} = ? and outcomes.position < ?", [value, value, position]
        return int(connection.execute(before.format(asked), (*parameters, *values)).fetchone()[0])

    return await database.read(work)


def _rows(
    connection: sqlite3.Connection, run_id: str, chosen: RowFilter, places: str | None, total: int = 0
) -> tuple[Row, ...]:
    """The places of the rows are found first, so that no whole row is ever sorted; from the other end of the order
    where they are nearer to it, since all rows up to them are sorted.
    """
    offset, limit = chosen.offset, min(chosen.limit, MAX_PAGE)
    backwards = offset > total // 2 > 0
    if backwards:
        limit = max(0, min(limit, total - offset))
        offset = max(0, total - offset - limit)
    query, parameters = _ordered(run_id, chosen, places, backwards=backwards)
    cells = connection.execute(f"{query} limit ? offset ?", (*parameters, limit, offset))
    found = [place for (place,) in cells]
    return _at(connection, run_id, found[::-1] if backwards else found, chosen.labels)


def _at(connection: sqlite3.Connection, run_id: str, places: Sequence[int], labels: Labels) -> tuple[Row, ...]:
    """The rows at some places, in the order of these, with the labels that are asked for."""
    marks = ", ".join("?" * len(places))
    query = (
        f"select examples.*, questions.body, outcomes.* from {_TABLES}"  # noqa: S608 - names of ours
        f" where outcomes.run = ? and outcomes.position in ({marks})"
    )
    found = {cells["position"]: _row(cells) for cells in connection.execute(query, (run_id, *places))}
    if labels == "table":
        query = f"select position, was, was_written from corrections where run = ? and position in ({marks})"  # noqa: S608
        for position, label, written in connection.execute(query, (run_id, *places)):
            row = found.get(position)
            if row is not None:
                found[position] = replace(row, outcome=with_label(row.outcome, label, written))
    return tuple(found[place] for place in places if place in found)


def _ordered(
    run_id: str, chosen: RowFilter, places: str | None, *, backwards: bool = False
) -> tuple[str, Sequence[Any]]:
    """The query of the places of a filter in its order, and what goes into it."""
    where, parameters = condition(run_id, chosen, places)
    by, end = SORTS[chosen.sort], "desc" if backwards else "asc"
    way = "desc" if chosen.descending != backwards else "asc"
    order = f"{by} is null {end}, {by} {way}, outcomes.position {end}"
    return f"select outcomes.position from {source(chosen)} where {where} order by {order}", parameters  # noqa: S608


def _counts(connection: sqlite3.Connection, run_id: str, chosen: RowFilter, places: str | None) -> dict[str, int]:
    """One pass over the run for all counts, over what came back alone where the filter asks for no more.

    Few rows have no label, or none has: they are counted from the examples then, which takes a third of the time of
    looking at both tables.
    """
    said = connection.execute("select 1 from corrections where run = ? limit 1", (run_id,)).fetchone()
    everything = replace(chosen, show="all", labels=chosen.labels if said else "own")
    where, parameters = condition(run_id, everything, places)
    conditions = shows(everything)
    unlabelled = conditions["unlabelled"]
    if not said:  # looked up row by row it doubles the time of the pass
        conditions["reviewed"] = "0"
    if not needs_examples(everything):
        conditions["unlabelled"] = "0"
    sums = ", ".join(f"coalesce(sum(case when {one} then 1 else 0 end), 0)" for one in conditions.values())
    query = f"select {sums} from {source(everything)} where {where}"  # noqa: S608
    counts = dict(zip(get_args(Show), connection.execute(query, parameters).fetchone(), strict=True))
    if not needs_examples(everything):
        query = f"select count(*) from {from_examples(everything)} where {where} and {unlabelled}"  # noqa: S608
        (counts["unlabelled"],) = connection.execute(query, parameters).fetchone()
    return counts


def _row(cells: Any) -> Row:
    return Row(cells["position"], read_outcome(cells), bool(cells["cached"]))
