"""Turns a labelled table into its accuracy in the terminal, and into files; exits with 1 where a bar is missed."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
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
    from clef.cli.service import EngineOptions, Service, TableSource
    from clef.cli.sources import Source
    from clef.scale.cluster import Cluster
    from clef.scale.task import Task
    from clef.statistics.columns import Columns as Arrays
    from clef.statistics.compare import Comparison
    from clef.statistics.halves import Half

RESULTS = (".csv", ".jsonl", ".parquet")


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What is to be made of the outcomes of a table."""

    name: str
    """Of the table."""
    files: tuple[Path, ...]
    redact: bool
    baseline: str | None


@dataclass(frozen=True, slots=True)
class _Found:
    """What was made of them; the outcomes themselves are not held."""

    run: dict[str, Any]
    columns: "Arrays"
    comparison: "Comparison | None"
    failed: Sequence[str] = ()
    """Why rows failed."""


def evaluate(
    table: Annotated[
        str, typer.Argument(help="The labelled table, or a ZIP or folder with images; with --on ray folders, s3://….")
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
    from clef.cli.measured import check_ending, measured, print_summary
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
    wanted = _Wanted(file.name, tuple(filter(None, (results, html))), redact, baseline)
    if cluster is None:
        found = asyncio.run(_measure(source, options, wanted))
    else:
        found = asyncio.run(_on_many(cluster, table, task_of(source, out, options, labelled=True), wanted))
    run, comparison = found.run, found.comparison
    summary = measured(found.columns)
    missed = Bars(min_accuracy, max_ece).missed(found.columns, comparison)
    if as_json:
        compared = comparison and comparison.to_dict()
        say_json(
            {"run": run["id"], "model": run["engine"]["model"]} | summary | {"baseline": compared, "missed": missed}
        )
    else:
        shape = "the questions of a state together" if joint else "each question alone"
        say(f"{file.name} · {run['engine']['model']} · {shape} · run {run['id']}")
        print_summary(summary, found.failed)
        if comparison is not None:
            say(f"\n{comparison.verdict}\n  {comparison.pairs.note}")
        for sentence in missed:
            say(sentence, "red", err=True)
    if missed:
        raise typer.Exit(MISSED)


async def _measure(table: "TableSource", options: "EngineOptions", wanted: _Wanted) -> _Found:
    """Run a table; the baseline is looked for before anything is asked."""
    from clef.cli.following import follow
    from clef.cli.measured import why_failed
    from clef.cli.service import service
    from clef.cli.sources import source

    async with service("writing", options) as at:
        before = await _before(at, wanted.baseline)
        made = await at.submit(table)
        await follow(at, made.id)
        found = await _found(await source(at, made.id), await at.run(made.id), before, wanted)
        return replace(found, failed=await why_failed(at, made.id))


async def _on_many(cluster: "Cluster", table: str, task: "Task", wanted: _Wanted) -> _Found:
    """The same on the machines of a cluster."""
    from clef.cli.scaled import evaluated, run_of
    from clef.cli.service import service
    from clef.cli.sources import Passing

    before = None
    if wanted.baseline:
        async with service("reading") as at:
            before = await _before(at, wanted.baseline)
    done = await asyncio.to_thread(evaluated, [table], task, cluster)
    return await _found(Passing(lambda: iter(done.run.outcomes)), run_of(done, task), before, wanted)


async def _before(at: "Service", baseline: str | None) -> "Half | None":
    from clef.cli.sources import source
    from clef.statistics.halves import as_half

    return await (await source(at, baseline)).over(as_half) if baseline else None


async def _found(outcomes: "Source", run: dict[str, Any], before: "Half | None", wanted: _Wanted) -> _Found:
    """The numbers of the outcomes, the files made of them, and what they are against the baseline."""
    from clef.cli.measured import about_of, write
    from clef.statistics.columns import as_columns
    from clef.statistics.compare import compare
    from clef.statistics.halves import as_half

    half = await outcomes.over(as_half) if before is not None else None
    columns = half.columns if half is not None else await outcomes.over(as_columns)
    for path in wanted.files:
        await write(outcomes, path, about_of(run, wanted.name), redact=wanted.redact)
    if before is None or half is None:
        return _Found(run, columns, None)
    names = (f"the baseline {Path(wanted.baseline or '').name}", wanted.name)
    return _Found(run, columns, compare(before, half, names=names))
