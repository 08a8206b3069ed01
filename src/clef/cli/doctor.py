"""Turns `clef doctor` into findings about this machine, and their worst into the exit code."""

import asyncio
from collections.abc import Sequence
from typing import Annotated

import orjson
import typer

from clef.engines.doctor.examine import examine_all
from clef.engines.doctor.finding import Finding, exit_code
from clef.engines.opening import ChosenEngine
from clef.settings import Settings, load_settings

MARKS = {"ok": ("ok", "green"), "warn": ("look", "yellow"), "fail": ("FAIL", "red"), "unknown": ("?", "blue")}


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of words.")] = False,
    wait: Annotated[
        float, typer.Option(help="Seconds that the engine gets to become ready for a timed decision.")
    ] = 60,
) -> None:
    """Look at this machine, its drivers and its llama.cpp; exits with 0, or 1 for what to look at, 2 for failures."""
    findings = asyncio.run(_examined(load_settings(), wait))
    if as_json:
        report = {"findings": [finding.to_dict() for finding in findings], "exit_code": exit_code(findings)}
        typer.echo(orjson.dumps(report, option=orjson.OPT_INDENT_2).decode())
    else:
        _show(findings)
    raise typer.Exit(exit_code(findings))


async def _examined(settings: Settings, wait_s: float) -> list[Finding]:
    engine = ChosenEngine(settings)
    engine.start()
    try:
        return await examine_all(engine.settings, engine, wait_s)
    finally:
        await engine.close()


def _show(findings: Sequence[Finding]) -> None:
    for finding in findings:
        mark, colour = MARKS[finding.level]
        typer.echo(f"{typer.style(f'{mark:<4}', fg=colour)} {finding.title}: {finding.seen}")
        if finding.remedy:
            typer.echo(f"     → {finding.remedy}")
