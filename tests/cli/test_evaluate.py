"""`clef eval`: a table's accuracy in the terminal, results in a file, and an exit code for pipelines."""

import csv
import json
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.conftest import Cli, Done
from tests.fakes.pictures import png
from tests.tables.test_files import packed, put

TABLE = """context,question,answer,options
"I was charged twice, refund me",Which team?,billing,billing|technical
the app crashes on login,Which team?,technical,billing|technical
hello,Which team?,,billing|technical
"""
RIGHT = "context,question,answer,options\n" + "".join(
    f"I was charged twice in month {n} please refund the payment,Which team?,billing,billing|technical\n"
    for n in range(12)
)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "support.csv"
    path.write_text(TABLE)
    return path


@pytest.fixture
def evaluate(cli: Cli) -> Cli:
    def call(*arguments: str) -> Done:
        return cli("eval", *arguments, "--engine", "builtin")

    return call


def test_the_accuracy_comes_with_its_interval_and_baselines(beside: str, table: Path, evaluate: Cli) -> None:
    done = evaluate(str(table))
    assert (done.code, done.err) == (0, "")
    assert "of 2" in done.out
    assert "1 unlabelled" in done.out
    assert "chance: 50.0%" in done.out
    assert "\x1b" not in done.out


def test_json_is_the_summary_of_the_api(beside: str, table: Path, evaluate: Cli) -> None:
    summary = json.loads(evaluate(str(table), "--json").out)
    assert (summary["answered"], summary["unlabelled"], summary["missed"]) == (2, 1, [])


def test_joint_and_isolated_are_what_the_run_says(beside: str, table: Path, evaluate: Cli, cli: Cli) -> None:
    for option in ("joint", "isolated"):
        made = json.loads(evaluate(str(table), f"--{option}", "--json").out)["run"]
        assert json.loads(cli("runs", "show", made, "--json").out)["shape"] == option


def test_a_bar_that_is_missed_exits_with_1_and_a_sentence(table: Path, evaluate: Cli) -> None:
    missed = table.with_name("missed.csv")
    missed.write_text(TABLE.replace("billing,billing|", "technical,billing|"))
    done = evaluate(str(missed), "--min-accuracy", "1.0")
    assert done.code == 1
    assert "below the 100.0% that was asked for" in done.err
    assert evaluate(str(missed), "--min-accuracy", "0.0").code == 0


def test_a_calibration_error_above_its_bar_exits_with_1(table: Path, evaluate: Cli) -> None:
    done = evaluate(str(table), "--max-ece", "0", "--json")
    assert done.code == 1
    assert json.loads(done.out)["missed"] != []
    assert evaluate(str(table), "--max-ece", "1").code == 0


def test_a_run_that_is_decisively_worse_than_its_baseline_exits_with_1(
    beside: str, tmp_path: Path, evaluate: Cli
) -> None:
    table, base, other = tmp_path / "t.csv", tmp_path / "base.jsonl", tmp_path / "other.jsonl"
    table.write_text(RIGHT)
    first = evaluate(str(table), "--out", str(base), "--json")
    summary = json.loads(first.out)
    assert summary["correct"] == 12, "the table is meant to be one that the built-in model has right"
    assert evaluate(str(table), "--baseline", str(base)).code == 0
    assert evaluate(str(table), "--baseline", summary["run"], "--min-accuracy", "0.5").code == 0
    wrong = table.with_name(
        "wrong.csv"
    )  # the same rows by a model that errs: what is right is exchanged in the results
    wrong.write_text(RIGHT)
    lines = [json.loads(line) for line in base.read_text().splitlines()]
    for line in lines:
        line["result"]["probabilities"] = {"billing": 0.1, "technical": 0.9}
    other.write_text("".join(json.dumps(line) + "\n" for line in lines))
    better = evaluate(str(table), "--baseline", str(other))
    assert better.code == 0
    assert "better" in better.out


def test_worse_than_the_baseline_is_said_in_one_sentence(tmp_path: Path, evaluate: Cli) -> None:
    table, base = tmp_path / "t.csv", tmp_path / "base.jsonl"
    table.write_text(RIGHT.replace(",billing,billing|", ",technical,billing|"))  # the model has none of them
    evaluate(str(table), "--out", str(base))
    lines = [json.loads(line) for line in base.read_text().splitlines()]
    for line in lines:
        line["result"]["probabilities"] = {"billing": 0.1, "technical": 0.9}
    base.write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = evaluate(str(table), "--baseline", str(base))
    assert done.code == 1
    assert "worse than the baseline base.jsonl by 100.0 points" in done.err
    assert "decisive" in done.err


def test_a_baseline_that_is_not_there_is_told_before_anything_is_asked(table: Path, evaluate: Cli, cli: Cli) -> None:
    done = evaluate(str(table), "--baseline", "nothing")
    assert done.code == 2
    assert "nothing" in done.err
    assert cli("runs", "list").out == ""


def test_a_baseline_that_is_no_results_file_says_which_lines(table: Path, tmp_path: Path, evaluate: Cli) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"a": 1}\nnot json\n')
    done = evaluate(str(table), "--baseline", str(bad), "--json")
    problems = json.loads(done.err)["error"]["problems"]
    assert done.code == 2
    assert [problem["line"] for problem in problems] == [1, 2]


def test_results_go_to_a_file_by_its_ending(table: Path, tmp_path: Path, evaluate: Cli, cli: Cli) -> None:
    out = tmp_path / "results.csv"
    assert evaluate(str(table), "--out", str(out)).code == 0
    rows = list(csv.DictReader(out.read_text(encoding="utf-8-sig").splitlines()))
    assert [row["answer"] for row in rows] == ["billing", "technical", ""]
    wrong = evaluate(str(table), "--out", str(tmp_path / "results.docx"))
    assert wrong.code == 2
    assert ".parquet" in wrong.err
    assert evaluate(str(table), "--out", str(tmp_path / "no" / "results.csv")).code == 2
    assert len(cli("runs", "list").out.splitlines()) == 1  # what cannot be written is known before anything is asked


def test_a_bad_table_exits_with_2_and_its_problems(beside: str, table: Path, evaluate: Cli) -> None:
    table.write_text(TABLE + ",Which team?,billing,billing|technical\nx,Which team?,sales,billing|technical\n")
    done = evaluate(str(table))
    assert done.code == 2
    assert "row 5" in done.err
    assert "row 6" in done.err
    assert evaluate(str(table), "--skip-bad-rows").code == 0


def test_columns_that_were_named_once_are_remembered(beside: str, tmp_path: Path, evaluate: Cli) -> None:
    table = tmp_path / "own.csv"
    table.write_text("what,asked,truth,among\nrefund me,Which team?,billing,billing|technical\n")
    assert evaluate(str(table)).code == 2
    named = [f"{role}:{header}" for role, header in {"state": "what", "question": "asked", "options": "among"}.items()]
    assert evaluate(str(table), *(part for name in named for part in ("--column", name))).code == 0
    assert evaluate(str(table)).code == 0


def test_a_table_that_is_not_there_is_told(beside: str, evaluate: Cli) -> None:
    done = evaluate("nothing.csv")
    assert (done.code, done.out) == (2, "")
    assert "no file nothing.csv" in done.err


def test_images_lie_in_a_folder_an_archive_or_beside_the_table(beside: str, tmp_path: Path, evaluate: Cli) -> None:
    content = {"labels.csv": b"file_name,label\nimg/a.png,cat\nimg/b.png,dog\n"}
    content |= {"img/a.png": png(2, 2), "img/b.png": png(3, 2)}
    folder = put(tmp_path / "pets", content)
    (tmp_path / "pets.zip").write_bytes(packed(content))
    for source in (folder, folder / "labels.csv", tmp_path / "pets.zip"):
        done = evaluate(str(source), "--question", "Which animal?")
        assert done.code == 0, done.err
        assert "besides: 2 failed\n    2: the built-in model reads no images" in done.out
    (folder / "img" / "b.png").unlink()
    for source in (folder, folder / "labels.csv"):
        done = evaluate(str(source), "--question", "Which animal?")
        assert (done.code, done.out) == (2, "")
        assert 'row 3, file_name: no file "img/b.png"' in done.err


def test_a_report_goes_to_a_file(table: Path, tmp_path: Path, evaluate: Cli) -> None:
    out = tmp_path / "report.html"
    assert evaluate(str(table), "--html", str(out), "--redact").code == 0
    text = out.read_text(encoding="utf-8")
    assert "of 2 answered rows" in text
    assert "crashes" not in text


def test_an_engine_that_is_not_there_exits_with_3(table: Path, cli: Cli) -> None:
    done = cli("eval", str(table), "--engine", "upstream", "--upstream", "http://127.0.0.1:1")
    assert done.code == 3
    assert "127.0.0.1:1" in done.err


def test_ctrl_c_stops_the_run_and_says_how_to_go_on(tmp_path: Path, cli: Cli, data_dir: Path) -> None:
    table = tmp_path / "long.csv"
    rows = (f"message {n},Which team?,billing,billing|technical\n" for n in range(4000))
    table.write_text("context,question,answer,options\n" + "".join(rows))
    command = [sys.executable, "-m", "clef", "eval", str(table), "--engine", "builtin"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        end = time.monotonic() + 40
        while time.monotonic() < end and not done_rows(data_dir):
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=40)
    assert (process.returncode, out) == (130, "")
    run = json.loads(cli("runs", "list", "--json").out)[0]
    assert (run["state"], 0 < run["done"] < 4000) == ("stopped", True)
    assert f"clef runs resume {run['id']} goes on" in err
    assert "Traceback" not in err
    assert "4000 of 4000 rows, finished" in cli("runs", "resume", run["id"], "--engine", "builtin").out


def done_rows(data_dir: Path) -> int:
    """Rows of the runs there are, read beside the process that writes them."""
    try:
        with closing(sqlite3.connect(f"file:{data_dir / 'clef.db'}?mode=ro", uri=True)) as connection:
            return int(connection.execute("select coalesce(sum(done), 0) from runs").fetchone()[0])
    except sqlite3.OperationalError:
        return 0
