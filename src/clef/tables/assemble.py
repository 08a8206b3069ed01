"""Turns a Grid and its roles into Examples, and into Problems that name row, line and column.

Rows with a problem are left out and counted; rows without a label stay, to be answered and kept out of the accuracy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from clef.decisions.examples import Example
from clef.errors import Problem
from clef.tables.columns import Roles, role_named, role_problems
from clef.tables.examples import Examples, extra_columns
from clef.tables.longtable import long_examples
from clef.tables.pictures import without_foreign_images
from clef.tables.resolve import TYPES
from clef.tables.table import Grid, Notes, ReadOptions, Table, TableFacts, letter, shown
from clef.tables.widetable import wide_examples

_Build = Callable[[Grid, Roles, ReadOptions, Notes, TableFacts], tuple[Sequence[Example], TableFacts]]


def assemble(grid: Grid, roles: Roles, options: ReadOptions, notes: Notes, facts: TableFacts) -> Table:
    """The table of these columns; `facts` is what the reader knows already."""
    roles = _without_foreign_type(grid, roles, notes)
    roles = without_foreign_images(grid, roles, [role_named(name) or "" for name in options.mapping], notes)
    _tell_doubled_names(grid, roles, notes)
    facts = replace(
        facts,
        columns=grid.header,
        roles=roles.named(grid.header),
        extra_columns=tuple(name for name, _ in extra_columns(grid, roles)),
        header_row=grid.header_row,
        read=len(grid.rows) + notes.bad_records,
    )
    if not {"state", "images"} & set(roles.columns):
        for problem in role_problems(
            replace(roles, missing=("state",)), grid.header, grid.header_row, grid.header_line
        ):
            notes.problem(problem)
        return finished((), notes, facts)
    unlabelled = not options.labelled and options.questions_by_id and "question" not in roles.columns
    build: _Build = wide_examples if roles.wide or unlabelled else long_examples
    examples, facts = build(grid, roles, options, notes, facts)
    return finished(examples, notes, facts)


def finished(examples: Sequence[Example], notes: Notes, facts: TableFacts) -> Table:
    """The table, with everything counted."""
    problems = notes.listed_problems()
    kinds = examples.kinds if isinstance(examples, Examples) else [(example, 1) for example in examples]
    return Table(
        examples if isinstance(examples, Examples) else tuple(examples),
        problems,
        tuple(notes.warnings),
        replace(
            facts,
            blank=notes.blank,
            skipped=facts.read - facts.used,
            examples=len(examples),
            unlabelled=sum(times for one, times in kinds if one.label is None),
            questions=len({id(one.question) for one, _ in kinds}),
        ),
    )


def _without_foreign_type(grid: Grid, roles: Roles, notes: Notes) -> Roles:
    """A column called `type` that holds other things, such as kinds of tickets, is an ordinary column."""
    at = roles.columns.get("type")
    if at is None:
        return roles
    kinds = {cell.strip().casefold() for cell in set(grid.columns[at])} - {""}
    if not kinds or any(kind in TYPES for kind in kinds):
        return roles
    name = grid.header[at]
    message = f"the column {shown(name)} names no question type (choice, noul, score), so it is kept as it is"
    notes.warn(Problem(message, "type_column", grid.header_row, grid.header_line, name))
    return replace(roles, columns={role: place for role, place in roles.columns.items() if role != "type"})


def _tell_doubled_names(grid: Grid, roles: Roles, notes: Notes) -> None:
    seen: set[str] = set()
    for at in roles.without_role(grid.header):
        name = grid.header[at]
        if name and name in seen:
            message = f"a second column {shown(name)} is kept as {shown(f'{name} ({letter(at)})')}"
            notes.warn(Problem(message, "doubled_name", grid.header_row, grid.header_line, name))
        seen.add(name)
