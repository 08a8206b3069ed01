"""Turns the rows of a whole run back into outcomes, one by one or in blocks, so that a run of any size can be read.

This is the one place where a label is read with what came back for it.
"""

import hashlib
import json
import sqlite3
from collections.abc import Iterator, Sequence

import orjson

from clef.decisions.examples import Example, Outcome, Shape
from clef.runs.browse import Row
from clef.runs.rows import read_example, read_outcome

_ROWS = (
    "select examples.*, body, outcomes.* from examples join questions on questions.id = examples.question"
    " join outcomes on outcomes.run = examples.run and outcomes.position = examples.position"
    " where examples.run = ? and examples.position > ? order by examples.position limit ?"
)


def outcomes(connection: sqlite3.Connection, run_id: str) -> Iterator[Outcome]:
    """Every outcome of a run in the table's order."""
    return (read_outcome(cells) for cells in connection.execute(_ROWS, (run_id, -1, -1)))


def block(connection: sqlite3.Connection, run_id: str, after: int, limit: int) -> list[Row]:
    """At most `limit` rows in the table's order, from the place after `after`."""
    found = connection.execute(_ROWS, (run_id, after, limit))
    return [Row(cells["position"], read_outcome(cells), bool(cells["cached"])) for cells in found]


def extra_names(connection: sqlite3.Connection, run_id: str) -> list[str]:
    """The names of the extra columns of a run, in the order in which they first come."""
    query = (
        "select key from examples, json_each(examples.extra) where run = ? and extra is not null"
        " group by key order by min(position), min(json_each.id)"
    )
    return [name for (name,) in connection.execute(query, (run_id,))]


def unanswered(connection: sqlite3.Connection, run_id: str) -> list[int | list[int]]:
    """The places of the rows without an outcome, those of one state together, in the order of their first row.

    A million rows of a state each are 150 MB: no example is read, and a state is known by 8 bytes of its hash. That
    two states share them is one chance in 10^7 then, and only means that they are planned together.
    """
    query = (
        "select position, state, images from examples where run = ? and not exists (select 1 from outcomes"
        " where outcomes.run = examples.run and outcomes.position = examples.position) order by position"
    )
    groups: dict[int, int | list[int]] = {}
    for position, state, images in connection.execute(query, (run_id,)):
        key = _short(state, images)
        known = groups.get(key)
        if known is None:
            groups[key] = position
        elif isinstance(known, list):
            known.append(position)
        else:
            groups[key] = [known, position]
    return list(groups.values())


def _short(state: str, images: str | None) -> int:
    """What tells a state and its images apart, in 8 bytes; keys of an object may stand in any order."""
    plain = state.startswith('"')
    text = state if plain else orjson.dumps(orjson.loads(state), option=orjson.OPT_SORT_KEYS).decode()
    return int.from_bytes(hashlib.blake2b(f"{text}\0{images or ''}".encode(), digest_size=8).digest())


def examples(connection: sqlite3.Connection, run_id: str, positions: Sequence[int]) -> list[tuple[int, Example]]:
    """The examples at some places of a run, with their places, in the table's order."""
    query = (
        "select examples.*, body from examples join questions on questions.id = examples.question"
        " where run = ? and position in (select value from json_each(?)) order by position"
    )
    found = connection.execute(query, (run_id, json.dumps(positions)))
    return [(cells["position"], read_example(cells)) for cells in found]


def pace(connection: sqlite3.Connection, identity: str, shape: Shape) -> float | None:
    """Seconds that a request took a model in its last run of twenty rows or more; None where there is none."""
    query = (
        "select avg(elapsed_s) from outcomes where cached = 0 and failure is null and run = (select id from runs"
        " where identity = ? and shape = ? and done - cached - failed >= 20 order by created desc limit 1)"
    )
    (found,) = connection.execute(query, (identity, shape)).fetchone()
    return None if found is None else float(found)
