"""Turns a table file into what is known of it before anybody is asked, and then into parts.

A file is read whole, by the reader of every other surface, so rows, lines, questions and problems are the same as on
one machine. What is guessed from a whole table (options taken from labels) is settled over all files first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from clef.decisions.questions import Choice, Question
from clef.errors import InputError, Problem
from clef.scale.parts import Part, parts_of
from clef.scale.places import SourceFile
from clef.scale.task import Task
from clef.tables import ReadOptions, Table, read
from clef.tables.columns import normalised
from clef.tables.resolve import question_key
from clef.tables.table import shown

FILE_COLUMN = "file"
"""Column that says which file a row is from, where there are several."""
LISTED = 200
"""Problems that are sent on of one file."""


@dataclass(frozen=True, slots=True)
class FileProblem(Problem):
    """A problem with the file it is in."""

    file: str = ""

    def __str__(self) -> str:
        return f"{self.file}: {Problem.__str__(self)}"

    def to_dict(self) -> dict[str, object]:
        """As of a problem, with the file."""
        return {"file": self.file} | Problem.to_dict(self)


@dataclass(frozen=True, slots=True)
class Look:
    """What is known of a file once it was read."""

    name: str
    examples: int
    skipped: int
    columns: tuple[str, ...]
    roles: Mapping[str, str]
    extra: tuple[str, ...]
    derived: Mapping[str, tuple[str, ...]]
    """Question → options, of those whose options were taken from the labels of this file."""
    mixed: bool
    """Whether other questions of the file have their options written down."""
    problems: tuple[FileProblem, ...]
    version: str
    """The clef that read it."""


def look(file: SourceFile, reading: ReadOptions) -> Look:
    """Read a file and keep what is known of it."""
    from clef import __version__

    try:
        table = _read(file, reading)
    except InputError as error:
        problems = error.problems or (Problem(error.message, error.code, hint=error.hint),)
        return Look(file.name, 0, 0, (), {}, (), {}, False, _placed(problems, file.name), __version__)
    derived = _derived(table)
    return Look(
        file.name,
        len(table.examples),
        table.facts.skipped,
        table.facts.columns,
        table.facts.roles,
        table.facts.extra_columns,
        derived,
        bool(derived) and table.facts.options_from != ("derived",),
        _placed(table.problems[:LISTED], file.name),
        __version__,
    )


def cut(file: SourceFile, number: int, task: Task) -> Iterator[Part]:
    """The parts of a file. Raises InputError where it became unreadable since it was looked at."""
    examples = _read(file, task.reading).examples
    if task.several_files:
        examples = tuple(replace(one, extra={**one.extra, FILE_COLUMN: file.name}) for one in examples)
    yield from parts_of(examples, number, task)


def settle(looks: Sequence[Look], task: Task) -> Task:
    """The task with all that the files have to share. Raises InputError with what is wrong in any file."""
    problems: list[Problem] = [*_differences(looks)]
    for one in looks:
        if not task.skip_bad_rows or not one.examples:
            problems += one.problems
    if problems:
        raise InputError.of(problems, "the tables")
    extra = dict.fromkeys(name for one in looks for name in one.extra)
    reading = task.reading
    if len(looks) > 1:
        extra[FILE_COLUMN] = None
        questions = _shared_questions(looks)
        if questions:
            reading = replace(reading, questions={**reading.questions_by_id, **questions})
    return replace(task, reading=reading, several_files=len(looks) > 1, extra=tuple(extra))


def _read(file: SourceFile, reading: ReadOptions) -> Table:
    return read(file.read(), replace(reading, name=file.name))


def _derived(table: Table) -> dict[str, tuple[str, ...]]:
    if "derived" not in table.facts.options_from:
        return {}
    asked: dict[int, tuple[str, Question]] = {
        id(one.question): (one.question_name, one.question) for one in table.examples
    }
    return {name: question.answers for name, question in asked.values() if isinstance(question, Choice)}


def _shared_questions(looks: Sequence[Look]) -> dict[str, Question]:
    """The questions whose options come from labels, with the labels of all files in the order they are met.

    Raises InputError where that cannot be told from questions whose options are written down.
    """
    names: dict[str, dict[str, None]] = {}
    for one in looks:
        for question, options in one.derived.items():
            names.setdefault(question, {}).update(dict.fromkeys(options))
    mixed = [one.name for one in looks if one.mixed or (names and not one.derived)]
    if len({question_key(name) for name in names}) < len(names):
        message = "options come from the labels of all files, and a question is spelt in two ways"
        raise InputError.of([Problem(message, "question_spelling", hint="give the questions with --questions")])
    if mixed and names:
        message = f"some options are written down and some come from labels ({mixed[0]}), which differ between files"
        raise InputError.of([Problem(message, "options", hint="give the questions with --questions")])
    return {question: Choice(question, list(options)) for question, options in names.items()}


def _differences(looks: Sequence[Look]) -> Iterator[Problem]:
    """What tells a file's columns from those of the first one that has any."""
    readable = [one for one in looks if one.columns]
    for one in readable[1:]:
        first = readable[0]
        if {normalised(name) for name in one.columns} == {normalised(name) for name in first.columns}:
            continue
        missing = [name for name in first.columns if normalised(name) not in set(map(normalised, one.columns))]
        more = [name for name in one.columns if normalised(name) not in set(map(normalised, first.columns))]
        said = [f"it lacks {', '.join(map(shown, missing))}"] if missing else []
        said += [f"it also has {', '.join(map(shown, more))}"] if more else []
        message = f"its columns are not those of {first.name}: {' and '.join(said)}"
        yield FileProblem(message, "schema", hint="give these files in runs of their own", file=one.name)


def _placed(problems: Sequence[Problem], name: str) -> tuple[FileProblem, ...]:
    return tuple(FileProblem(**_fields(problem), file=name) for problem in problems)


def _fields(problem: Problem) -> dict[str, Any]:
    return {name: value for name, value in asdict(problem).items() if name != "file"}
