"""Turns what a person looks for among their runs into one page of runs, and how many there are of each kind."""

import sqlite3
from dataclasses import dataclass
from typing import Any, Literal, get_args

from clef.runs.narrowing import containing

RunSort = Literal["started", "name", "right", "rows"]
RunShow = Literal["all", "live", "finished", "cut"]
"""All of them; those that will go on by themselves; those that have all their rows; those that ended before."""
SHOWN: dict[RunShow, tuple[str, ...]] = {
    "live": ("queued", "running", "paused"),
    "finished": ("finished",),
    "cut": ("stopped", "failed"),
}
_ORDER: dict[RunSort, str] = {
    "started": "created",
    "name": "name collate nocase",
    "right": "(select json_extract(body, '$.accuracy') from measures where run = runs.id and name = 'summary')",
    "rows": "done",
}


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Which runs, in which order, from where."""

    search: str = ""
    """Part of a name or note."""
    show: RunShow = "all"
    sort: RunSort = "started"
    descending: bool = True
    limit: int = 100
    offset: int = 0

    @property
    def where(self) -> tuple[str, tuple[Any, ...]]:
        """The clause that finds them, with its parameters."""
        states = SHOWN.get(self.show, ())
        marks = f" and state in ({', '.join('?' * len(states))})" if states else ""
        like = containing(self.search)
        found = "where deleted is null and (name like ? escape '\\' or note like ? escape '\\')"
        return found + marks, (like, like, *states)

    @property
    def tail(self) -> str:
        """Their order, what is unknown last, and the page."""
        direction = "desc" if self.descending else "asc"
        by = _ORDER[self.sort]
        return f" order by {by} is null, {by} {direction}, created desc, id limit {self.limit} offset {self.offset}"


def counts(connection: sqlite3.Connection, search: str) -> dict[str, int]:
    """How many runs each `show` would list."""
    where, parameters = RunFilter(search).where
    query = f"select state, count(*) from runs {where} group by state"  # noqa: S608 - clauses of ours
    by_state = {cells[0]: cells[1] for cells in connection.execute(query, parameters)}
    found = {show: sum(by_state.get(state, 0) for state in states) for show, states in SHOWN.items()}
    return {show: found.get(show, sum(by_state.values())) for show in get_args(RunShow)}
