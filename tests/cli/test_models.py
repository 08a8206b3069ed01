"""`clef models` as a person uses it, against a local hub."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from clef.cli import models
from clef.errors import ClefError
from tests.fakes.hub import Hub, hub_of
from tests.tiny.models import write_clef

CONTENT = b"GGUF" + os.urandom(400_000)


@pytest.fixture(autouse=True)
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Hub]:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    for name in ("HF_HUB_CACHE", "HF_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    with hub_of("julia-1:Q8_0", CONTENT, monkeypatch) as running:
        yield running


def run(*arguments: str) -> str:
    """What is printed; raises what goes wrong."""
    result = CliRunner().invoke(models.app, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout


def test_the_list_has_sizes_licences_and_one_that_is_recommended() -> None:
    text = run()
    assert text.count("(recommended)") == 1
    assert "CC-BY-NC-4.0" in text
    listed = json.loads(run("--json"))
    assert [model["name"] for model in listed["models"] if model["recommended"]] == ["julia-1:Q8_0"]
    assert json.loads(run("list", "--json")) == listed


def test_a_model_is_got_shown_and_removed() -> None:
    assert "clef serve --model julia-1:Q8_0" in run("get", "julia-1")
    assert "here" in run("show", "julia-1")
    assert json.loads(run("get", "julia-1", "--json"))["state"] == "done"
    assert "julia-1:Q8_0 is gone" in run("remove", "julia-1")
    assert json.loads(run("remove", "julia-1", "--json")) == {"name": "julia-1:Q8_0", "freed_bytes": 0}


def test_a_file_tells_what_it_says_of_itself(tmp_path: Path) -> None:
    known = json.loads(run("show", str(write_clef(tmp_path / "mine.gguf")), "--json"))
    assert (known["architecture"], known["context"]) == ("clef", 32768)
    (tmp_path / "page.gguf").write_text("<!DOCTYPE html>")
    with pytest.raises(ClefError, match="it is a web page"):
        run("show", str(tmp_path / "page.gguf"))


def test_what_cannot_be_got_is_explained(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ClefError, match="no decision model is called"):
        run("get", "gpt-5")
    hub.gated = True
    with pytest.raises(ClefError, match="accepted its terms") as caught:
        run("get", "julia-1")
    assert "HF_TOKEN" in str(caught.value.hint)
    monkeypatch.setenv("HF_TOKEN", "not a token")
    with pytest.raises(ClefError, match="does not look like an access token"):
        run("get", "julia-1")


def test_ctrl_c_keeps_what_came_and_the_same_command_goes_on(hub: Hub, tmp_path: Path) -> None:
    hub.bytes_per_s = 100_000
    program = "from clef.cli.models import app; app()"
    with subprocess.Popen([sys.executable, "-c", program, "get", "julia-1"], stderr=subprocess.PIPE) as process:
        end = time.monotonic() + 20
        while not any(path.stat().st_size for path in (tmp_path / "hf").rglob("*.part")):
            assert time.monotonic() < end
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=10)
    assert process.returncode == 130
    assert "the same command goes on" in errors.decode()
    assert "Traceback" not in errors.decode()
    hub.bytes_per_s = None
    run("get", "julia-1")
    assert str(hub.ranges()[-1]).startswith("bytes=")


def test_every_command_has_help() -> None:
    group = typer.main.get_command(models.app)
    assert all(command.help for command in group.commands.values())  # type: ignore[attr-defined] # it is a group
