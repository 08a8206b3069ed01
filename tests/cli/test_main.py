"""What every command has in common: help, exit codes, completion."""

import os
import subprocess
import sys

import pytest

from clef.cli.main import COMMANDS, Lazy, run
from tests.cli.conftest import Cli


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_the_line_in_the_list_is_how_the_commands_own_help_begins(name: str) -> None:
    help_text = " ".join((Lazy(name, COMMANDS[name]).real().help or "").split())
    assert help_text.startswith(COMMANDS[name].about.rstrip("."))


def test_the_list_imports_no_command() -> None:
    code = "import sys; from clef.cli.main import run; run(['--help']); print(sorted(sys.modules), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert "clef.settings" not in done.stderr
    assert "'pydantic'" not in done.stderr
    assert "'asyncio'" not in done.stderr
    assert all(name in done.stdout for name in COMMANDS)


def test_a_wrong_command_line_exits_with_2_and_where_help_is(cli: Cli) -> None:
    for arguments in (("nonsense",), ("eval",), ("runs", "list", "--foo"), ("runs", "list", "--limit", "0")):
        done = cli(*arguments)
        assert (done.code, done.out) == (2, "")
        assert "--help`" in done.err


def test_ctrl_c_exits_with_130_without_a_word(monkeypatch: pytest.MonkeyPatch, cli: Cli) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("clef.cli.schema.say", interrupted)
    assert cli("schema") == type(cli("--version"))(130, "", "")


def test_a_bug_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("clef.cli.schema.say", broken)
    with pytest.raises(ZeroDivisionError):
        run(["schema"])


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "powershell"])
def test_a_shell_gets_its_script(cli: Cli, shell: str) -> None:
    done = cli("completion", shell)
    assert done.code == 0
    assert "_CLEF_COMPLETE" in done.out


@pytest.mark.parametrize(
    ("words", "found"), [("clef pre", "predict"), ("clef runs exp", "export"), ("clef eval --min", "--min-accuracy")]
)
def test_the_script_completes_commands_and_options(words: str, found: str) -> None:
    asked = {"_CLEF_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    command = [sys.executable, "-m", "clef"]
    done = subprocess.run(command, env=os.environ | asked, capture_output=True, text=True, timeout=60, check=False)
    assert found in done.stdout.split()
