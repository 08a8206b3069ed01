"""Turns `--on ray` into a task on the machines of a cluster, and what it came to into what a terminal shows."""

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from clef.cli.terminal import say
from clef.errors import InputError, Problem

if TYPE_CHECKING:
    from clef.cli.service import EngineOptions, TableSource
    from clef.scale.cluster import Cluster
    from clef.scale.on_ray import Done, Evaluated
    from clef.scale.task import Task

OURS = {"data_dir", "host", "port", "api_key", "allowed_hosts", "cors_origins"}
"""Settings of this machine alone, which no worker needs."""


def cluster_of(on: str | None, workers: int | None, gpus: float | None, upstreams: str | None) -> "Cluster | None":
    """The cluster that is asked for; None for this machine. Raises InputError for options that need `--on`."""
    given = {"--workers": workers, "--gpus": gpus, "--upstreams": upstreams}
    named = [name for name, value in given.items() if value is not None]
    if on is None:
        if named:
            problem = Problem(f"{' and '.join(named)} without --on", "option", hint="add --on ray, or leave it out")
            raise InputError.of([problem])
        return None
    from clef.scale.cluster import Cluster

    addresses = tuple(part.strip() for part in (upstreams or "").split(",") if part.strip())
    return Cluster(workers=workers, gpus=gpus or 0, upstreams=addresses)


def task_of(table: "TableSource", out: str | None, options: "EngineOptions", *, labelled: bool) -> "Task":
    """The task of a command line. Raises InputError where it has no folder for the parts."""
    from clef.scale.task import Task
    from clef.settings import load_settings

    if not out or out == "-":
        hint = "give --out a folder that every machine can write to"
        raise InputError.of([Problem("many machines write parts, and there is no folder for them", "out", hint=hint)])
    refuse({"--note": table.note})
    settings = load_settings(**options.given)
    reading = table.reading(labelled=labelled, max_rows=settings.max_rows)
    return Task(
        "evaluate" if labelled else "predict",
        out,
        reading,
        table.shape,
        table.skip_bad_rows,
        settings=settings.model_dump(exclude_unset=True, exclude=OURS),
    )


def refuse(options: Mapping[str, object]) -> None:
    """Raise InputError for options that say nothing to many machines, where they were given."""
    given = [name for name, value in options.items() if value]
    if given:
        hint = "parts hold every probability and all columns; what is made of them is made afterwards"
        raise InputError.of([Problem(f"{' and '.join(given)} with --on", "option", hint=hint)])


def evaluated(addresses: Sequence[str], task: "Task", cluster: "Cluster") -> "Evaluated":
    """Measure on a cluster, with progress on a terminal."""
    from clef.scale.on_ray import evaluate_on_ray

    found = evaluate_on_ray(addresses, task, cluster, _progress())
    tell(found.done, task.out)
    if found.sampled:
        accuracy = "" if found.done.accuracy is None else f", of which {found.done.accuracy:.2%} are right"
        rows = len(found.run.outcomes)
        say(f"what follows is a sample of {rows:,} of {found.done.rows:,} rows{accuracy}", "yellow", err=True)
    return found


def predicted(addresses: Sequence[str], task: "Task", cluster: "Cluster") -> None:
    """Label on a cluster, with progress on a terminal."""
    from clef.scale.on_ray import predict_on_ray

    tell(predict_on_ray(addresses, task, cluster, _progress()), task.out)


def run_of(found: "Evaluated", task: "Task") -> dict[str, Any]:
    """What a command shows of a run that is kept in a folder, as JSON of a run."""
    model = next((outcome.model for outcome in found.run.outcomes if outcome.model), "")
    return {"id": task.out, "engine": {"model": model}, "shape": task.shape}


def tell(done: "Done", out: str) -> None:
    """What was done, on standard error."""
    before = f", {done.kept:,} of them by an earlier call" if done.kept else ""
    say(f"{done.rows:,} rows in {done.parts:,} parts{before} · {out}", err=True)
    if done.failed:
        say(f"{done.failed:,} rows have no answer; their column error says why", "yellow", err=True)
    if done.skipped:
        say(f"{done.skipped:,} rows were left out, as --skip-bad-rows says", "yellow", err=True)
    if done.dropped:
        say(f"{done.dropped:,} parts of rows that are not in the tables any more were removed", err=True)


def _progress() -> Any:
    if not sys.stderr.isatty():
        return None

    def told(rows: int, total: int) -> None:
        end = "\n" if rows == total else ""
        print(f"\r\x1b[K{rows:,} of {total:,} rows", end=end, file=sys.stderr, flush=True)

    return told
