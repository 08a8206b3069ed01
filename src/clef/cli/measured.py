"""Turns outcomes into what a terminal shows of them and into files."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from clef.cli.terminal import bar, paint, say
from clef.decisions.examples import Outcome
from clef.errors import InputError, Problem


def measured(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """The summary as JSON, with the calibration error of the top probability."""
    from clef.statistics.calibration import calibration
    from clef.statistics.columns import as_columns
    from clef.statistics.summary import summarise

    columns = as_columns(outcomes)
    summary = summarise(columns).to_dict()
    error = calibration(columns).error if summary["answered"] else None
    return summary | {"calibration_error": error and error.to_dict()}


def print_summary(summary: dict[str, Any]) -> None:
    """Write a summary as text, with bars."""
    say(rate(summary), "bold")
    rest = {"failed": summary["failed"], "unlabelled": summary["unlabelled"], "ties": summary["ties"]}
    said = ", ".join(f"{count} {name}" for name, count in rest.items() if count)
    if said:
        say(f"  besides: {said}")
    error = summary.get("calibration_error")
    if error:
        noise = "" if error["above_noise"] else ", no more than chance alone shows"
        say(f"  calibration error {error['value']:.3f}{_interval(error)}{noise}")
    say("\nby top probability")
    for band in summary["bands"]:
        if band["count"]:
            say(f"  {band['from']:.2f}-{band['to']:.2f}  {paint(bar(band['accuracy']), 'blue')} {rate(band)}")
    say("\nby question")
    for question in summary["questions"]:
        say(f"  {question['question']}")
        say(f"    {paint(bar(question['accuracy']), 'blue')} {rate(question)}")
        if question["majority"] is not None:
            always = f"always {question['majority']!r}: {question['majority_accuracy']:.1%}"
            say(f"    {always} · chance: {question['chance_accuracy']:.1%}")


def rate(found: dict[str, Any]) -> str:
    """An accuracy with its interval and its counts."""
    if found["accuracy"] is None:
        return "no labelled row was answered"
    interval = f"{found['low']:.1%} to {found['high']:.1%}"
    return f"{found['accuracy']:.1%} right ({interval}), {found['correct']} of {found['count']}"


def _interval(error: dict[str, Any]) -> str:
    return "" if error["low"] is None else f" ({error['low']:.3f} to {error['high']:.3f})"


def write(outcomes: Sequence[Outcome], path: Path, name: str, *, redact: bool = False) -> None:
    """Write outcomes as CSV, JSONL, Parquet or an HTML report. Raises InputError for another ending."""
    from clef.reports.run import Run

    run = Run.of(outcomes, name)
    if redact and path.suffix.lower() == ".html":
        into(path, run.to_html(redact=True).encode())
    else:
        run.save(path)


def check_ending(path: Path | None, endings: Sequence[str]) -> None:
    """Raise InputError before any work where a file cannot be written in the format that its name says."""
    if path is None:
        return
    if path.suffix.lower() not in endings:
        problem = Problem(f'cannot write "{path.name}"', "format", hint=f"end it in {' or '.join(endings)}")
        raise InputError.of([problem])
    if not path.absolute().parent.is_dir():
        raise InputError.of([Problem(f"no folder {path.absolute().parent}", "no_folder", hint="make it first")])


def into(path: Path, content: bytes) -> None:
    """Write a file. Raises InputError where that cannot be done."""
    try:
        path.write_bytes(content)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}") from error
