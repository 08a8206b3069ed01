"""Turns a command line into a command: parses, calls, renders; `clef` alone serves the page."""

import sys
from typing import Annotated

import typer

from clef import __version__
from clef.cli import check as checking
from clef.cli import doctor as examining
from clef.cli import evaluate as evaluating
from clef.cli import models, runs
from clef.cli import serve as serving
from clef.cli.check import SHOWN
from clef.errors import ClefError, EngineError, InputError

app = typer.Typer(
    name="clef",
    help="Put a decision model to work on your own machine: ask, measure, trust, serve.",
    no_args_is_help=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("serve")(serving.serve)
app.command("check")(checking.check)
app.command("eval")(evaluating.evaluate)
app.add_typer(runs.app, name="runs")
app.add_typer(models.app, name="models")
app.command("doctor")(examining.doctor)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"clef {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        serving.serve()


def main() -> None:
    """Run the command line. What a person can fix is shown without a traceback and exits with 2; an engine that does
    not answer, with 3.
    """
    try:
        app()
    except ClefError as error:
        typer.secho(f"clef: {error.message}", fg="red", err=True)
        problems = error.problems if isinstance(error, InputError) and len(error.problems) > 1 else ()
        for problem in problems[:SHOWN]:
            typer.echo(f"      {problem}", err=True)
        if len(problems) > SHOWN:
            typer.echo(f"      … and {len(problems) - SHOWN} more; `clef check --json` lists all", err=True)
        if error.hint and not problems:
            typer.echo(f"      {error.hint}", err=True)
        sys.exit(3 if isinstance(error, EngineError) else 2)
