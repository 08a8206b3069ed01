"""Turns the runs that are kept into lists, files and further work, with or without a clef that is running."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from clef.cli.options import AsJson, Engine, Model, Upstream
from clef.cli.terminal import paint, say, say_json

app = typer.Typer(
    help="The runs that are kept: look at them, go on with them, move them.",
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

RunId = Annotated[str, typer.Argument(help="Id of the run, as `clef runs list` shows it.")]
Show = Literal["all", "right", "wrong", "failed", "ties", "unlabelled"]
STATES = {"finished": "green", "failed": "red", "stopped": "yellow", "paused": "yellow"}


@app.command("list")
def list_runs(
    search: Annotated[str, typer.Option(help="Part of a name or a note.")] = "",
    limit: Annotated[int, typer.Option(min=1, max=500, help="So many at most.")] = 50,
    as_json: AsJson = False,
) -> None:
    """Runs, newest first."""
    from clef.cli.service import through

    found = through("reading", lambda at: at.runs(search, limit))
    if as_json:
        say_json(found)
        return
    for run in found:
        when = str(run["created"])[:16].replace("T", " ")
        state = paint(f"{run['state']:<8}", *filter(None, [STATES.get(run["state"])]))
        model = run["engine"]["model"] or ""
        say(f"{run['id']}  {when}  {state}  {run['done']} of {run['rows']}  {run['name']}  {model}")


@app.command()
def show(run_id: RunId, as_json: AsJson = False) -> None:
    """What a run measured."""
    from clef.cli.measured import measured, print_summary, why_failed
    from clef.cli.service import Service, through
    from clef.cli.sources import source
    from clef.statistics.columns import as_columns

    async def work(at: Service) -> tuple[dict[str, Any], Any, list[str]]:
        columns = await (await source(at, run_id)).over(as_columns)
        return await at.run(run_id), columns, await why_failed(at, run_id)

    run, columns, failed = through("reading", work)
    summary = measured(columns)
    if as_json:
        say_json(run | {"summary": summary})
        return
    why = f": {run['reason']}" if run["reason"] else ""
    say(f"{run['name']} · {run['engine']['model'] or ''} · {run['state']}{why}")
    print_summary(summary, failed)


@app.command()
def rows(
    run_id: RunId,
    show: Annotated[Show, typer.Option(help="Which rows.")] = "all",
    question: Annotated[str | None, typer.Option(help="Only rows of this question.")] = None,
    text: Annotated[str, typer.Option(help="Part of the state, the label or the prediction.")] = "",
    sort: Annotated[
        Literal["rank", "row", "probability", "margin", "elapsed"], typer.Option(help="What they are ordered by.")
    ] = "rank",
    ascending: Annotated[bool, typer.Option("--ascending", help="Lowest first.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=500, help="So many at most.")] = 20,
    offset: Annotated[int, typer.Option(min=0, help="Leave out so many.")] = 0,
    as_json: AsJson = False,
) -> None:
    """The rows of a run, the surest first."""
    from clef.cli.service import through

    chosen: dict[str, Any] = {"show": show, "text": text, "sort": sort, "descending": not ascending}
    chosen |= {"limit": limit, "offset": offset} | ({"question": question} if question is not None else {})
    page = through("reading", lambda at: at.rows(run_id, chosen))
    if as_json:
        say_json(page)
        return
    for row in page["rows"]:
        say(_row(row))
    if page["total"] > offset + len(page["rows"]):
        say(f"{offset + 1} to {offset + len(page['rows'])} of {page['total']} rows; --offset and --limit show others")


def _row(row: dict[str, Any]) -> str:
    """One row on one line: whether it is right, the answer, and the beginning of its state."""
    said = f"{row['prediction']} {row['probability']:.2f}" if row["prediction"] is not None else row["error"]["message"]
    mark = {True: paint("✓", "green"), False: paint("✗", "red"), None: " "}[row["correct"]]
    label = f" (label {row['answer']})" if row["correct"] is False else ""
    state = " ".join(str(row["context"]).split())[:60]
    return f"{mark} row {row['row']}  {row['question'][:30]}: {said}{label}  {paint(state, 'dim')}"


@app.command()
def export(
    run_id: RunId,
    file: Annotated[Path, typer.Argument(help=".csv, .jsonl, .parquet or .html; or .clef, to move the whole run.")],
    redact: Annotated[bool, typer.Option("--redact", help="Leave the states out of an .html report.")] = False,
) -> None:
    """Write a run to a file: its rows, a report, or the whole run for another clef."""
    from clef.cli.measured import about_of, check_ending, write
    from clef.cli.service import Service, through
    from clef.cli.sources import source

    async def work(at: Service) -> None:
        if file.suffix == ".clef":
            await at.export(run_id, file)
            return
        run = await at.run(run_id)
        await write(await source(at, run_id), file, about_of(run, run["name"]), redact=redact)

    check_ending(file, (".csv", ".jsonl", ".parquet", ".html", ".clef"))
    through("reading", work)
    say(f"wrote {file}", err=True)


@app.command("import")
def import_run(
    file: Annotated[Path, typer.Argument(help="A file that `clef runs export … .clef` wrote.")], as_json: AsJson = False
) -> None:
    """Take in the run of a file, and say its id."""
    from clef.cli.service import through

    taken = through("writing", lambda at: at.take_in(file))
    if as_json:
        say_json({"id": taken})
    else:
        say(taken)


@app.command()
def delete(run_id: RunId) -> None:
    """Put a run away; for a day the page or the API can bring it back."""
    from clef.cli.service import through

    through("writing", lambda at: at.delete(run_id))


@app.command()
def resume(
    run_id: RunId, engine: Engine = None, upstream: Upstream = None, model: Model = None, as_json: AsJson = False
) -> None:
    """Go on with the rows of a run that have no outcome."""
    _go_on(run_id, (engine, upstream, model), retry=False, as_json=as_json)


@app.command()
def retry(
    run_id: RunId, engine: Engine = None, upstream: Upstream = None, model: Model = None, as_json: AsJson = False
) -> None:
    """Ask the failed rows of a run again."""
    _go_on(run_id, (engine, upstream, model), retry=True, as_json=as_json)


def _go_on(run_id: str, options: tuple[str | None, str | None, str | None], *, retry: bool, as_json: bool) -> None:
    from clef.cli.following import follow
    from clef.cli.service import EngineOptions, Service, through

    async def work(at: Service) -> dict[str, Any]:
        await at.go_on(run_id, retry=retry)
        return await follow(at, run_id)

    end = through("writing", work, EngineOptions(*options))
    if as_json:
        say_json({name: end[name] for name in ("state", "done", "rows", "failed", "cached")})
    else:
        say(
            f"{end['done']} of {end['rows']} rows, {end['state']}" + (f", {end['failed']} failed" * bool(end["failed"]))
        )
