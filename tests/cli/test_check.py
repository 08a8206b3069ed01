"""`clef check`: what a table holds and what is wrong with it, without a model."""

import json
import subprocess
import sys
from pathlib import Path

GOOD = "context;question;answer;options\nrefund me;Which team?;billing;billing|technical\n"


def check(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "clef", "check", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_a_good_table_is_shown_as_understood(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text(GOOD)
    done = check(str(path))
    assert done.returncode == 0
    assert "separator ';'" in done.stdout
    assert "1 of 1 rows, 1 question, 0 unlabelled" in done.stdout
    assert "row 2: refund me\n    Which team? → billing   (billing | technical)" in done.stdout
    assert "ready to evaluate" in done.stdout


def test_a_row_without_a_label_says_so(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text(GOOD + "where is it;Which team?;;billing|technical\n")
    assert "row 3: where is it\n    Which team? → no label" in check(str(path)).stdout


def test_every_problem_of_a_bad_one_comes_with_its_row_and_exit_2(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text(GOOD + ";Which team?;billing;billing|technical\nhello;Which team?;sales;billing|technical\n")
    done = check(str(path))
    assert done.returncode == 2
    assert "row 3" in done.stdout
    assert "row 4" in done.stdout
    assert "ready" not in done.stdout


def test_json_is_the_preview_of_the_api(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text(GOOD)
    assert set(json.loads(check(str(path), "--json").stdout)) == {"facts", "examples", "problems", "warnings"}


def test_columns_can_be_named(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("mail,ask,right\nrefund me,Angry?,yes\nthank you,Angry?,no\n")
    assert check(str(path)).returncode == 2
    named = check(str(path), "--column", "state:mail", "--column", "question:ask", "--column", "label:right")
    assert named.returncode == 0, named.stdout


def test_a_questions_file_makes_a_table_of_labels_whole(tmp_path: Path) -> None:
    table, questions = tmp_path / "table.csv", tmp_path / "questions.json"
    table.write_text("text,expected_team,expected_angry\nrefund me,billing,no\nit crashes!,technical,yes\n")
    asked = {
        "team": {"type": "choice", "instructions": "Which team?", "criteria": {"billing": None, "technical": None}},
        "angry": {"type": "noul", "instructions": "Angry?"},
    }
    questions.write_text(json.dumps(asked))
    done = check(str(table), "--questions", str(questions), "--json")
    assert done.returncode == 0, done.stdout
    assert json.loads(done.stdout)["facts"]["examples"] == 4


def test_a_file_that_is_not_there_is_told_without_a_traceback(tmp_path: Path) -> None:
    done = check(str(tmp_path / "nothing.csv"))
    assert done.returncode == 2
    assert "nothing.csv" in done.stderr
    assert "Traceback" not in done.stderr
