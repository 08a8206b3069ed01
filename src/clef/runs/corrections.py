"""Turns what a person says of a row into its label, and keeps what stood in the table.

The example itself gets the label, so that every filter, number and export goes by it; `of_the_table` makes outcomes
those as if nobody had said anything. A label that was only confirmed is kept as well: its row has been looked at.
"""

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any, TypeAlias

from clef.decisions.examples import Outcome
from clef.errors import InputError, NotFound, Problem
from clef.runs.browse import no_row
from clef.runs.database import Database
from clef.runs.rows import read_question, with_label

COLUMNS = ("review", "label_in_table", "review_note")
"""What exports say of the rows that a person looked at."""
MOST_NOTE = 2000
"""Characters of a note."""
Changed: TypeAlias = Callable[[int, Outcome], Outcome]
"""Makes an outcome another, by its place among those of its run, as they pass by."""
_SAID = "corrections.*, examples.row, examples.name, examples.label_text, examples.question, outcomes.prediction"
_TABLES = (
    "corrections join examples on examples.run = corrections.run and examples.position = corrections.position"
    " join outcomes on outcomes.run = corrections.run and outcomes.position = corrections.position"
)


@dataclass(frozen=True, slots=True)
class Correction:
    """What a person said of one row."""

    position: int
    row: int
    """Spreadsheet row."""
    question: str
    label: str
    """The right answer, by the person."""
    was: str | None
    """The label in the table; None where it had none."""
    was_label: int | None
    was_written: str
    prediction: str | None
    note: str
    at: str
    """When, ISO 8601."""

    @property
    def changed(self) -> bool:
        """Whether the person said something else than the table."""
        return self.label != self.was

    @property
    def word(self) -> str:
        """What was done, in a word."""
        return "corrected" if self.changed else "confirmed"

    def to_dict(self) -> dict[str, Any]:
        """The correction as JSON."""
        hidden = ("was_label", "was_written")
        return {name: value for name, value in asdict(self).items() if name not in hidden} | {"changed": self.changed}


class Corrections:
    """The labels that persons gave to the rows of the runs in a store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def of(self, run_id: str) -> list[Correction]:
        """Everything that was said of a run's rows, in the table's order."""
        query = f"select {_SAID} from {_TABLES} where corrections.run = ? order by corrections.position"  # noqa: S608
        return await self._database.read(
            lambda connection: [_read(cells) for cells in connection.execute(query, (run_id,))]
        )

    async def one(self, run_id: str, position: int) -> Correction | None:
        """What was said of one row, or None."""
        query = f"select {_SAID} from {_TABLES} where corrections.run = ? and corrections.position = ?"  # noqa: S608
        found = await self._database.read(lambda connection: connection.execute(query, (run_id, position)).fetchone())
        return None if found is None else _read(found)

    async def counts(self, run_id: str) -> tuple[int, int]:
        """Rows that were looked at, and those among them whose label became another."""
        query = (
            f"select count(*), coalesce(sum(examples.label_text is not was_text), 0) from {_TABLES}"  # noqa: S608
            " where corrections.run = ?"
        )
        found = await self._database.read(lambda connection: connection.execute(query, (run_id,)).fetchone())
        return int(found[0]), int(found[1])

    async def of_the_table(self, run_id: str) -> Changed:
        """Makes each outcome of a run one with the label that the table has."""
        placed = await self._placed(run_id)

        def changed(place: int, outcome: Outcome) -> Outcome:
            one = placed.get(place)
            return outcome if one is None else with_label(outcome, one.was_label, one.was_written)

        return changed

    async def told(self, run_id: str) -> Changed:
        """Makes each outcome of a run one with what a person said of it in COLUMNS."""
        placed = await self._placed(run_id)

        def changed(place: int, outcome: Outcome) -> Outcome:
            one = placed.get(place)
            said = ("", "", "") if one is None else (one.word, one.was_written, one.note)
            extra = {**outcome.example.extra, **dict(zip(COLUMNS, said, strict=True))}
            return replace(outcome, example=replace(outcome.example, extra=extra))

        return changed

    async def _placed(self, run_id: str) -> dict[int, Correction]:
        """Each correction by its place among the outcomes, of which a run that was stopped may lack some."""
        said = {one.position: one for one in await self.of(run_id)}
        query = "select position from outcomes where run = ? order by position"

        def work(connection: sqlite3.Connection) -> dict[int, Correction]:
            positions = enumerate(connection.execute(query, (run_id,)))
            return {place: said[position] for place, (position,) in positions if position in said}

        return await self._database.read(work) if said else {}

    async def correct(self, run_id: str, position: int, label: str, note: str = "") -> None:
        """Give a row its label. Raises NotFound for a row without an outcome, InputError for what is no answer of its
        question.
        """

        def work(connection: sqlite3.Connection) -> None:
            cells = _row(connection, run_id, position)
            answers = read_question(cells["body"]).answers
            if label not in answers:
                raise _no_answer(label, answers)
            values = (run_id, position, answers.index(label), cells["label"], cells["label_text"], cells["written"])
            connection.execute(
                "insert into corrections (run, position, label, was, was_text, was_written, note, at)"
                " values (?, ?, ?, ?, ?, ?, ?, ?) on conflict (run, position)"
                " do update set label = excluded.label, note = excluded.note, at = excluded.at",
                (*values, note[:MOST_NOTE], datetime.now(UTC).isoformat()),
            )
            _label(connection, run_id, position, (answers.index(label), label, label))

        await self._database.write(work)

    async def undo(self, run_id: str, position: int) -> None:
        """Give a row the label back that it has in the table. Raises NotFound where nothing was said of it."""

        def work(connection: sqlite3.Connection) -> None:
            query = "delete from corrections where run = ? and position = ? returning was, was_text, was_written"
            was = connection.execute(query, (run_id, position)).fetchone()
            if was is None:
                raise NotFound(f"the row at place {position} has the label of the table")
            _label(connection, run_id, position, tuple(was))

        await self._database.write(work)


def _row(connection: sqlite3.Connection, run_id: str, position: int) -> Any:
    query = (
        "select examples.label, label_text, written, body from examples join questions"
        " on questions.id = examples.question join outcomes on outcomes.run = examples.run"
        " and outcomes.position = examples.position where examples.run = ? and examples.position = ?"
    )
    cells = connection.execute(query, (run_id, position)).fetchone()
    if cells is None:
        raise no_row(position)
    return cells


def _label(connection: sqlite3.Connection, run_id: str, position: int, label: tuple[Any, Any, Any]) -> None:
    """Set the label of an example and whether its outcome is right; numbers made before are old."""
    at = (run_id, position)
    query = "update examples set label = ?, label_text = ?, written = ? where run = ? and position = ?"
    connection.execute(query, (*label, *at))
    connection.execute(
        "update outcomes set correct = case when prediction is null or ? is null then null else prediction = ? end"
        " where run = ? and position = ?",
        (label[1], label[1], *at),
    )
    connection.execute("update runs set revision = revision + 1 where id = ?", (run_id,))


def _no_answer(label: str, answers: Sequence[str]) -> InputError:
    shown = ", ".join(f'"{name}"' for name in answers[:10]) + (", …" if len(answers) > 10 else "")
    problem = Problem(f'"{label}" is no answer of this question', "label", column="label", hint=f"give one of {shown}")
    return InputError.of([problem], "the label")


def _read(cells: Mapping[str, Any]) -> Correction:
    return Correction(
        position=cells["position"],
        row=cells["row"],
        question=cells["name"],
        label=cells["label_text"],
        was=cells["was_text"],
        was_label=cells["was"],
        was_written=cells["was_written"],
        prediction=cells["prediction"],
        note=cells["note"],
        at=cells["at"],
    )
