"""`clef eval`: a table's accuracy in the terminal, results in a file, and an exit code for pipelines."""

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest

TABLE = """context,question,answer,options
"I was charged twice, refund me",Which team?,billing,billing|technical
the app crashes on login,Which team?,technical,billing|technical
hello,Which team?,,billing|technical
"""


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "support.csv"
    path.write_text(TABLE)
    return path


def evaluate(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "clef", "eval", *arguments, "--engine", "builtin"]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_the_accuracy_comes_with_its_interval_and_baselines(table: Path) -> None:
    done = evaluate(str(table))
    assert done.returncode == 0, done.stderr
    assert "of 2" in done.stdout
    assert "1 unlabelled" in done.stdout
    assert "chance: 50.0%" in done.stdout


def test_json_is_the_summary_of_the_api(table: Path) -> None:
    summary = json.loads(evaluate(str(table), "--json").stdout)
    assert (summary["answered"], summary["unlabelled"]) == (2, 1)


def test_a_bar_that_is_missed_exits_with_1(table: Path) -> None:
    missed = table.with_name("missed.csv")
    missed.write_text(TABLE.replace("billing,billing|", "technical,billing|"))
    assert evaluate(str(missed), "--min-accuracy", "1.0").returncode == 1
    assert evaluate(str(missed), "--min-accuracy", "0.0").returncode == 0


def test_results_go_to_a_file_by_its_ending(table: Path, tmp_path: Path) -> None:
    out = tmp_path / "results.csv"
    assert evaluate(str(table), "--out", str(out)).returncode == 0
    rows = list(csv.DictReader(out.read_text(encoding="utf-8-sig").splitlines()))
    assert [row["answer"] for row in rows] == ["billing", "technical", ""]
    wrong = evaluate(str(table), "--out", str(tmp_path / "results.docx"))
    assert wrong.returncode == 2
    assert ".parquet" in wrong.stderr


def test_a_bad_table_exits_with_2_and_its_problems(table: Path) -> None:
    table.write_text(TABLE + ",Which team?,billing,billing|technical\nx,Which team?,sales,billing|technical\n")
    done = evaluate(str(table))
    assert done.returncode == 2
    assert "row 5" in done.stderr
    assert "row 6" in done.stderr
    assert evaluate(str(table), "--skip-bad-rows").returncode == 0


def test_a_report_goes_to_a_file(table: Path, tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    assert evaluate(str(table), "--html", str(out), "--redact").returncode == 0
    text = out.read_text(encoding="utf-8")
    assert "of 2 answered rows" in text
    assert "crashes" not in text
