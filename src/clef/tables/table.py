"""Turns what a reader found into a Table: examples, problems, warnings, and facts about how it was read.

A Grid is the step between: any tabular source as columns of text, each record with its spreadsheet row and text line.
Every cell is text exactly as it stood; only an empty cell is empty.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from clef.decisions.examples import Example
from clef.decisions.questions import Choice, Json, Noul, Question, Text, as_text
from clef.errors import InputError, Problem

if TYPE_CHECKING:
    from clef.tables.files import Album

MAX_NOTES = 10_000
"""Problems, and warnings, that are listed one by one; a file wrong in every row would fill the memory with them."""


@dataclass(frozen=True)
class ReadOptions:
    """What the user says about a table; everything left out is found out."""

    name: str = ""
    """File name, a hint for the format."""
    encoding: str | None = None
    """Name of a text encoding; wins over every guess."""
    separator: str | None = None
    """One character; wins over the header's."""
    sheet: str | None = None
    """Sheet of a workbook; by default the first."""
    mapping: Mapping[str, str] = field(default_factory=dict)
    """Role (`state`, `question`, `label`, `options`, `type`, `images`, `expected_<id>`) → column header.
    An empty header says that no column has the role; `question: "=TEXT"` that TEXT is the question of every row."""
    questions: Mapping[str, Question] | Sequence[Question] | None = None
    """Typed questions by id, for tables that hold labels only; a list gets the ids q1, q2, …"""
    labelled: bool = True
    """Whether a column of labels is needed; False for a table that is to be labelled."""
    max_rows: int = 1_000_000
    """Rows a table may have."""
    beside: bool = False
    """Whether a table that is a file may name images in its folder. Not for a table that somebody sent."""
    album: Album | None = field(default=None, repr=False)
    """Where images are that a table names; the reader sets it for an archive, a folder, and what is `beside`."""

    @property
    def questions_by_id(self) -> Mapping[str, Question]:
        """The typed questions as id → question; empty where none were given."""
        if self.questions is None or isinstance(self.questions, Mapping):
            return self.questions or {}
        return {f"q{n}": question for n, question in enumerate(self.questions, 1)}


@dataclass(frozen=True)
class TableFacts:
    """How a table was read: everything that was recognised, guessed or counted."""

    format: str = ""
    """csv, json, jsonl, xlsx, ods, xls, parquet, frame or dataset; zip or folder where its images make the table."""
    shape: str = "table"
    """table (long), wide, or the name of a JSON shape; several joined with " + "."""
    encoding: str | None = None
    """Text encoding; None where the format has its own."""
    encoding_guessed: bool = False
    """Whether the encoding is a guess that the user should look at."""
    separator: str | None = None
    """Column separator of delimited text."""
    sheet: str | None = None
    sheets: tuple[str, ...] = ()
    header_row: int | None = None
    """Spreadsheet row of the header; None where names come with every record."""
    columns: tuple[str, ...] = ()
    """Column headers, as they stand."""
    roles: Mapping[str, str] = field(default_factory=dict)
    """Role → column header."""
    extra_columns: tuple[str, ...] = ()
    """Columns without a role, kept and exported as they came."""
    option_separator: str | None = None
    """What separates options, for the whole file; None where none had to be split."""
    options_from: tuple[str, ...] = ()
    """Where options come from: json, separated, derived (distinct labels of a question), given."""
    score_labels: str | None = None
    """Whether labels of scores are level texts ("text") or positions from 0 ("index")."""
    own_export: bool = False
    """Whether this is a CSV that clef wrote, whose apostrophe guards were taken off again."""
    read: int = 0
    """Records below the header that are not blank."""
    used: int = 0
    """Records that became examples."""
    skipped: int = 0
    """Records left out because something is wrong with them."""
    blank: int = 0
    """Blank records; they count as rows."""
    examples: int = 0
    """Examples; more than `used` where a record asks several questions."""
    unlabelled: int = 0
    """Examples without a label: answered, and kept out of the accuracy."""
    questions: int = 0
    """Different questions asked."""

    def to_dict(self) -> dict[str, Any]:
        """The facts as JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Table:
    """A table as it was understood. Rows that are good are in `examples` even where others have problems."""

    examples: Sequence[Example]
    """Each may be made anew whenever it is asked for: go through them once."""
    problems: tuple[Problem, ...]
    warnings: tuple[Problem, ...]
    facts: TableFacts

    def preview(self, limit: int = 20) -> dict[str, Any]:
        """The first examples as the model will see them, with all problems, warnings and facts, as JSON."""
        return {
            "facts": self.facts.to_dict(),
            "examples": [_preview(example) for example in self.examples[:limit]],
            "problems": [problem.to_dict() for problem in self.problems],
            "warnings": [warning.to_dict() for warning in self.warnings],
        }

    def require(self) -> Sequence[Example]:
        """The examples, if nothing is wrong. Raises InputError with every problem otherwise."""
        if self.problems:
            raise InputError.of(self.problems, "the table")
        return self.examples


def _preview(example: Example) -> dict[str, Any]:
    question = example.question
    descriptions: list[Text | None]
    match question:
        case Choice():
            descriptions = [option.description for option in question.options]
        case Noul():
            descriptions = [question.true, question.false]
        case _:
            descriptions = [None] * len(question.levels)
    return {
        "row": example.row,
        "line": example.line,
        "state": example.state,
        "images": len(example.images),
        "question": "" if question.instructions is None else as_text(question.instructions),
        "type": question.type,
        "options": list(question.answers),
        "descriptions": descriptions,
        "label": None if example.label is None else question.answers[example.label],
    }


@dataclass
class Grid:
    """A tabular source as columns, all of one length."""

    header: tuple[str, ...]
    columns: list[list[Any]]
    """Cells by column, as text. The state of a JSON source may be any JSON."""
    rows: Sequence[int]
    """Spreadsheet row of each record."""
    lines: Sequence[int | None]
    """Text line where each record starts."""
    header_row: int | None = 1
    header_line: int | None = None


class Notes:
    """Collects problems and warnings while a table is read."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.warnings: list[Problem] = []
        self.bad_records = 0
        """Records that a reader could not hand on, each with a problem of its own."""
        self.blank = 0
        self._more = 0

    def problem(self, problem: Problem) -> None:
        """Add something that is wrong; beyond MAX_NOTES it is only counted."""
        if len(self.problems) < MAX_NOTES:
            self.problems.append(problem)
        else:
            self._more += 1

    def warn(self, warning: Problem) -> None:
        """Add something that the user should know and need not change."""
        if len(self.warnings) < MAX_NOTES:
            self.warnings.append(warning)

    def listed_problems(self) -> tuple[Problem, ...]:
        """Every problem by row, with a last one that counts those beyond the limit."""
        ordered = sorted(self.problems, key=lambda problem: (problem.row or 0, problem.line or 0))
        if self._more:
            ordered.append(Problem(f"and {self._more:,} more problems", "more_problems"))
        return tuple(ordered)


def shown(value: Json, limit: int = 60) -> str:
    """A cell for a message: in quotes, shortened, with characters that nobody can see written as escapes."""
    text = as_text(value)
    short = text if len(text) <= limit else text[: limit - 1] + "…"
    return '"' + "".join(char if char.isprintable() else escaped(char) for char in short) + '"'


def escaped(char: str) -> str:
    """A character by its code point, such as U+200B."""
    return {"\n": "\\n", "\r": "\\r", "\t": "\\t"}.get(char, f"\\u{ord(char):04x}")


def letter(position: int) -> str:
    """The spreadsheet letter of a column, counted from 0: A, …, Z, AA."""
    name = ""
    position += 1
    while position:
        position, rest = divmod(position - 1, 26)
        name = chr(ord("A") + rest) + name
    return name
