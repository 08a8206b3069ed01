"""`clef runs`: what is kept, from a terminal, beside a clef that is running and without one."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from clef.engines.builtin import NAME
from clef.engines.engine import EngineFacts
from clef.runs.database import Database
from clef.runs.store import NewRun, Store
from clef.tables import read

TABLE = b"context,question,answer,options\n" + b"".join(
    f"message {n},Which team?,billing,billing|technical\n".encode() for n in range(10)
)


def runs(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "clef", "runs", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture
def made() -> str:
    """A run that an earlier process left stopped before its first row."""

    async def make() -> str:
        store = Store(Database(Path(os.environ["CLEF_DATA_DIR"]) / "clef.db"))
        run = await store.create(NewRun("support.csv", EngineFacts("builtin", "ready", NAME)), read(TABLE).examples)
        await store.set_state(run.id, "stopped", "stopped by a person")
        await store.close()
        return run.id

    return asyncio.run(make())


def test_a_run_is_listed_resumed_shown_and_exported(made: str, tmp_path: Path) -> None:
    assert "support.csv" in runs("list").stdout
    done = runs("resume", made, "--engine", "builtin")
    assert done.returncode == 0, done.stderr
    assert "10 of 10 rows, finished" in done.stderr
    assert "of 10" in runs("show", made).stdout
    assert json.loads(runs("show", made, "--json").stdout)["summary"]["answered"] == 10
    assert runs("export", made, str(tmp_path / "rows.csv")).returncode == 0
    assert (tmp_path / "rows.csv").read_bytes().count(b"\r\n") == 11


def test_a_run_moves_by_a_file(made: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert runs("export", made, str(tmp_path / "run.clef")).returncode == 0
    monkeypatch.setenv("CLEF_DATA_DIR", str(tmp_path / "elsewhere"))
    taken = runs("import", str(tmp_path / "run.clef")).stdout.strip()
    assert taken in runs("list").stdout
    assert runs("delete", taken).returncode == 0
    assert runs("list").stdout == ""


@pytest.mark.parametrize("arguments", [("show", "none"), ("resume", "none"), ("export", "none", "x.csv")])
def test_a_run_that_is_not_there_is_told_without_a_traceback(arguments: tuple[str, ...]) -> None:
    done = runs(*arguments)
    assert done.returncode == 2
    assert "none" in done.stderr
    assert "Traceback" not in done.stderr
