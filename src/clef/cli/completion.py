"""Turns the commands into a script by which a shell completes them."""

from typing import Annotated, Literal

import typer

from clef.cli.terminal import say


def completion(
    shell: Annotated[
        Literal["bash", "zsh", "fish", "powershell"], typer.Argument(help="The shell that is to read it.")
    ],
) -> None:
    """Print the script by which a shell completes commands.

    For example: clef completion bash > ~/.local/share/bash-completion/completions/clef
    """
    from typer._completion_shared import get_completion_script

    name = "pwsh" if shell == "powershell" else shell
    say(get_completion_script(prog_name="clef", complete_var="_CLEF_COMPLETE", shell=name))
