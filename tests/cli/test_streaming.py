"""Commands over a run let its outcomes pass by: however many rows it has, few of them are in memory at a time."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from clef.decisions.answers import Answer
from clef.decisions.examples import Example, Outcome
from clef.decisions.questions import Choice
from clef.engines.builtin import NAME
from clef.engines.engine import EngineFacts
from clef.runs import reading
from clef.runs.database import Database
from clef.runs.rows import read_outcome
from clef.runs.store import BLOCK, NewRun, Numbered, Store
from tests.cli.conftest import Cli

ROWS = 3 * BLOCK
MOST = BLOCK + 500
"""Outcomes that may be there at once: a block, and what a report lists."""


class Watched(Outcome):
    """An outcome that counts how many of its kind are there."""

    now = 0
    most = 0

    def __del__(self) -> None:
        Watched.now -= 1


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> type[Watched]:
    def watched(cells: Any) -> Outcome:
        one = read_outcome(cells)
        Watched.now += 1
        Watched.most = max(Watched.most, Watched.now)
        names = ("example", "answer", "failure", "elapsed_s", "shape", "model")
        return Watched(*(getattr(one, name) for name in names))

    monkeypatch.setattr(reading, "read_outcome", watched)
    Watched.now = Watched.most = 0
    return Watched


def filled(folder: Path, seed: int) -> str:
    """A finished run of ROWS rows, one in `seed` wrong."""
    question = Choice("Which team?", ["billing", "technical"])
    examples = [
        Example(f"message {n}", question, 0, "billing", n + 2, n + 2, "team", {"source": "mail"}) for n in range(ROWS)
    ]

    def outcome(place: int) -> Numbered:
        chances = (0.2, 0.8) if place % seed == 0 else (0.9, 0.1)
        answer = Answer("choice", question.answers, chances)
        return Numbered(place, Outcome(examples[place], answer, model=NAME))

    async def make() -> str:
        store = Store(Database(folder / "clef.db"))
        facts = EngineFacts("builtin", "ready", NAME)
        run = await store.create(NewRun(f"seed {seed}.csv", facts), examples)
        await store.begin(run.id, facts)
        await store.add(run.id, [outcome(place) for place in range(ROWS)], {})
        await store.set_state(run.id, "finished")
        await store.close()
        return run.id

    return asyncio.run(make())


@pytest.fixture
def runs(data_dir: Path) -> list[str]:
    return [filled(data_dir, seed) for seed in (10, 20)]


@pytest.fixture
def kept(runs: list[str], beside: str) -> list[str]:
    """The same, with nobody and with somebody who serves the folder."""
    return runs


def test_no_command_holds_the_outcomes_of_a_run(
    kept: list[str], cli: Cli, tmp_path: Path, watch: type[Watched]
) -> None:
    first, second = kept
    shown = json.loads(cli("runs", "show", first, "--json").out)["summary"]
    assert (shown["answered"], shown["correct"]) == (ROWS, ROWS * 9 // 10)
    compared = cli("compare", first, second).out
    assert f"{ROWS // 20} fixed, 0 broken" in compared
    assert "row 12: technical → billing (label billing)" in compared
    gate = json.loads(cli("gate", "find", first, second, "--target-accuracy", "0.8", "--json").out)
    assert gate["questions"][0]["cuts"][0]["count"] == 2 * ROWS
    for ending, inside in (("csv", b"message 2999"), ("jsonl", b"message 2999"), ("html", b"seed 10.csv")):
        assert cli("runs", "export", first, str(tmp_path / f"rows.{ending}")).code == 0
        assert inside in (tmp_path / f"rows.{ending}").read_bytes()
    assert 0 < watch.most < MOST


def test_an_evaluation_with_its_files_and_its_baseline_holds_no_outcomes(
    runs: list[str], cli: Cli, tmp_path: Path, watch: type[Watched]
) -> None:
    table, report, base = tmp_path / "t.csv", tmp_path / "r.html", tmp_path / "base.jsonl"
    lines = "".join(f"message {n},Which team?,billing,billing|technical\n" for n in range(ROWS))
    table.write_text(f"context,question,answer,options\n{lines}")
    assert cli("runs", "export", runs[0], str(base)).code == 0
    done = cli(
        *("eval", str(table), "--engine", "builtin", "--out", str(tmp_path / "o.csv")),
        *("--html", str(report), "--baseline", runs[1], "--json"),
    )
    found = json.loads(done.out)
    assert done.code in (0, 1), done.err
    assert found["answered"] == found["baseline"]["pairs"] == ROWS
    assert (tmp_path / "o.csv").read_bytes().count(b"\r\n") == ROWS + 1
    assert 0 < watch.most < MOST


def test_a_file_that_cannot_be_written_whole_leaves_the_one_before(
    runs: list[str], cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "rows.csv"
    target.write_text("before")

    def broken(cells: Any) -> Outcome:
        if cells["position"] == ROWS - 1:
            raise OSError(28, "No space left on device")
        return read_outcome(cells)

    monkeypatch.setattr(reading, "read_outcome", broken)
    done = cli("runs", "export", runs[0], str(target))
    assert done.code == 2
    assert "cannot be written: No space left" in done.err
    assert [path.name for path in tmp_path.iterdir() if "rows" in path.name] == ["rows.csv"]
    assert target.read_text() == "before"
