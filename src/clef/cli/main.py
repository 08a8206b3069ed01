"""Turns a command line into a command: parses, calls, renders; `clef` alone serves the page.

Each command is imported when it is called, so that `clef --help` and short commands start at once.
"""

import os
import sys
from importlib import import_module
from typing import Annotated, Any, NamedTuple

import typer
from typer._click.exceptions import ClickException
from typer.core import TyperCommand, TyperGroup

from clef import __version__
from clef.cli.terminal import INTERRUPTED, show_error
from clef.errors import ClefError, InputError


class Entry(NamedTuple):
    """Where a command is, and its line in the list."""

    module: str
    name: str
    about: str
    """First sentence of the command's own help; a test holds the two together."""


COMMANDS = {
    "serve": Entry("clef.cli.serve", "serve", "Serve the page and the API until Ctrl+C."),
    "ask": Entry("clef.cli.ask", "ask", "Ask questions about a state, and see a probability for every allowed answer."),
    "check": Entry("clef.cli.check", "check", "Show what a table holds and everything that is wrong with it."),
    "eval": Entry("clef.cli.evaluate", "evaluate", "Measure a labelled table: how many are right, with intervals."),
    "predict": Entry(
        "clef.cli.predict", "predict", "Label a table of any size: its rows in, the same rows with answers out."
    ),
    "compare": Entry("clef.cli.compare", "compare", "Compare two runs on the rows that both have."),
    "runs": Entry("clef.cli.runs", "app", "The runs that are kept: look at them, go on with them, move them."),
    "gate": Entry("clef.cli.gate", "app", "Gates: from which top probability on a person may stop checking."),
    "models": Entry("clef.cli.models", "app", "Decision models for llama.cpp: which there are, which fit here."),
    "schema": Entry("clef.cli.schema", "schema", "Print the JSON schema of question files, for editors."),
    "completion": Entry("clef.cli.completion", "completion", "Print the script by which a shell completes commands."),
    "doctor": Entry("clef.cli.doctor", "doctor", "Look at this machine, its drivers and its llama.cpp."),
}


class Lazy(TyperCommand):
    """A command by its name and its line; what it is called with makes it the real one."""

    def __init__(self, name: str, entry: Entry) -> None:
        super().__init__(name, help=entry.about, short_help=entry.about)
        self._entry = entry

    def real(self) -> Any:
        """The command itself."""
        found = getattr(import_module(self._entry.module), self._entry.name)
        if not isinstance(found, typer.Typer):
            group = typer.Typer(rich_markup_mode=None, context_settings=CONTEXT, add_completion=False)
            group.command(self.name)(found)
            found = group
        command = typer.main.get_command(found)
        command.name = self.name
        return command

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        """The context of the real command, which is the one that runs then."""
        return self.real().make_context(*arguments, **options)


class LazyGroup(TyperGroup):
    """The commands of COMMANDS, none of them imported."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Their names, in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """One of them, or None."""
        return Lazy(cmd_name, COMMANDS[cmd_name]) if cmd_name in COMMANDS else None


CONTEXT = {"help_option_names": ["-h", "--help"]}
app = typer.Typer(
    name="clef",
    cls=LazyGroup,
    help="Put a decision model to work on your own machine: ask, measure, trust, serve.",
    no_args_is_help=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    add_completion=False,
    context_settings=CONTEXT,
)


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
        from clef.cli.serve import serve

        serve()


def main() -> None:
    """Run the command line; see `clef.cli.terminal` for the exit codes."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run one command; its exit code. What a person can fix is shown without a traceback, the rest with it."""
    as_json = "--json" in arguments
    if "_CLEF_COMPLETE" in os.environ:  # a shell asks, by the script of `clef completion`
        from typer._completion_classes import completion_init

        completion_init()
    try:
        ended = app(args=arguments, standalone_mode=False, prog_name="clef")
        sys.stdout.flush()
    except ClefError as error:
        return show_error(error, as_json=as_json)
    except ClickException as error:
        context = getattr(error, "ctx", None)
        hint = f"see `{context.command_path if context else 'clef'} --help`"
        return show_error(InputError(error.format_message(), hint=hint), as_json=as_json)
    except (typer.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except BrokenPipeError:  # whoever read the output has enough
        sys.stdout = None
        return 0
    return ended if isinstance(ended, int) else 0
