"""Turns a filter into one page of a run's rows, with how many rows each other filter would show.

Sorting and filtering happen in the database, by names on a list; nothing of a request becomes SQL.
"""

import asyncio
import json
import sqlite3
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from clef.decisions.examples import Outcome
from clef.decisions.questions import QuestionType
from clef.errors import NotFound
from clef.runs.database import READERS, Database
from clef.runs.rows import read_outcome

Show = Literal["all", "judged", "right", "wrong", "failed", "ties", "unlabelled", "reviewed"]
Sort = Literal["rank", "row", "probability", "margin", "elapsed"]
SHOWS: dict[Show, str] = {
    "all": "1",
    "judged": "outcomes.correct is not null",
    "right": "outcomes.correct = 1",
    "wrong": "outcomes.correct = 0",
    "failed": "outcomes.failure is not null",
    "ties": "outcomes.tie",
    "unlabelled": "examples.label_text is null",
    "reviewed": "outcomes.position in (select position from corrections where run = ?1)",
}
SORTS: dict[Sort, str] = {
    "rank": "outcomes.rank",
    "row": "outcomes.position",
    "probability": "outcomes.top",
    "margin": "outcomes.margin",
    "elapsed": "outcomes.elapsed_s",
}
MAX_PAGE = 500
"""Rows one page may have."""
KEPT = 64
"""Filters whose counts are kept in memory."""
MOST_PLACE = 2**31
"""Places that a run can have."""


@dataclass(frozen=True, slots=True)
class Narrowed:
    """Which rows, in which order. Each part that is given narrows the rows further."""

    show: Show = "all"
    question: str | None = None
    """Name of the question in the table."""
    label: str | None = None
    prediction: str | None = None
    low: float | None = None
    """Top probability at least this."""
    high: float | None = None
    """Top probability below this; 1 includes 1."""
    sure: float | None = None
    """What a gate at this threshold acts on: at least this top probability, and no tie."""
    unsure: float | None = None
    """What a gate at this threshold leaves to be checked: below it, or a tie."""
    type: QuestionType | None = None
    """Of the question."""
    off: int | None = None
    """Levels by which the most likely level of a score is above its label; negative where it is below."""
    text: str = ""
    """Part of the state, the label or the prediction, in any case."""
    column: str | None = None
    """A column of the table with no role, which must have `value`."""
    value: str = ""
    sort: Sort = "rank"
    descending: bool = True


@dataclass(frozen=True, slots=True)
class RowFilter(Narrowed):
    """The same for the store, a page at a time."""

    reviewed: bool | None = None
    """Whether a person has looked at the row; None for either."""
    limit: int = 100
    offset: int = 0


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
_OUTCOMES = "outcomes indexed by outcomes_narrow"
_SAME_ROW = "on examples.run = outcomes.run and examples.position = outcomes.position"
_NARROW = f"{_OUTCOMES} cross join examples indexed by examples_narrow {_SAME_ROW}"
_UNLABELLED = f"examples indexed by examples_narrow cross join {_OUTCOMES} {_SAME_ROW}"
_WITH_STATES = f"{_OUTCOMES} cross join examples {_SAME_ROW}"


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
    rows, counts = await asyncio.gather(
        database.read(lambda connection: _rows(connection, run_id, chosen, places)),
        counted.of(database, run_id, chosen, places),
    )
    return Page(rows, counts[chosen.show], counts)


async def places(database: Database, run_id: str, chosen: RowFilter) -> list[int]:
    """The places of the rows of a filter, all of them, in its order."""
    narrowed = await _narrowed(database, run_id, chosen)

    def work(connection: sqlite3.Connection) -> list[int]:
        query, parameters = _ordered(run_id, chosen, narrowed)
        return [place for (place,) in connection.execute(query, parameters)]

    return await database.read(work)


def containing(text: str) -> str:
    """The LIKE pattern of what has a text anywhere in it, wildcards taken as text; to be used with `escape '\\'`."""
    return "%" + text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%"


async def _narrowed(database: Database, run_id: str, chosen: RowFilter) -> str | None:
    """The places of the rows with what only their whole text tells, as a JSON list; None where all may be meant."""
    parts: list[tuple[str, tuple[object, ...]]] = []
    if chosen.text:
        columns = ("examples.state", "examples.label_text", "outcomes.prediction")
        either = " or ".join(f"{column} like ? escape '\\'" for column in columns)
        parts.append((f"({either})", (containing(chosen.text),) * len(columns)))
    if chosen.column is not None:
        has = "exists (select 1 from json_each(examples.extra) where key = ? and value = ?)"
        parts.append((has, (chosen.column, chosen.value)))
    of_type = "examples.question in (select id from questions where json_extract(body, '$.type') = ?)"
    if chosen.type is not None:
        parts.append((of_type, (chosen.type,)))
    if chosen.off is not None:
        level = "(select key from json_each(outcomes.probabilities) order by value desc, key limit 1)"
        off = f"{of_type} and outcomes.correct is not null and {level} - examples.label = ?"
        parts.append((off, ("score", chosen.off)))
    if not parts:
        return None
    condition = " and ".join(part for part, _ in parts)
    return await _matching(database, run_id, condition, [value for _, values in parts for value in values])


async def _matching(database: Database, run_id: str, condition: str, values: Sequence[object]) -> str:
    """The places of the rows with a condition, as a JSON list: every reader looks through a part of the run."""
    query = (
        f"select outcomes.position from {_WITH_STATES} where outcomes.run = ?"  # noqa: S608 - names of ours
        f" and outcomes.position between ? and ? and {condition}"
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


async def one(database: Database, run_id: str, position: int) -> Row | None:
    """The row at a place of a run, or None where it has no outcome."""
    if not 0 <= position < MOST_PLACE:
        return None
    query = (
        f"select examples.*, questions.body, outcomes.* from {_TABLES}"  # noqa: S608
        " where outcomes.run = ? and outcomes.position = ?"
    )

    def work(connection: sqlite3.Connection) -> Row | None:
        cells = connection.execute(query, (run_id, position)).fetchone()
        return _row(cells) if cells else None

    return await database.read(work)


def _rows(connection: sqlite3.Connection, run_id: str, chosen: RowFilter, places: str | None) -> tuple[Row, ...]:
    """The places of the rows are found first, so that no whole row is ever sorted."""
    query, parameters = _ordered(run_id, chosen, places)
    limit = min(chosen.limit, MAX_PAGE)
    cells = connection.execute(f"{query} limit ? offset ?", (*parameters, limit, chosen.offset))
    shown = [place for (place,) in cells]
    marks = ", ".join("?" * len(shown))
    query = (
        f"select examples.*, questions.body, outcomes.* from {_TABLES}"  # noqa: S608 - names of ours
        f" where outcomes.run = ? and outcomes.position in ({marks})"
    )
    found = {cells["position"]: _row(cells) for cells in connection.execute(query, (run_id, *shown))}
    return tuple(found[place] for place in shown)


def _ordered(run_id: str, chosen: RowFilter, places: str | None) -> tuple[str, Sequence[Any]]:
    """The query of the places of a filter in its order, and what goes into it."""
    where, parameters = _where(run_id, chosen, places)
    way = "desc" if chosen.descending else "asc"
    order = f"{SORTS[chosen.sort]} is null, {SORTS[chosen.sort]} {way}, outcomes.position"
    return f"select outcomes.position from {_source(chosen)} where {where} order by {order}", parameters  # noqa: S608


def _counts(connection: sqlite3.Connection, run_id: str, chosen: RowFilter, places: str | None) -> dict[str, int]:
    """One pass over the run for all counts, over what came back alone where the filter asks for no more.

    Few rows have no label, or none has: they are counted from the examples then, which takes a third of the time of
    looking at both tables.
    """
    everything = replace(chosen, show="all")
    where, parameters = _where(run_id, everything, places)
    source = _source(everything)
    said = connection.execute("select 1 from corrections where run = ? limit 1", (run_id,)).fetchone()
    conditions = SHOWS if said else SHOWS | {"reviewed": "0"}  # looked up row by row it doubles the time of the pass
    if source == _OUTCOMES:
        conditions = conditions | {"unlabelled": "0"}
    sums = ", ".join(f"coalesce(sum(case when {condition} then 1 else 0 end), 0)" for condition in conditions.values())
    found = connection.execute(f"select {sums} from {source} where {where}", parameters).fetchone()  # noqa: S608
    counts = dict(zip(get_args(Show), found, strict=True))
    if source == _OUTCOMES:
        query = f"select count(*) from {_UNLABELLED} where {where} and {SHOWS['unlabelled']}"  # noqa: S608
        (counts["unlabelled"],) = connection.execute(query, parameters).fetchone()
    return counts


def _source(chosen: RowFilter) -> str:
    """The narrowest tables that the filter can be read from."""
    needs_example = chosen.show == "unlabelled" or chosen.question is not None or chosen.label is not None
    return _NARROW if needs_example else _OUTCOMES


def _where(run_id: str, chosen: RowFilter, places: str | None) -> tuple[str, Sequence[Any]]:
    parts: list[tuple[str, tuple[Any, ...]]] = [("outcomes.run = ?1", (run_id,)), (SHOWS[chosen.show], ())]
    if chosen.question is not None:
        parts.append(("examples.name = ?", (chosen.question,)))
    if chosen.label is not None:
        parts.append(("examples.label_text = ?", (chosen.label,)))
    if chosen.prediction is not None:
        parts.append(("outcomes.prediction = ?", (chosen.prediction,)))
    if chosen.low is not None:
        parts.append(("outcomes.top >= ?", (chosen.low,)))
    if chosen.high is not None:
        parts.append(("outcomes.top <= ?" if chosen.high >= 1 else "outcomes.top < ?", (chosen.high,)))
    if chosen.sure is not None:
        parts.append(("outcomes.top >= ? and not outcomes.tie", (chosen.sure,)))
    if chosen.unsure is not None:
        parts.append(("(outcomes.top < ? or outcomes.tie)", (chosen.unsure,)))
    if chosen.reviewed is not None:
        parts.append((SHOWS["reviewed"] if chosen.reviewed else f"not {SHOWS['reviewed']}", ()))
    if places is not None:
        parts.append(("outcomes.position in (select value from json_each(?))", (places,)))
    return " and ".join(condition for condition, _ in parts), [value for _, values in parts for value in values]


def _row(cells: Any) -> Row:
    return Row(cells["position"], read_outcome(cells), bool(cells["cached"]))
