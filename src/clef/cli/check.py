"""Turns a table file into what clef understands of it, or every problem with it; asks no model."""

from pathlib import Path
from typing import Annotated, Any

import typer

from clef.cli.options import AsJson, Columns, Encoding, EveryRow, Questions, Separator, Sheet, mapping
from clef.cli.terminal import BAD_INPUT, SHOWN, say, say_json, short

ROWS_SHOWN = 3


def check(
    file: Annotated[
        Path, typer.Argument(help="A table: CSV, TSV, JSON, XLSX, ODS, Parquet, or a ZIP or folder with images.")
    ],
    encoding: Encoding = None,
    separator: Separator = None,
    sheet: Sheet = None,
    column: Columns = None,
    question: EveryRow = None,
    questions: Questions = None,
    as_json: AsJson = False,
) -> None:
    """Show what a table holds and everything that is wrong with it. Exits with 2 where something is."""
    from clef.tables import ReadOptions, read, read_question_set

    options = ReadOptions(
        encoding=encoding,
        separator=separator,
        sheet=sheet,
        mapping=mapping(column, question),
        questions=read_question_set(questions) if questions else None,
        beside=True,
    )
    preview = read(file, options).preview()
    if as_json:
        say_json(preview)
    else:
        _print(file, preview)
    if preview["problems"]:
        raise typer.Exit(BAD_INPUT)


def _print(file: Path, preview: dict[str, Any]) -> None:
    facts = preview["facts"]
    read_as = [facts["format"], facts["encoding"], facts["separator"] and f"separator {facts['separator']!r}"]
    asked = f"{facts['questions']} question{'s' * (facts['questions'] != 1)}"
    counts = f"{facts['used']} of {facts['read']} rows, {asked}, {facts['unlabelled']} unlabelled"
    say(f"{file.name}: {' · '.join(str(part) for part in read_as if part)} · {counts}")
    roles = ", ".join(f"{role} = {header!r}" for role, header in facts["roles"].items())
    say(f"columns: {roles}")
    for example in preview["examples"][:ROWS_SHOWN]:
        images = f"[{example['images']} image{'s' * (example['images'] != 1)}] " if example["images"] else ""
        say(f"  row {example['row']}: {images}{short(example['state'], 50)}")
        answers = f"   ({short(' | '.join(example['options']), 70)})" if example["options"] else ""
        say(f"    {short(example['question'], 50)} → {example['label'] or 'no label'}{answers}")
    for kind, colour in (("warnings", "yellow"), ("problems", "red")):
        found = preview[kind]
        for problem in found[:SHOWN]:
            place = f"row {problem['row']}: " if problem["row"] else ""
            hint = f" ({problem['hint']})" if problem["hint"] else ""
            say(f"{kind[:-1]}: {place}{problem['message']}{hint}", colour)
        if len(found) > SHOWN:
            say(f"… and {len(found) - SHOWN} more {kind}; --json has all of them")
    if not preview["problems"]:
        say("ready to evaluate", "green")
