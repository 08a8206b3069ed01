"""Turns outcomes into what a terminal shows of them and into files."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clef.cli.sources import Source
from clef.cli.terminal import bar, paint, say
from clef.errors import InputError, Problem

LOOKED_AT = 100
"""Failed rows that are asked why."""
REASONS = 3

if TYPE_CHECKING:
    from clef.cli.service import Service
    from clef.reports.html import About
    from clef.statistics.columns import Columns


def measured(columns: "Columns") -> dict[str, Any]:
    """The summary as JSON, with the calibration error of the top probability."""
    from clef.statistics.calibration import calibration
    from clef.statistics.summary import summarise

    summary = summarise(columns).to_dict()
    error = calibration(columns).error if summary["answered"] else None
    return summary | {"calibration_error": error and error.to_dict()}


async def why_failed(at: "Service", run_id: str) -> list[str]:
    """What the first failed rows of a run say, the most frequent first, each with their number."""
    asked = {"show": "failed", "sort": "row", "descending": False, "limit": LOOKED_AT}
    found = await at.rows(run_id, asked)
    counts = Counter(row["error"]["message"] for row in found["rows"])
    of = f" of the first {LOOKED_AT}" if found["total"] > LOOKED_AT else ""
    return [f"{count}{of}: {message}" for message, count in counts.most_common(REASONS)]


def print_summary(summary: dict[str, Any], failed: Sequence[str] = ()) -> None:
    """Write a summary as text, with bars; `failed` says why rows failed."""
    say(rate(summary), "bold")
    rest = {"failed": summary["failed"], "unlabelled": summary["unlabelled"], "ties": summary["ties"]}
    said = ", ".join(f"{count} {name}" for name, count in rest.items() if count)
    if said:
        say(f"  besides: {said}")
    for reason in failed:
        say(f"    {reason}", "red")
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


async def write(source: Source, path: Path, about: "About", *, redact: bool = False) -> None:
    """Write outcomes, as they pass by, as CSV, JSONL, Parquet or an HTML report about them: by the file's ending.

    Raises InputError where that cannot be done.
    """
    from clef.reports.export import write
    from clef.reports.files import into, writer_of
    from clef.reports.html import hold, render

    if path.suffix.lower() == ".html":
        text = await asyncio.to_thread(render, await source.over(hold), about, redact=redact)
        into(path, [text.encode()])
        return
    writer = writer_of(path.suffix.lower().removeprefix("."), await source.extra_names())
    await source.over(lambda outcomes: into(path, write(outcomes, writer)))


def about_of(run: dict[str, Any], name: str) -> "About":
    """What a report says of a run, from its JSON."""
    from datetime import datetime

    from clef.reports.html import About

    made = datetime.fromisoformat(run["created"]) if run.get("created") else None
    return About(name, run["engine"]["model"] or "", run["shape"], made, run.get("note", ""))


def check_ending(path: Path | None, endings: Sequence[str]) -> None:
    """Raise InputError before any work where a file cannot be written in the format that its name says."""
    if path is None:
        return
    if path.suffix.lower() not in endings:
        problem = Problem(f'cannot write "{path.name}"', "format", hint=f"end it in {' or '.join(endings)}")
        raise InputError.of([problem])
    if not path.absolute().parent.is_dir():
        raise InputError.of([Problem(f"no folder {path.absolute().parent}", "no_folder", hint="make it first")])
