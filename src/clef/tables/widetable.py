"""Turns a wide table, with one state and the labels of several questions a row, into its examples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from clef.decisions.examples import Example
from clef.decisions.questions import Noul, Question, Score
from clef.errors import Problem
from clef.tables.columns import Roles
from clef.tables.examples import Examples, bad_answers, bad_states
from clef.tables.options import Mismatches, match, match_level, match_noul
from clef.tables.pictures import bad_images
from clef.tables.resolve import Resolved
from clef.tables.table import Grid, Notes, ReadOptions, TableFacts, shown


def wide_examples(
    grid: Grid, roles: Roles, options: ReadOptions, notes: Notes, facts: TableFacts
) -> tuple[list[Example], TableFacts]:
    """The examples row by row; a record with one bad label keeps its other questions."""
    known = options.questions_by_id
    for name in [name for name in roles.wide if name not in known]:
        message = f"no question {shown(name)} is given for the column {shown(grid.header[roles.wide[name]])}"
        notes.problem(Problem(message, "unknown_question", grid.header_row, grid.header_line, name))
    asked = [(name, known[name], grid.columns[at]) for name, at in roles.wide.items() if name in known]
    if not options.labelled:
        blank = [""] * len(grid.rows)
        asked += [(name, question, blank) for name, question in known.items() if name not in roles.wide]
    by = _score_labels(asked)
    mismatches = Mismatches()
    unusable = bad_states(grid, roles, notes) | bad_images(grid, roles, notes, options.album)
    examples: list[Example] = []
    for name, question, cells in asked:
        header = grid.header[roles.wide[name]] if name in roles.wide else name
        resolved = {
            cell: _resolved(name, question, cell, by)
            or Resolved(None, problem=mismatches.problem(cell, question.answers, header))
            for cell in dict.fromkeys(cells)
        }
        answered = [resolved[cell] for cell in cells]
        bad = bad_answers(grid, answered, resolved.values(), notes) | unusable
        examples += Examples(grid, roles, answered, bad)
    examples.sort(key=lambda example: example.row)
    used = len({example.row for example in examples})
    return examples, replace(facts, shape="wide", options_from=("given",), score_labels=by, used=used)


def _score_labels(asked: Sequence[tuple[str, Question, Sequence[str]]]) -> str | None:
    scores = [(question.answers, cells) for _, question, cells in asked if isinstance(question, Score)]
    labels = [(names, cell) for names, cells in scores for cell in set(cells) if cell.strip()]
    if not labels:
        return None
    text = sum(match(cell, names) is not None for names, cell in labels)
    index = sum(match_level(cell, names, "index") is not None for names, cell in labels)
    return "text" if text >= index else "index"


def _resolved(name: str, question: Question, cell: str, by: str | None) -> Resolved | None:
    """What a cell says, None where it says nothing that could be an answer."""
    if not cell.strip():
        return Resolved(question, None, "", name)
    if isinstance(question, Noul):
        label = match_noul(cell)
    elif isinstance(question, Score):
        label = match_level(cell, question.answers, by or "text")
    else:
        label = match(cell, question.answers)
    return None if label is None else Resolved(question, label, cell, name)
