"""Turns the rows of a whole run back into outcomes, one by one or in blocks, so that a run of any size can be read.

This is the one place where a label is read with what came back for it.
"""

import sqlite3
from collections.abc import Iterator

from clef.decisions.examples import Outcome
from clef.runs.browse import Row
from clef.runs.rows import read_outcome

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
