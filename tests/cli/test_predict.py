"""`clef predict`: a table of any size in, the same rows with answers out; killed and gone on with."""

import csv
import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from clef.statistics.policy import VERSION
from tests.cli.conftest import Cli, Done

QUESTIONS = """
team: {question: "Which team?", options: {billing: "charges, refunds", technical: "bugs, crashes"}}
urgency: {question: "How urgent?", levels: [low, high]}
"""
ROWS = [(f"{n:03}", f"I was charged {n} times, refund me" if n % 2 else f"error {n}: it crashes") for n in range(100)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "q.yaml").write_text(QUESTIONS)
    with (tmp_path / "in.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("id", "text"), *ROWS])
    (tmp_path / "in.jsonl").write_text("".join(json.dumps({"id": a, "text": b}) + "\n" for a, b in ROWS))
    pq.write_table(pa.table({"id": [int(a) for a, _ in ROWS], "text": [b for _, b in ROWS]}), tmp_path / "in.parquet")
    return tmp_path


@pytest.fixture
def predict(cli: Cli) -> Cli:
    def call(table: str, *arguments: str) -> Done:
        return cli("predict", table, "--questions", "q.yaml", "--engine", "builtin", *arguments)

    return call


def rows_of(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text().splitlines()]
    if path.suffix == ".parquet":
        return list(pq.read_table(path).to_pylist())
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("out", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("table", ["csv", "jsonl", "parquet"])
def test_every_format_goes_in_and_out_and_says_the_same(folder: Path, predict: Cli, table: str, out: str) -> None:
    done = predict(f"in.{table}", "--out", f"out.{out}")
    assert (done.code, done.out, done.err) == (0, "", "")
    rows = rows_of(folder / f"out.{out}")
    assert list(rows[0]) == [
        "id",
        "text",
        "team",
        "team_probability",
        "urgency",
        "urgency_probability",
        "urgency_score",
        "error",
    ]
    assert [(int(row["id"]), row["text"]) for row in rows] == [(int(a), b) for a, b in ROWS]
    assert [row["team"] for row in rows] == ["billing" if n % 2 else "technical" for n in range(100)]
    assert all(0.5 <= float(row["team_probability"]) <= 1 for row in rows)
    assert sorted(path.name for path in folder.iterdir()) == [
        "in.csv",
        "in.jsonl",
        "in.parquet",
        f"out.{out}",
        "q.yaml",
    ]
    if table == out == "parquet":
        assert pq.read_schema(folder / "out.parquet").field("id").type == pa.int64()


def test_a_clef_that_serves_answers_the_same(folder: Path, predict: Cli, beside: str) -> None:
    assert predict("in.csv", "--out", "out.csv").code == 0
    assert [row["team"] for row in rows_of(folder / "out.csv")][:2] == ["technical", "billing"]


def test_a_pipe_goes_in_and_out(folder: Path) -> None:
    command = [sys.executable, "-m", "clef", "predict", "-", "--questions", "q.yaml", "--engine", "builtin"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("id,text\n1,it crashes\n")
        process.stdin.flush()
        assert process.stdout.readline().startswith("id,text,team,")
        assert process.stdout.readline().startswith("1,it crashes,technical,")  # answered while more is to come
        process.stdin.write("2,refund me\n")
        process.stdin.close()
        assert process.stdout.readline().startswith("2,refund me,billing,")
        assert process.wait(20) == 0


@pytest.mark.parametrize("out", ["csv", "jsonl", "parquet"])
def test_a_killed_process_is_gone_on_with_row_for_row(folder: Path, predict: Cli, out: str) -> None:
    (folder / "long.csv").write_text("id,text\n" + "".join(f'{n},"error\n{n}: it crashes"\n' for n in range(800)))
    command = [sys.executable, "-m", "clef", "predict", "long.csv", "--questions", "q.yaml", "--engine", "builtin"]
    part = folder / f"out.{out}.part"
    with subprocess.Popen([*command, "--out", f"out.{out}"]) as process:
        end = time.monotonic() + 30
        while time.monotonic() < end and (not part.exists() or part.stat().st_size < 1000):
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
    assert part.exists(), "it was done before it was killed"
    part.write_bytes(part.read_bytes()[:-7])  # and the last row was cut
    refused = predict("long.csv", "--out", f"out.{out}")
    assert refused.code == 2
    assert "--resume" in refused.err
    other = predict("long.csv", "--out", f"out.{out}", "--resume", "--joint")
    assert "begun with another shape" in other.err
    assert predict("long.csv", "--out", f"out.{out}", "--resume").code == 0
    assert predict("long.csv", "--out", f"whole.{out}").code == 0
    assert rows_of(folder / f"out.{out}") == rows_of(folder / f"whole.{out}")
    assert [int(row["id"]) for row in rows_of(folder / f"out.{out}")] == list(range(800))
    assert not part.exists()


def test_a_row_that_cannot_be_asked_says_why_and_the_others_are_answered(folder: Path, predict: Cli) -> None:
    (folder / "bad.csv").write_text('id,text\n1,refund me\n2,""\n3\n4,' + "word " * 2000 + "\n5,it crashes\n")
    done = predict("bad.csv", "--out", "out.csv")
    assert done.code == 0
    assert "3 rows have no answer" in done.err
    errors = [row["error"] for row in rows_of(folder / "out.csv")]
    assert errors[0] == errors[4] == ""
    assert errors[1] == "the state is empty"
    assert "1 cells" in errors[2]
    assert "too long" in errors[3]


def test_a_policy_adds_act_or_review(folder: Path, predict: Cli) -> None:
    team = {"type": "choice", "answers": ["billing", "technical"], "thresholds": {"all": 0.9}}
    body = {"version": VERSION, "measure": "top_probability", "rule": {}, "questions": {"team": team}}
    (folder / "policy.json").write_text(json.dumps(body))
    assert predict("in.csv", "--out", "out.csv", "--policy", "policy.json").code == 0
    for row in rows_of(folder / "out.csv"):
        assert row["team_decision"] == ("act" if float(row["team_probability"]) >= 0.9 else "review")
        assert row["urgency_decision"] == "review"  # what the policy does not know
    body["questions"] = {"other": team}
    (folder / "policy.json").write_text(json.dumps(body))
    wrong = predict("in.csv", "--out", "out.csv", "--policy", "policy.json")
    assert wrong.code == 2
    assert "knows none of the questions" in wrong.err
    assert predict("in.csv", "--policy", "nothing").code == 2


def test_probabilities_and_a_prefix(folder: Path, predict: Cli) -> None:
    (folder / "one.csv").write_text("team,text\nx,refund me\n")
    clash = predict("one.csv")
    assert clash.code == 2
    assert "--prefix" in clash.err
    done = predict("one.csv", "--prefix", "clef_", "--probabilities", "--format", "jsonl")
    row = json.loads(done.out)
    assert row["team"] == "x"
    assert row["clef_team"] == max(row["clef_team_probabilities"], key=row["clef_team_probabilities"].get)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("missing.csv",), "no file missing.csv"),
        (("in.csv", "--out", "out.docx"), 'cannot write "out.docx"'),
        (("in.csv", "--out", "in.csv"), "the table itself"),
        (("in.csv", "--out", "no/out.csv"), "no folder"),
        (("in.csv", "--column", "state:body"), 'no column "body"'),
        (("two.csv",), "may each be the state"),
        (("none.csv",), "no column holds the state"),
        (("empty.csv",), "empty"),
        (("q.xlsx",), "workbook"),
        (("-", "--out", "out.parquet"), "read twice"),
        (("broken.csv",), "line 2"),
    ],
)
def test_what_cannot_be_labelled_is_told(folder: Path, predict: Cli, arguments: tuple[str, ...], said: str) -> None:
    (folder / "two.csv").write_text("text,message\na,b\n")
    (folder / "none.csv").write_text("a,b\n1,2\n")
    (folder / "empty.csv").write_text("\n")
    (folder / "broken.csv").write_text('id,text\n1,"a"b\n')
    (folder / "q.xlsx").write_bytes(b"PK\x03\x04")
    done = predict(*arguments)
    assert done.code == 2
    assert said in done.err
    assert "Traceback" not in done.err


def test_an_engine_that_is_not_there_exits_with_3_and_leaves_what_can_be_gone_on_with(folder: Path, cli: Cli) -> None:
    done = cli(
        "predict",
        "in.csv",
        "--questions",
        "q.yaml",
        "--out",
        "o.csv",
        "--engine",
        "upstream",
        "--upstream",
        "http://127.0.0.1:1",
    )
    assert done.code == 3
