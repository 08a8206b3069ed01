"""Turns a labelled table into its accuracy in the terminal, and into files; exits with 1 where a bar is missed."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from clef.cli.check import Columns
from clef.decisions.examples import Shape

BAR = 24
"""Characters of a bar that stands for 100 %."""


def evaluate(
    file: Annotated[Path, typer.Argument(help="The labelled table.")],
    engine: Annotated[str | None, typer.Option(help="auto, builtin, llama or upstream.")] = None,
    upstream: Annotated[str | None, typer.Option(help="Root address of a System One server.")] = None,
    model: Annotated[str | None, typer.Option(help="Decision model (.gguf) to run on llama.cpp.")] = None,
    encoding: Annotated[str | None, typer.Option(help="Character encoding, where the guess is wrong.")] = None,
    column: Columns = None,
    questions: Annotated[Path | None, typer.Option(help="JSON of typed questions, for a table of labels only.")] = None,
    joint: Annotated[bool, typer.Option("--joint", help="Ask the questions of a state together.")] = False,
    skip_bad_rows: Annotated[bool, typer.Option("--skip-bad-rows", help="Run the rows that are good.")] = False,
    out: Annotated[Path | None, typer.Option(help="Results: .csv, .jsonl or .parquet.")] = None,
    html: Annotated[Path | None, typer.Option(help="A report: one self-contained page.")] = None,
    redact: Annotated[bool, typer.Option("--redact", help="Leave the states out of the report.")] = False,
    min_accuracy: Annotated[
        float | None, typer.Option(help="Exit with 1 below this share right.", min=0, max=1)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The summary as JSON.")] = False,
) -> None:
    """Measure a labelled table: how many are right, with intervals, beside the baselines."""
    from clef.session import Session
    from clef.tables import read_question_set

    reading: dict[str, Any] = {
        "encoding": encoding,
        "mapping": dict(item.partition(":")[::2] for item in column or ()),
        "questions": read_question_set(questions) if questions else None,
    }
    with Session(engine=engine, upstream=upstream, model=model) as session:
        facts = session.facts
        shape: Shape = "joint" if joint else "isolated"
        run = session.evaluate(file, skip_bad_rows=skip_bad_rows, shape=shape, **reading)
    summary = run.summary.to_dict()
    if out:
        run.write(out)
    if html:
        html.write_text(run.to_html(file.name, redact=redact), encoding="utf-8")
    if as_json:
        typer.echo(json.dumps(summary, ensure_ascii=False))
    else:
        typer.echo(f"{file.name} · {facts.model} · {'together' if joint else 'each question alone'}")
        print_summary(summary)
    if min_accuracy is not None and (summary["accuracy"] is None or float(str(summary["accuracy"])) < min_accuracy):
        typer.secho(f"below {min_accuracy:.1%}", fg="red", err=True)
        sys.exit(1)


def print_summary(summary: dict[str, Any]) -> None:
    """Write a summary as text."""
    typer.secho(_rate(summary), bold=True)
    rest = {"failed": summary["failed"], "unlabelled": summary["unlabelled"], "ties": summary["ties"]}
    said = ", ".join(f"{count} {name}" for name, count in rest.items() if count)
    if said:
        typer.echo(f"  besides: {said}")
    typer.echo("\nby top probability")
    for band in summary["bands"]:
        if band["count"]:
            typer.echo(f"  {band['from']:.2f}-{band['to']:.2f}  {_bar(band['accuracy'])} {_rate(band)}")
    typer.echo("\nby question")
    for question in summary["questions"]:
        typer.echo(f"  {question['question']}")
        typer.echo(f"    {_bar(question['accuracy'] or 0)} {_rate(question)}")
        if question["majority"] is not None:
            always = f"always {question['majority']!r}: {question['majority_accuracy']:.1%}"
            typer.echo(f"    {always} · chance: {question['chance_accuracy']:.1%}")


def _rate(rate: dict[str, Any]) -> str:
    if rate["accuracy"] is None:
        return "no labelled row was answered"
    return (
        f"{rate['accuracy']:.1%} right ({rate['low']:.1%} to {rate['high']:.1%}), {rate['correct']} of {rate['count']}"
    )


def _bar(share: float) -> str:
    full = round(share * BAR)
    return "█" * full + "·" * (BAR - full)
