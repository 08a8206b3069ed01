"""`clef gate`: from labelled results to a policy, and from a policy and new answers to act or review."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from clef.decisions.examples import Outcome
from clef.reports.export import write_csv, write_jsonl
from clef.statistics.policy import Policy, decide
from tests.cli.conftest import Cli
from tests.statistics.making import ANGRY, drawn


@pytest.fixture
def results(tmp_path: Path) -> Path:
    path = tmp_path / "results.jsonl"
    path.write_bytes(b"".join(write_jsonl(drawn(400, 1))))
    return path


@pytest.fixture
def policy(results: Path, cli: Cli, tmp_path: Path) -> Path:
    path = tmp_path / "policy.json"
    done = cli("gate", "find", str(results), "--target-accuracy", "0.85", "--out", str(path))
    assert done.code == 0, done.err
    assert "Which team?" in done.out
    assert "act from 0." in done.out
    return path


@pytest.mark.parametrize(
    "options",
    [
        ("--review-budget", "0.4"),
        ("--cost-wrong", "10", "--cost-check", "1"),
        ("--risk", "0.2"),
        ("--target-accuracy", "0.8", "--recalibrate", "isotonic"),
        ("--target-accuracy", "0.8", "--pooled"),
    ],
)
def test_every_rule_gives_a_policy(results: Path, cli: Cli, options: tuple[str, ...]) -> None:
    assert cli("gate", "find", str(results), *options).code == 0
    done = cli("gate", "find", str(results), *options, "--json")
    assert done.code == 0
    policy = Policy.from_dict(json.loads(done.out)["policy"])
    assert bool(policy.pooled) == ("--pooled" in options)
    assert (policy.recalibration is not None) == ("--recalibrate" in options)


def test_several_runs_are_one_table_and_a_question_without_threshold_is_exit_1(
    results: Path, cli: Cli, tmp_path: Path
) -> None:
    few = tmp_path / "few.jsonl"
    few.write_bytes(b"".join(write_jsonl(drawn(30, 2, ANGRY))))
    done = cli("gate", "find", str(results), str(few), "--review-budget", "0.5")
    assert done.code == 1
    assert "at least 50 are needed" in done.out
    again = tmp_path / "again.jsonl"
    again.write_bytes(b"".join(write_jsonl(drawn(200, 3))))
    both = json.loads(cli("gate", "find", str(results), str(again), "--review-budget", "0.5", "--json").out)
    assert both["questions"][0]["count"] == 600


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--target-accuracy", "0.9", "--risk", "0.1"),
        ("--cost-wrong", "1"),
        ("--target-accuracy", "0.9", "--recalibrate", "magic"),
        ("--target-accuracy", "0.9", "--out", "policy.txt"),
    ],
)
def test_what_makes_no_sense_is_exit_2(results: Path, cli: Cli, options: tuple[str, ...]) -> None:
    done = cli("gate", "find", str(results), *options)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("clef: ")


def test_a_kept_run_is_found_by_its_id(beside: str, cli: Cli, tmp_path: Path) -> None:
    table = "context,question,answer,options\n" + "".join(f"m {n},Which?,a,a|b\n" for n in range(60))
    (tmp_path / "t.csv").write_text(table)
    run = json.loads(cli("eval", str(tmp_path / "t.csv"), "--json").out)["run"]
    done = cli("gate", "find", run, "--review-budget", "0.5", "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["questions"][0]["count"] == 60
    assert cli("gate", "find", "nowhere", "--review-budget", "0.5").code == 2


def expected(rows: list[Outcome], policy: Path) -> list[str]:
    applied = Policy.from_dict(json.loads(policy.read_text()))
    return [decide(applied, row.example.question_name, row.answer) for row in rows if row.answer]


def test_new_answers_get_act_or_review_in_the_file_they_came_in(policy: Path, cli: Cli, tmp_path: Path) -> None:
    rows = drawn(50, 9)
    wanted = expected(rows, policy)
    assert {"act", "review"} == set(wanted)
    answers, out = tmp_path / "new.csv", tmp_path / "ruled.csv"
    answers.write_bytes(b"".join(write_csv(rows)))
    done = cli("gate", "apply", str(policy), str(answers), "--out", str(out))
    assert (done.code, done.out) == (0, "")
    assert f"{wanted.count('act')} act" in done.err
    with out.open(encoding="utf-8-sig", newline="") as file:
        found = list(csv.DictReader(file))
    assert [row["gate"] for row in found] == wanted
    assert {row["gate_reason"] for row in found if row["gate"] == "review"} == {"below the threshold"}
    lines = tmp_path / "new.jsonl"
    lines.write_bytes(b"".join(write_jsonl(rows)))
    done = cli("gate", "apply", str(policy), str(lines))
    assert [json.loads(line)["result"]["gate"]["decision"] for line in done.out.splitlines()] == wanted


def test_replies_of_the_api_are_ruled_on(policy: Path, cli: Cli, tmp_path: Path) -> None:
    sure: dict[str, Any] = {"question": "Which team?", "type": "choice", "options": ["a", "b", "c"]}
    sure["answers"] = [{"answer": "b", "probability": 0.998}, *({"answer": a, "probability": 0.001} for a in "ac")]
    path = tmp_path / "replies.jsonl"
    path.write_text(json.dumps({"results": [sure, sure | {"question": "Another?"}]}) + "\n" + json.dumps(sure) + "\n")
    done = cli("gate", "apply", str(policy), str(path), "--json", "--max-review", "0.5")
    assert done.code == 0
    assert json.loads(done.out) == {
        "act": 2, "review": 1, "reasons": {"the policy does not know this question": 1},
    }  # fmt: skip
    assert cli("gate", "apply", str(policy), str(path), "--max-review", "0.3").code == 1


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.csv", "context,answer\nx,y\n", "has no answers"),
        ("a.jsonl", '{"state": 1}\n\nnot json\n', "2 problems"),
        ("a.txt", "", "cannot be read as answers"),
    ],
)
def test_a_file_without_answers_is_exit_2_with_every_line(
    policy: Path, cli: Cli, tmp_path: Path, name: str, content: str, said: str
) -> None:
    (tmp_path / name).write_text(content)
    done = cli("gate", "apply", str(policy), str(tmp_path / name))
    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert cli("gate", "apply", str(tmp_path / name), str(policy)).code == 2
    assert cli("gate", "apply", str(policy), str(tmp_path / "missing.csv")).code == 2
