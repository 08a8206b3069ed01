"""Turns records whose questions and labels are known into Examples, and the rest into Problems at their place."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import compress, repeat
from typing import Any

from clef.decisions.examples import Example
from clef.decisions.questions import Json, state_problems
from clef.tables.columns import Roles
from clef.tables.options import read_json_options
from clef.tables.resolve import Resolved
from clef.tables.table import Grid, Notes, letter


def bad_states(grid: Grid, roles: Roles, notes: Notes) -> set[int]:
    """Positions of the records without a usable state, each of them reported."""
    at = roles.columns["state"]
    states: Sequence[Any] = grid.columns[at]
    try:
        if all(map(str.strip, states)):
            return set()
    except TypeError:  # a state that is JSON
        pass
    bad = set()
    for position, state in enumerate(states):
        for problem in state_problems(state)[:1]:
            bad.add(position)
            row, line, column = grid.rows[position], grid.lines[position], grid.header[at]
            notes.problem(replace(problem, row=row, line=line, column=column))
    return bad


def bad_answers(grid: Grid, answered: Sequence[Resolved], distinct: Collection[Resolved], notes: Notes) -> set[int]:
    """Positions of the records whose question or label is wrong, reported by row, or once for all that share it.

    `distinct` holds every object that is in `answered`.
    """
    wrong = {id(answer) for answer in distinct if answer.problem}
    if not wrong:
        return set()
    bad = [at for at, answer in enumerate(answered) if id(answer) in wrong]
    shared: dict[int, list[int]] = {}
    for at in bad:
        problem = answered[at].problem
        if problem and answered[at].shared:
            shared.setdefault(id(problem), []).append(at)
        elif problem:
            notes.problem(replace(problem, row=grid.rows[at], line=grid.lines[at]))
    for positions in shared.values():
        first, more = positions[0], len(positions) - 1
        problem = answered[first].problem
        if problem:
            message = problem.message + (f" (and in {more:,} more rows)" if more else "")
            notes.problem(replace(problem, message=message, row=grid.rows[first], line=grid.lines[first]))
    return set(bad)


class _Draft:
    """An example in the making: an object with the slots of Example, which it becomes by taking its class.

    A frozen dataclass sets each field through a call; made this way, an example takes a third of the time, which for
    100,000 rows is as much as all of pandas' reading.
    """

    __slots__ = Example.__slots__

    def __init__(self, state: Json, answer: Resolved, row: int, line: int | None, extra: Mapping[str, str]) -> None:
        self.state = state
        self.question = answer.question
        self.label = answer.label
        self.written_label = answer.written
        self.row = row
        self.line = line
        self.question_name = answer.name
        self.extra = extra
        self.images: tuple[str, ...] = ()


def make_examples(grid: Grid, roles: Roles, answered: Sequence[Resolved], bad: Collection[int]) -> list[Example]:
    """One example a record, but for the positions in `bad`."""
    columns: list[Iterable[Any]] = [
        grid.columns[roles.columns["state"]],
        answered,
        grid.rows,
        grid.lines,
        _extras(grid, roles),
    ]
    images = _images(grid, roles)
    if bad:
        kept = [at not in bad for at in range(len(grid.rows))]
        columns = [compress(column, kept) for column in columns]
        images = None if images is None else list(compress(images, kept))
    examples: list[Any] = list(map(_Draft, *columns))
    for draft in examples:
        draft.__class__ = Example
    return examples if images is None else [replace(one, images=its) for one, its in zip(examples, images, strict=True)]


def extra_columns(grid: Grid, roles: Roles) -> list[tuple[str, int]]:
    """Columns without a role under names of their own; empty columns without a name are left out."""
    named: dict[str, int] = {}
    for at in roles.without_role(grid.header):
        name = grid.header[at]
        if not name:
            if not any(grid.columns[at]):
                continue
            name = f"column {letter(at)}"
        named[name if name not in named else f"{name} ({letter(at)})"] = at
    return list(named.items())


def _extras(grid: Grid, roles: Roles) -> Iterable[Mapping[str, str]]:
    columns = extra_columns(grid, roles)
    if not columns:
        return repeat({}, len(grid.rows))
    names = [name for name, _ in columns]
    return (
        dict(zip(names, cells, strict=True)) for cells in zip(*(grid.columns[at] for _, at in columns), strict=True)
    )


def _images(grid: Grid, roles: Roles) -> list[tuple[str, ...]] | None:
    at = roles.columns.get("images")
    return None if at is None else [images_in(cell) for cell in grid.columns[at]]


def images_in(cell: str) -> tuple[str, ...]:
    """The images of a cell: a JSON list, or one a line. They are passed on as they are."""
    listed = read_json_options(cell.strip()) if cell[:1] == "[" else None
    if listed is not None:
        return tuple(option.name for option in listed)
    return tuple(part for line in cell.splitlines() if (part := line.strip()))
