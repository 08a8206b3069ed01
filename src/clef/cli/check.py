"""Turns a table file into what clef understands of it, or every problem with it; asks no model."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

SHOWN = 20
"""Problems and rows that are shown; `--json` has all of them."""

Columns = Annotated[list[str] | None, typer.Option("--column", help="role:header, where the guess is wrong.")]


def check(
    file: Annotated[Path, typer.Argument(help="CSV, TSV, JSONL, JSON, XLSX, ODS or Parquet.")],
    encoding: Annotated[str | None, typer.Option(help="Character encoding, where the guess is wrong.")] = None,
    separator: Annotated[str | None, typer.Option(help="Column separator, where the guess is wrong.")] = None,
    sheet: Annotated[str | None, typer.Option(help="Sheet of a workbook; the first one by default.")] = None,
    column: Columns = None,
    questions: Annotated[Path | None, typer.Option(help="JSON of typed questions, for a table of labels only.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The preview of the API, whole.")] = False,
) -> None:
    """Show what a table holds and everything that is wrong with it. Exits with 2 where something is."""
    from clef.tables import ReadOptions, read, read_question_set

    options = ReadOptions(
        encoding=encoding,
        separator=separator,
        sheet=sheet,
        mapping=dict(item.partition(":")[::2] for item in column or ()),
        questions=read_question_set(questions) if questions else None,
    )
    preview = read(file, options).preview()
    if as_json:
        typer.echo(json.dumps(preview, ensure_ascii=False))
    else:
        _print(file, preview)
    if preview["problems"]:
        sys.exit(2)


def _print(file: Path, preview: dict[str, Any]) -> None:
    facts = preview["facts"]
    read_as = [facts["format"], facts["encoding"], facts["separator"] and f"separator {facts['separator']!r}"]
    counts = (
        f"{facts['used']} of {facts['read']} rows, {facts['questions']} questions, {facts['unlabelled']} unlabelled"
    )
    typer.echo(f"{file.name}: {' · '.join(str(part) for part in read_as if part)} · {counts}")
    roles = ", ".join(f"{role} = {header!r}" for role, header in facts["roles"].items())
    typer.echo(f"columns: {roles}")
    for example in preview["examples"][:3]:
        options = " | ".join(example["options"])
        typer.echo(f"  row {example['row']}: {example['question']} → {example['label']}   ({options[:80]})")
    for kind, colour in (("warnings", "yellow"), ("problems", "red")):
        found = preview[kind]
        for problem in found[:SHOWN]:
            place = f"row {problem['row']}: " if problem["row"] else ""
            hint = f" ({problem['hint']})" if problem["hint"] else ""
            typer.secho(f"{kind[:-1]}: {place}{problem['message']}{hint}", fg=colour)
        if len(found) > SHOWN:
            typer.echo(f"… and {len(found) - SHOWN} more {kind}; --json has all of them")
    if not preview["problems"]:
        typer.secho("ready to evaluate", fg="green")
