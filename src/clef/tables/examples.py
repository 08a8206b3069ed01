"""Turns records whose questions and labels are known into Examples, and the rest into Problems at their place."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import compress, repeat
from operator import eq
from typing import Any, overload

from clef.decisions.examples import Example
from clef.decisions.questions import Json, state_problems
from clef.tables.columns import Roles
from clef.tables.pictures import images_in
from clef.tables.resolve import Resolved
from clef.tables.table import Grid, Notes, letter


def bad_states(grid: Grid, roles: Roles, notes: Notes) -> set[int]:
    """Positions of the records without a usable state, each of them reported."""
    states = _states(grid, roles)
    try:
        if all(map(str.strip, states)):
            return set()
    except TypeError:  # a state that is JSON
        pass
    images = roles.columns.get("images")
    column = grid.header[roles.columns.get("state", images or 0)]
    bad = set()
    for position, state in enumerate(states):
        has_images = images is not None and bool(grid.columns[images][position].strip())
        for problem in state_problems(state, has_images=has_images)[:1]:
            bad.add(position)
            notes.problem(replace(problem, row=grid.rows[position], line=grid.lines[position], column=column))
    return bad


def _states(grid: Grid, roles: Roles) -> Sequence[Any]:
    """The state of each record; empty where the table has images alone."""
    at = roles.columns.get("state")
    return [""] * len(grid.rows) if at is None else grid.columns[at]


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

    A frozen dataclass sets each field through a call; made this way, an example takes a third of the time.
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


class Examples(Sequence[Example]):
    """The examples of a table, each made when it is asked for.

    The columns hold all that is known of them. Made in advance, 100,000 examples take as long as pandas' whole
    reading, and most of what reads a table looks at the first few, or at each once.
    """

    def __init__(
        self,
        grid: Grid,
        roles: Roles,
        answered: Sequence[Resolved],
        bad: Collection[int],
        kinds: Sequence[tuple[Resolved, int]] = (),
    ) -> None:
        """One example a record, but for the positions in `bad`; `kinds` says how often each object is in `answered`."""
        kept = [at not in bad for at in range(len(grid.rows))] if bad else None

        def good(cells: Sequence[Any]) -> Sequence[Any]:
            return cells if kept is None else list(compress(cells, kept))

        self._columns = [good(cells) for cells in (_states(grid, roles), answered, grid.rows, grid.lines)]
        self.kinds = kinds if kinds and not bad else [(one, 1) for one in self._columns[1]]
        """What is asked, with its label, and how many examples ask it; an object may come several times."""
        extra = extra_columns(grid, roles)
        self._names = [name for name, _ in extra]
        self._extra = [good(grid.columns[at]) for _, at in extra]
        images = roles.columns.get("images")
        self._images = None if images is None else good(grid.columns[images])

    def __len__(self) -> int:
        return len(self._columns[0])

    @overload
    def __getitem__(self, index: int) -> Example: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Example]: ...
    def __getitem__(self, index: int | slice) -> Example | Sequence[Example]:
        if isinstance(index, slice):
            return tuple(self._made(index))
        at = range(len(self))[index]
        return next(self._made(slice(at, at + 1)))

    def __iter__(self) -> Iterator[Example]:
        return self._made(None)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and len(self) == len(other) and all(map(eq, self, other))

    __hash__ = None  # type: ignore[assignment]  # as that of a list

    def _made(self, part: slice | None) -> Iterator[Example]:
        def its(cells: Sequence[Any]) -> Sequence[Any]:
            return cells if part is None else cells[part]

        extras: Iterable[Mapping[str, str]] = repeat({})
        if self._names:
            names = self._names
            extras = (dict(zip(names, cells, strict=True)) for cells in zip(*map(its, self._extra), strict=True))
        drafts: Iterator[Any] = map(_Draft, *map(its, self._columns), extras)
        if self._images is not None:
            drafts = map(_with_images, drafts, its(self._images))
        for draft in drafts:
            draft.__class__ = Example
            yield draft


def _with_images(draft: _Draft, cell: str) -> _Draft:
    draft.images = tuple(images_in(cell))
    return draft


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
