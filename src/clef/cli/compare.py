"""Turns two runs, or files of results, into what changed between them."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clef.cli.options import AsJson
from clef.cli.terminal import BAR, bar, paint, say, say_json, short

if TYPE_CHECKING:
    from clef.cli.service import Service
    from clef.decisions.examples import Outcome

FLIPS = 10
"""Changed rows that are shown; `--json` has all of them."""
STATE = 60
"""Characters of a changed row's state that are shown."""
Which = Annotated[
    str, typer.Argument(help="Id of a run, or a file that `clef eval --out` or `clef runs export` wrote.")
]


def compare(first: Which, second: Which, as_json: AsJson = False) -> None:
    """Compare two runs on the rows that both have. The second is measured against the first."""
    from clef.statistics.compare import compare as compared

    ours, theirs, names = asyncio.run(_fetch(first, second))
    found = compared(ours, theirs, names=names)
    if as_json:
        say_json(found.to_dict())
        return
    say(found.verdict, "bold")
    say(f"  {found.pairs.note}")
    for name, one in zip(names, (found.first, found.second), strict=True):
        if one.value is not None and one.interval is not None:
            low, high = one.interval
            say(f"  {paint(bar(one.value, BAR), 'blue')} {one.value:.1%} ({low:.1%} to {high:.1%})  {name}")
    say(
        f"  {found.fixed} fixed, {found.broken} broken, {found.both_right} right in both, {found.both_wrong} in neither"
    )
    for flip in found.flips[:FLIPS]:
        before, after = ours[flip.first], theirs[flip.second]
        answers = [one.answer.prediction if one.answer else "" for one in (before, after)]
        label = after.example.question.answers[after.example.label or 0]
        say(f"  {flip.change:<10} row {after.example.row}: {answers[0]} → {answers[1]} (label {label})")
        say(f"             {short(after.example.state, STATE)}", "dim")
    if len(found.flips) > FLIPS:
        say(f"  … and {len(found.flips) - FLIPS} more; --json has all of them")


async def outcomes_of(at: "Service", which: str) -> "list[Outcome]":
    """The outcomes of a run by its id, or of a file of results. Raises NotFound, or InputError for another file."""
    if await asyncio.to_thread(Path(which).is_file):
        from clef.reports.results import read_results

        return await asyncio.to_thread(read_results, Path(which))
    return await at.outcomes(which)


async def _fetch(first: str, second: str) -> "tuple[list[Outcome], list[Outcome], tuple[str, str]]":
    from clef.cli.service import service

    async with service("reading") as at:
        return await outcomes_of(at, first), await outcomes_of(at, second), (first, second)
