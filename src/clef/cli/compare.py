"""Turns two runs, or files of results, into what changed between them."""

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from clef.cli.options import AsJson
from clef.cli.terminal import BAR, bar, paint, say, say_json, short

if TYPE_CHECKING:
    from clef.decisions.examples import Outcome
    from clef.statistics.compare import Comparison

FLIPS = 10
"""Changed rows that are shown; `--json` has all of them."""
STATE = 60
"""Characters of a changed row's state that are shown."""
Which = Annotated[
    str, typer.Argument(help="Id of a run, or a file that `clef eval --out` or `clef runs export` wrote.")
]


def compare(first: Which, second: Which, as_json: AsJson = False) -> None:
    """Compare two runs on the rows that both have. The second is measured against the first."""
    found, flipped = asyncio.run(_compared(first, second, shown=0 if as_json else FLIPS))
    if as_json:
        say_json(found.to_dict())
        return
    say(found.verdict, "bold")
    say(f"  {found.pairs.note}")
    for name, one in zip(found.names, (found.first, found.second), strict=True):
        if one.value is not None and one.interval is not None:
            low, high = one.interval
            say(f"  {paint(bar(one.value, BAR), 'blue')} {one.value:.1%} ({low:.1%} to {high:.1%})  {name}")
    say(
        f"  {found.fixed} fixed, {found.broken} broken, {found.both_right} right in both, {found.both_wrong} in neither"
    )
    for flip, before, after in zip(found.flips, *flipped, strict=False):
        answers = [one.answer.prediction if one.answer else "" for one in (before, after)]
        label = after.example.question.answers[after.example.label or 0]
        say(f"  {flip.change:<10} row {after.example.row}: {answers[0]} → {answers[1]} (label {label})")
        say(f"             {short(after.example.state, STATE)}", "dim")
    if len(found.flips) > FLIPS:
        say(f"  … and {len(found.flips) - FLIPS} more; --json has all of them")


async def _compared(first: str, second: str, *, shown: int) -> "tuple[Comparison, tuple[list[Outcome], list[Outcome]]]":
    """The comparison, and the rows of the first flips in both runs."""
    from clef.cli.service import service
    from clef.cli.sources import source
    from clef.statistics.compare import compare as compared
    from clef.statistics.halves import as_half

    async with service("reading") as at:
        ours, theirs = await source(at, first), await source(at, second)
        halves = await ours.over(as_half), await theirs.over(as_half)
        found = compared(*halves, names=(first, second))
        flips = found.flips[:shown]
        before = await ours.at([flip.first for flip in flips])
        return found, (before, await theirs.at([flip.second for flip in flips]))
