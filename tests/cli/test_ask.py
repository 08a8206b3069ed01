"""`clef ask`: a state from anywhere, questions from flags and files, answers for people and for programs."""

import io
import json
import sys
import urllib.request
from pathlib import Path

import pytest

from tests.cli.conftest import Cli, Done, serving
from tests.fakes.pictures import png

QUESTIONS = """
team:
  question: Which team?
  options: {billing: "charges, refunds", technical: bugs}
angry:
  question: Is it angry?
"""
TEAM = "Which team?=billing: charges, refunds|technical: bugs"


@pytest.fixture
def ask(cli: Cli) -> Cli:
    def call(*arguments: str) -> Done:
        return cli("ask", *arguments, "--engine", "builtin")

    return call


def piped(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


def test_every_answer_has_its_probability(beside: str, ask: Cli) -> None:
    done = ask(
        "I was charged twice, refund me", "--choice", TEAM, "--noul", "Angry?", "--score", "How urgent?=low|high"
    )
    assert (done.code, done.err) == (0, "")
    assert [line for line in done.out.splitlines() if line and line[0] != " "] == [
        "Which team?",
        "Angry?",
        "How urgent?",
    ]
    assert done.out.splitlines()[1].split()[0] == "billing"
    assert "expected level" in done.out
    assert "\x1b" not in done.out


def test_json_is_what_the_api_answers(beside: str, ask: Cli) -> None:
    done = ask("I was charged twice, refund me", "--choice", TEAM, "--noul", "Angry?", "--json")
    body = json.loads(done.out)
    assert {result["position"]: result["type"] for result in body["results"]} == {0: "choice", 1: "noul"}
    assert (body["shape"], body["engine"]) == ("joint", "builtin")
    alone = json.loads(
        ask("I was charged twice, refund me", "--choice", TEAM, "--noul", "Angry?", "--json", "--isolated").out
    )
    assert alone["shape"] == "isolated"


def test_the_state_comes_from_a_file_or_from_standard_input(
    ask: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = ask("refund me", "--choice", TEAM).out
    path = tmp_path / "state.txt"
    path.write_bytes(b"\xef\xbb\xbfrefund me\n")
    assert ask(f"@{path}", "--choice", TEAM).out == said
    assert ask("--file", str(path), "--choice", TEAM).out == said
    for arguments in ((), ("-",)):
        piped(monkeypatch, b"refund me\n")
        assert ask(*arguments, "--choice", TEAM).out == said


def test_chat_messages_are_json_and_text_may_begin_with_a_bracket(ask: Cli) -> None:
    chat = json.dumps([{"role": "user", "content": "refund me"}])
    as_json, as_text = (ask(chat, "--choice", TEAM, "--json", "--as", kind) for kind in ("json", "text"))
    assert as_json.code == as_text.code == 0
    assert ask("[URGENT] refund me", "--choice", TEAM).code == 0
    assert ask("[URGENT] refund me", "--choice", TEAM, "--as", "json").code == 2


def test_questions_come_from_a_file(beside: str, ask: Cli, tmp_path: Path) -> None:
    path = tmp_path / "questions.yaml"
    path.write_text(QUESTIONS)
    body = json.loads(ask("refund me", "--questions", str(path), "--json").out)
    assert {result["question"] for result in body["results"]} == {"Which team?", "Is it angry?"}


def test_everything_wrong_with_the_questions_is_said_at_once(ask: Cli, tmp_path: Path) -> None:
    path = tmp_path / "questions.yaml"
    path.write_text("a:\n  question: x\n  optoins: [a, b]\n")
    done = ask("x", "--choice", "Which?", "--score", "How?=only", "--questions", str(path))
    assert done.code == 2
    assert "--choice" in done.err
    assert "--score.levels" in done.err
    assert 'line 3, questions.a.optoins: unknown key "optoins" (write it as "options")' in done.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("x",), "no question"),
        (("", "--noul", "Angry?"), "the state is empty"),
        (("@missing.txt", "--noul", "Angry?"), "no file missing.txt"),
        (("x", "--file", "y", "--noul", "Angry?"), "given twice"),
        (("x", "--noul", "Angry?", "--image", "missing.png"), "no file missing.png"),
        (("x", "--noul", "Angry?", "--image", __file__), "neither a PNG nor a JPEG"),
        (("x", "--noul", ""), "the question is empty"),
        (("x", "--choice", "Which?=a|A"), "the same answer twice"),
        (("x", "--questions", "missing.yaml"), "no file missing.yaml"),
    ],
)
def test_what_cannot_be_asked_exits_with_2(ask: Cli, arguments: tuple[str, ...], said: str) -> None:
    done = ask(*arguments)
    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert said in json.loads(ask(*arguments, "--json").err)["error"]["message"]


def test_bytes_that_are_no_text_are_told(ask: Cli, tmp_path: Path) -> None:
    path = tmp_path / "state.bin"
    path.write_bytes(b"ok\xff")
    done = ask("--file", str(path), "--noul", "Angry?")
    assert done.code == 2
    assert "byte 3" in done.err


def test_images_are_refused_where_nobody_looks_at_them(beside: str, ask: Cli, tmp_path: Path) -> None:
    path = tmp_path / "photo.png"
    path.write_bytes(png(2, 2))
    done = ask("x", "--noul", "Angry?", "--image", str(path))
    assert done.code == 2
    assert "image" in done.err


def test_an_engine_that_is_not_there_exits_with_3(cli: Cli) -> None:
    done = cli("ask", "x", "--noul", "Angry?", "--engine", "upstream", "--upstream", "http://127.0.0.1:1", "--json")
    assert done.code == 3
    assert json.loads(done.err)["error"]["code"] == "engine_unavailable"


def test_the_schema_is_printed_and_served(cli: Cli) -> None:
    printed = json.loads(cli("schema").out)
    assert printed["title"] == "Questions for clef"
    with serving() as running, urllib.request.urlopen(f"{running.url}/schemas/questions.json", timeout=10) as served:
        assert json.loads(served.read()) == printed


def test_colours_are_for_terminals_without_no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    from clef.cli.terminal import paint

    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert paint("x", "red", stream=terminal) == "\x1b[31mx\x1b[0m"
    monkeypatch.setenv("NO_COLOR", "1")
    assert paint("x", "red", stream=terminal) == "x"
    monkeypatch.delenv("NO_COLOR")
    assert paint("x", "red", stream=io.StringIO()) == "x"


@pytest.mark.parametrize("written", ["billing,sales", "billing, sales", "billing / sales", "billing;sales"])
def test_answers_separated_otherwise_are_told_the_right_way(cli: Cli, written: str) -> None:
    for flag in ("--choice", "--score"):
        done = cli("ask", "My card was charged twice", flag, f"Which team?={written}")
        assert done.code == 2
        assert f'{flag} "Which team?=billing|sales"' in done.err
