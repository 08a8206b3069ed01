"""Turns the runs that are kept into lists, files and further work, with or without a clef that is running."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from clef.settings import load_settings

app = typer.Typer(
    help="The runs that are kept: list, show, resume, retry, export, import, delete.", no_args_is_help=True
)

RunId = Annotated[str, typer.Argument(help="Id of the run, as `clef runs list` shows it.")]
AsJson = Annotated[bool, typer.Option("--json", help="JSON instead of text.")]
Engine = Annotated[str | None, typer.Option(help="auto, builtin, llama or upstream.")]


@asynccontextmanager
async def _store(*, alone: bool) -> AsyncGenerator[Any, None]:
    from clef.runs.database import Database
    from clef.runs.store import Store

    store = Store(Database(load_settings().data_dir / "clef.db", alone=alone))
    try:
        yield store
    finally:
        await store.close()


@app.command("list")
def list_runs(search: str = "", limit: int = 50, as_json: AsJson = False) -> None:
    """Runs, newest first."""

    async def work() -> None:
        async with _store(alone=False) as store:
            found = await store.runs(search=search, limit=limit)
        if as_json:
            typer.echo(json.dumps([run.to_dict() for run in found], default=str))
            return
        for run in found:
            when = run.created.strftime("%Y-%m-%d %H:%M")
            typer.echo(
                f"{run.id}  {when}  {run.state:<8}  {run.done} of {run.rows}  {run.name}  {run.engine.model or ''}"
            )

    asyncio.run(work())


@app.command()
def show(run_id: RunId, as_json: AsJson = False) -> None:
    """What a run measured."""
    from clef.cli.evaluate import print_summary
    from clef.statistics.summary import summarise

    async def work() -> tuple[Any, Any]:
        async with _store(alone=False) as store:
            return await store.get(run_id), await store.outcomes(run_id)

    run, outcomes = asyncio.run(work())
    summary = summarise(outcomes).to_dict()
    if as_json:
        typer.echo(json.dumps(run.to_dict() | {"summary": summary}, default=str))
        return
    typer.echo(f"{run.name} · {run.engine.model or ''} · {run.state}{f': {run.reason}' if run.reason else ''}")
    print_summary(summary)


@app.command()
def export(
    run_id: RunId, file: Annotated[Path, typer.Argument(help=".csv, .jsonl, .parquet, or .clef to move it.")]
) -> None:
    """Write a run to a file: its rows, or the whole run for another clef."""
    from clef.session import Run
    from clef.statistics.summary import summarise

    async def work() -> None:
        async with _store(alone=False) as store:
            if file.suffix == ".clef":
                await store.export(run_id, file)
                return
            await store.get(run_id)
            outcomes = tuple(await store.outcomes(run_id))
        Run(outcomes, summarise(outcomes)).write(file)

    asyncio.run(work())
    typer.echo(f"wrote {file}")


@app.command("import")
def import_run(file: Annotated[Path, typer.Argument(help="A file that `clef runs export … .clef` wrote.")]) -> None:
    """Take in the run of a file."""

    async def work() -> str:
        async with _store(alone=True) as store:
            return str((await store.take_in(file)).id)

    typer.echo(asyncio.run(work()))


@app.command()
def delete(run_id: RunId) -> None:
    """Put a run away; for a day the page or the API can bring it back."""

    async def work() -> None:
        async with _store(alone=True) as store:
            await store.get(run_id)
            await store.delete(run_id)

    asyncio.run(work())


@app.command()
def resume(run_id: RunId, engine: Engine = None) -> None:
    """Go on with the rows of a run that have no outcome."""
    asyncio.run(_go_on(run_id, engine, retry=False))


@app.command()
def retry(run_id: RunId, engine: Engine = None) -> None:
    """Ask the failed rows of a run again."""
    asyncio.run(_go_on(run_id, engine, retry=True))


async def _go_on(run_id: str, engine: str | None, *, retry: bool) -> None:
    """Work on one run until it ends, telling how far it is on standard error."""
    from clef.engines.opening import ChosenEngine
    from clef.runs.queue import RunQueue

    settings = load_settings(engine=engine)
    async with _store(alone=True) as store:
        run = await store.get(run_id)
        answering = ChosenEngine(settings)
        answering.start()
        queue = RunQueue(store, answering, settings.eval_concurrency)
        try:
            await queue.start()
            if retry:
                await queue.retry(run_id)
            elif run.state not in ("queued", "running", "paused"):
                await queue.resume(run_id)
            async for event in queue.events(run_id):
                typer.echo(f"\r{event.done} of {event.rows} rows, {event.state}   ", nl=event.ended, err=True)
        finally:
            await queue.close()
            await answering.close()
    if event.state != "finished":
        typer.secho(f"{event.state}: {event.reason}", fg="red", err=True)
        raise typer.Exit(3)
