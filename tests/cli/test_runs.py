"""`clef runs` and `clef compare`: what is kept, from a terminal, beside a clef that is running and without one."""

import asyncio
import json
from pathlib import Path

import pytest

from clef.engines.builtin import NAME
from clef.engines.engine import EngineFacts
from clef.runs.database import Database
from clef.runs.store import NewRun, Store
from clef.tables import read
from tests.cli.conftest import Cli

TABLE = b"context,question,answer,options\n" + b"".join(
    f"message {n},Which team?,billing,billing|technical\n".encode() for n in range(10)
)


@pytest.fixture
def left(data_dir: Path) -> str:
    """A run that an earlier process left stopped before its first row."""

    async def make() -> str:
        store = Store(Database(data_dir / "clef.db"))
        run = await store.create(NewRun("support.csv", EngineFacts("builtin", "ready", NAME)), read(TABLE).examples)
        await store.set_state(run.id, "stopped", "stopped by a person")
        await store.close()
        return run.id

    return asyncio.run(make())


@pytest.fixture
def made(left: str, beside: str) -> str:
    """The same, with nobody and with somebody who serves the folder."""
    return left


def test_a_run_is_listed_resumed_shown_and_exported(made: str, cli: Cli, tmp_path: Path) -> None:
    assert "support.csv" in cli("runs", "list").out
    done = cli("runs", "resume", made, "--engine", "builtin")
    assert (done.code, done.err) == (0, "")
    assert "10 of 10 rows, finished" in done.out
    assert "of 10" in cli("runs", "show", made).out
    assert json.loads(cli("runs", "show", made, "--json").out)["summary"]["answered"] == 10
    assert cli("runs", "export", made, str(tmp_path / "rows.csv")).code == 0
    assert (tmp_path / "rows.csv").read_bytes().count(b"\r\n") == 11
    page = json.loads(cli("runs", "rows", made, "--limit", "3", "--sort", "row", "--ascending", "--json").out)
    assert ([row["row"] for row in page["rows"]], page["total"]) == ([2, 3, 4], 10)
    assert "1 to 3 of 10" in cli("runs", "rows", made, "--limit", "3").out
    again = cli("runs", "resume", made, "--engine", "builtin")
    assert again.code == 2
    assert "retry" in again.err
    assert cli("runs", "retry", made, "--engine", "builtin").code == 0


def test_a_run_moves_by_a_file(made: str, cli: Cli, tmp_path: Path) -> None:
    assert cli("runs", "export", made, str(tmp_path / "run.clef")).code == 0
    assert cli("runs", "delete", made).code == 0
    assert cli("runs", "list").out == ""
    taken = cli("runs", "import", str(tmp_path / "run.clef")).out.strip()
    assert taken in cli("runs", "list").out
    assert taken != made


def test_two_runs_are_compared_by_id_and_by_file(left: str, beside: str, cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(TABLE)
    first = json.loads(cli("eval", str(tmp_path / "t.csv"), "--json").out)["run"]
    assert cli("runs", "export", first, str(tmp_path / "base.jsonl")).code == 0
    by_file = json.loads(cli("compare", str(tmp_path / "base.jsonl"), first, "--json").out)
    assert (by_file["fixed"], by_file["broken"], by_file["decisive"]) == (0, 0, False)
    assert by_file["both_right"] + by_file["both_wrong"] == 10
    assert "not decisive" in cli("compare", first, first).out


def test_a_row_that_flipped_is_shown_with_the_beginning_of_its_state(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(TABLE.replace(b"message 3", b"message 3 " + b"and much more " * 9))
    ours, theirs = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    assert cli("eval", str(tmp_path / "t.csv"), "--engine", "builtin", "--out", str(ours)).code == 0
    rows = [json.loads(line) for line in ours.read_text().splitlines()]
    found = rows[3]["result"]["probabilities"]
    rows[3]["result"]["probabilities"] = dict(zip(found, reversed(found.values()), strict=True))
    theirs.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    lines = cli("compare", str(ours), str(theirs)).out.splitlines()
    flip = next(place for place, line in enumerate(lines) if "row 5:" in line)
    assert lines[flip + 1].strip().startswith("message 3 and much more")
    assert lines[flip + 1].endswith("…")


@pytest.mark.parametrize(
    "arguments",
    [
        ("runs", "show", "none"),
        ("runs", "rows", "none"),
        ("runs", "resume", "none"),
        ("runs", "retry", "none"),
        ("runs", "delete", "none"),
        ("runs", "export", "none", "x.csv"),
        ("runs", "export", "none", "x.clef"),
        ("compare", "none", "none"),
        ("runs", "import", "none.clef"),
    ],
)
def test_what_is_not_there_is_told_in_words_and_as_json(beside: str, cli: Cli, arguments: tuple[str, ...]) -> None:
    done = cli(*arguments)
    assert (done.code, done.out) == (2, "")
    assert "none" in done.err


def test_a_run_that_another_process_left_under_way_is_not_taken_up_unasked(left: str, cli: Cli, data_dir: Path) -> None:
    async def under_way() -> None:
        store = Store(Database(data_dir / "clef.db"))
        await store.set_state(left, "running")
        await store.close()

    asyncio.run(under_way())
    table = data_dir / "t.csv"
    table.write_text("context,question,answer,options\nx,Which?,a,a|b\n")
    assert cli("eval", str(table), "--engine", "builtin").code == 0
    assert json.loads(cli("runs", "show", left, "--json").out)["done"] == 0
    assert cli("runs", "resume", left, "--engine", "builtin").code == 0
