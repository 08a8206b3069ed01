"""Turns a labelled table into its accuracy in the terminal, and into files; exits with 1 where a bar is missed."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clef.cli.options import (
    AsJson,
    Columns,
    Encoding,
    Engine,
    EveryRow,
    Gpus,
    Joint,
    Model,
    On,
    Questions,
    Separator,
    Sheet,
    SkipBadRows,
    Upstream,
    Upstreams,
    Workers,
    mapping,
)
from clef.cli.terminal import MISSED, say, say_json

if TYPE_CHECKING:
    from clef.cli.service import EngineOptions, TableSource
    from clef.decisions.examples import Outcome
    from clef.scale.cluster import Cluster
    from clef.scale.task import Task
    from clef.statistics.compare import Comparison

RESULTS = (".csv", ".jsonl", ".parquet")


def evaluate(
    table: Annotated[
        str, typer.Argument(help="The labelled table; with --on ray a folder or an address such as s3://… as well.")
    ],
    engine: Engine = None,
    upstream: Upstream = None,
    model: Model = None,
    encoding: Encoding = None,
    separator: Separator = None,
    sheet: Sheet = None,
    column: Columns = None,
    question: EveryRow = None,
    questions: Questions = None,
    joint: Joint = False,
    skip_bad_rows: SkipBadRows = False,
    out: Annotated[str | None, typer.Option(help="Results: .csv, .jsonl or .parquet; with --on ray a folder.")] = None,
    html: Annotated[Path | None, typer.Option(help="A report: one self-contained page.")] = None,
    redact: Annotated[bool, typer.Option("--redact", help="Leave the states out of the report.")] = False,
    min_accuracy: Annotated[
        float | None, typer.Option(help="Exit with 1 below this share right.", min=0, max=1)
    ] = None,
    max_ece: Annotated[
        float | None, typer.Option(help="Exit with 1 above this calibration error.", min=0, max=1)
    ] = None,
    baseline: Annotated[
        str | None, typer.Option(help="Id of a run, or a file of results; exit with 1 where this run is worse.")
    ] = None,
    note: Annotated[str, typer.Option(help="A note on the run, for the list of runs.")] = "",
    on: On = None,
    workers: Workers = None,
    gpus: Gpus = None,
    upstreams: Upstreams = None,
    as_json: AsJson = False,
) -> None:
    """Measure a labelled table: how many are right, with intervals, beside the baselines.

    The run is kept: `clef runs` and the page show it.
    """
    from clef.cli.measured import check_ending, measured, print_summary, write
    from clef.cli.scaled import cluster_of, task_of
    from clef.cli.service import EngineOptions, TableSource
    from clef.reports.bars import Bars

    cluster = cluster_of(on, workers, gpus, upstreams)
    results = Path(out) if out and cluster is None else None
    file = Path(table)
    check_ending(results, RESULTS)
    check_ending(html, (".html",))
    source = TableSource(
        file,
        encoding,
        separator,
        sheet,
        mapping(column, question),
        questions,
        skip_bad_rows,
        "joint" if joint else "isolated",
        note,
    )
    options = EngineOptions(engine, upstream, model)
    if cluster is None:
        run, outcomes, before = asyncio.run(_measure(source, options, baseline))
    else:
        before = _before(baseline) if baseline else None
        run, outcomes = _on_many(cluster, table, task_of(source, out, options, labelled=True))
    summary = measured(outcomes)
    for path in filter(None, (results, html)):
        write(outcomes, path, file.name, redact=redact)
    comparison = _against(before, outcomes, baseline or "", file.name) if before is not None else None
    missed = Bars(min_accuracy, max_ece).missed(outcomes, comparison)
    if as_json:
        compared = comparison and comparison.to_dict()
        say_json(
            {"run": run["id"], "model": run["engine"]["model"]} | summary | {"baseline": compared, "missed": missed}
        )
    else:
        shape = "the questions of a state together" if joint else "each question alone"
        say(f"{file.name} · {run['engine']['model']} · {shape} · run {run['id']}")
        print_summary(summary)
        if comparison is not None:
            say(f"\n{comparison.verdict}\n  {comparison.pairs.note}")
        for sentence in missed:
            say(sentence, "red", err=True)
    if missed:
        raise typer.Exit(MISSED)


async def _measure(
    table: "TableSource", options: "EngineOptions", baseline: str | None
) -> tuple[dict[str, Any], "list[Outcome]", "list[Outcome] | None"]:
    """The run of a table, its outcomes, and those of the baseline, which is looked for before anything is asked."""
    from clef.cli.compare import outcomes_of
    from clef.cli.following import follow
    from clef.cli.service import service

    async with service("writing", options) as at:
        before = await outcomes_of(at, baseline) if baseline else None
        made = await at.submit(table)
        await follow(at, made.id)
        return await at.run(made.id), await at.outcomes(made.id), before


def _before(baseline: str) -> "list[Outcome]":
    from clef.cli.compare import outcomes_of
    from clef.cli.service import through

    return through("reading", lambda at: outcomes_of(at, baseline))


def _on_many(cluster: "Cluster", table: str, task: "Task") -> tuple[dict[str, Any], "list[Outcome]"]:
    """The run of a table on the machines of a cluster, and its outcomes."""
    from clef.cli.scaled import evaluated, run_of

    found = evaluated([table], task, cluster)
    return run_of(found, task.out), list(found.run.outcomes)


def _against(before: "Sequence[Outcome]", now: "Sequence[Outcome]", baseline: str, name: str) -> "Comparison":
    from clef.statistics.compare import compare

    return compare(before, now, names=(f"the baseline {Path(baseline).name}", name))
