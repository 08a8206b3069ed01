"""Turns runs into a policy file, and a policy file with answers into act or review.

exit code   find                                   apply
0           every question got a threshold         done
1           a question got none                    more is to be reviewed than --max-review allows
2           the input or an option is no good      the same
"""

import asyncio
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clef.cli.options import AsJson
from clef.cli.terminal import MISSED, say, say_json

if TYPE_CHECKING:
    from clef.decisions.examples import Outcome
    from clef.statistics.columns import Columns
    from clef.statistics.policy import Policy

app = typer.Typer(
    help="Gates: from which top probability on a person may stop checking.",
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Runs = Annotated[list[str], typer.Argument(help="Ids of labelled runs, or .jsonl files that `clef eval --out` wrote.")]


@app.command()
def find(
    runs: Runs,
    target_accuracy: Annotated[float | None, typer.Option(help="Share right of what is not checked.")] = None,
    review_budget: Annotated[float | None, typer.Option(help="Share of the rows that may be checked.")] = None,
    cost_wrong: Annotated[float | None, typer.Option(help="What a wrong answer costs; with --cost-check.")] = None,
    cost_check: Annotated[float | None, typer.Option(help="What checking one row costs; with --cost-wrong.")] = None,
    risk: Annotated[float | None, typer.Option(help="Guaranteed: at most this share of it is wrong.")] = None,
    confidence: Annotated[float, typer.Option(help="How sure the guarantee is.")] = 0.95,
    recalibrate: Annotated[
        str, typer.Option(help="none, temperature, temperature by type, isotonic or beta.")
    ] = "none",
    pooled: Annotated[
        bool, typer.Option("--pooled", help="One gate for all questions of a type: each row asks its own question.")
    ] = False,
    out: Annotated[Path | None, typer.Option(help="Write the policy to this .json file.")] = None,
    as_json: AsJson = False,
) -> None:
    """Choose thresholds on labelled runs, judged on rows they were not chosen on; exits with 1 where a question gets
    none.
    """
    from clef.cli.measured import check_ending
    from clef.reports.files import into
    from clef.statistics.wanted import Wanted

    check_ending(out, (".json",))
    wanted = Wanted(
        target_accuracy, review_budget, cost_wrong, cost_check, risk, confidence,
        recalibrate, pooled,  # type: ignore[arg-type]  # `measure` refuses other names
    )  # fmt: skip
    columns, models = asyncio.run(_gathered(runs))
    found = wanted.measure(columns, model=", ".join(models))
    policy = found.policy.to_dict()
    if out is not None:
        into(out, [(json.dumps(policy, ensure_ascii=False, indent=2) + "\n").encode()])
    if as_json:
        say_json(found.to_dict())
    else:
        measured: Any = found.gates.to_dict()
        for gate in measured["questions"]:
            _show(gate)
        if out is not None:
            say(f"wrote {out}", err=True)
    known = (*found.policy.questions.values(), *found.policy.pooled.values())
    if not known or not all(one.thresholds for one in known):
        raise typer.Exit(MISSED)


@app.command()
def apply(
    policy: Annotated[Path, typer.Argument(help="A policy file: `clef gate find --out` or the page wrote it.")],
    answers: Annotated[Path, typer.Argument(help="Answers: a .csv or .jsonl of clef, or replies as .jsonl.")],
    out: Annotated[
        Path | None, typer.Option(help="Write the answers with act or review here; standard output without it.")
    ] = None,
    max_review: Annotated[
        float | None, typer.Option(help="Exit with 1 where a larger share is to be reviewed.", min=0, max=1)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write act or review, and why, beside each answer."""
    from clef.cli.measured import check_ending
    from clef.reports.answers import rule_on
    from clef.reports.files import into
    from clef.statistics.policy import counted, ruling

    check_ending(out, (answers.suffix.lower(),))
    applied = _policy(policy)
    ruled = rule_on(answers, lambda question, answer: ruling(applied, question, answer))
    counts: dict[str, Any] = counted(ruled.rulings)
    if out is not None:
        into(out, [ruled.text.encode()])
    if as_json:
        say_json(counts)
    elif out is None:
        sys.stdout.write(ruled.text)
    if not as_json:
        say(f"{counts['act']} act, {counts['review']} review", "bold", err=True)
        for reason, count in counts["reasons"].items():
            say(f"  {count}  {reason}", err=True)
    if max_review is not None and counts["review"] > max_review * len(ruled.rulings):
        raise typer.Exit(MISSED)


def _show(gate: Mapping[str, Any]) -> None:
    """One question's gate as text."""
    pooled = f", {gate['pooled']} questions pooled" if gate["pooled"] else ""
    say(f"{gate['question']}{pooled}", "bold")
    for cut in gate["cuts"]:
        side = "" if cut["side"] == "all" else f"{cut['side']}: "
        why = f" ({cut['reason']})" if cut["reason"] else ""
        if cut["threshold"] is None:
            say(f"  {side}{cut['status']}{why}", "yellow")
            continue
        say(f"  {side}act from {cut['threshold']:.4f} on, {_worth(cut)}{why}")


def _worth(cut: Mapping[str, Any]) -> str:
    """How much a threshold acts on and how often it is right."""
    if "acted" in cut:  # a guarantee
        acted = cut["acted"]
        return f"{cut['coverage']:.1%} of {cut['count']} rows, {acted['correct']} of {acted['count']} right"
    accuracy = cut["accuracy"]
    if accuracy["value"] is None:
        return f"{cut['coverage']['value']:.1%} of {cut['count']} rows"
    interval = f"{accuracy['low']:.1%} to {accuracy['high']:.1%}"
    return f"{cut['coverage']['value']:.1%} of {cut['count']} rows, {accuracy['value']:.1%} right ({interval})"


def _policy(path: Path) -> "Policy":
    """The policy of a file. Raises NotFound, or InputError with everything that is wrong with it."""
    from clef.errors import InputError, NotFound
    from clef.statistics.policy import Policy

    if not path.is_file():
        raise NotFound(f"no file {path}")
    try:
        raw = json.loads(path.read_bytes())
    except ValueError as error:
        raise InputError(f"{path.name} is no policy: {error}", hint="`clef gate find --out` writes one") from error
    return Policy.from_dict(raw)


async def _gathered(runs: list[str]) -> "tuple[Columns, list[str]]":
    """The arrays of all outcomes of some runs together, and the models that answered."""
    from clef.cli.service import service
    from clef.cli.sources import source
    from clef.statistics.columns import Gathering

    gathering, models = Gathering(), dict[str, None]()

    def noted(outcomes: "Iterator[Outcome]") -> "Iterator[Outcome]":
        for outcome in outcomes:
            models.setdefault(outcome.model)
            yield outcome

    async with service("reading") as at:
        for which in runs:
            await (await source(at, which)).over(lambda outcomes: gathering.take(noted(outcomes)))
    return gathering.columns(), [model for model in models if model]
