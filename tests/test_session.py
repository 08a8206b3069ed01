"""The Python API, as a notebook uses it."""

import doctest
import importlib
from collections.abc import Iterator
from pathlib import Path

import pandas
import pytest

import clef
from clef.errors import Problem
from tests.fakes.system_one import system_one

TABLE = """context,question,answer,options
refund me,Which team?,billing,billing|technical
it crashes,Which team?,,billing|technical
"""
TEAM = clef.Choice("Which team?", {"technical": "bugs, crashes", "billing": "charges, refunds"})


def test_one_question_gives_one_answer() -> None:
    answer = clef.decide("I was charged twice, refund me", TEAM, engine="builtin")
    assert isinstance(answer, clef.Answer)
    assert answer.prediction == "billing"


def test_several_questions_give_answers_in_their_order() -> None:
    with clef.Engine.open(engine="builtin") as session:
        answers = session.decide({"text": "refund"}, [clef.Noul("Angry?"), TEAM, clef.Score("How?", ["low", "high"])])
        assert [answer.type for answer in answers] == ["noul", "choice", "score"]
        assert session.facts.kind == "builtin"


def test_questions_may_be_the_apis_json() -> None:
    answer = clef.decide("text", {"question": "Which?", "answers": ["a", "b"]}, engine="builtin")
    assert set(answer.names) == {"a", "b"}


def test_what_cannot_be_asked_raises_with_every_problem() -> None:
    with clef.Engine.open(engine="builtin") as session, pytest.raises(clef.InputError) as caught:
        session.decide("", [clef.Choice("?", ["one"]), clef.Choice("?", ["a", "A"])])
    assert [problem.code for problem in caught.value.problems] == ["empty_state", "one_option", "duplicate_options"]


def test_an_unknown_setting_value_is_named() -> None:
    with pytest.raises(clef.ClefError, match="CLEF_ENGINE"):
        clef.Engine.open(engine="magic")


def test_a_running_server_is_used() -> None:
    with system_one() as server:
        assert clef.decide("text", TEAM, upstream=server.address).prediction == "technical"
        assert len(server.bodies) == 2  # the look whether it decides, and the question


@pytest.mark.parametrize("kind", ["path", "text path", "bytes", "frame"])
def test_a_table_from_anywhere(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "table.csv"
    path.write_text(TABLE)
    sources = {
        "path": path,
        "text path": str(path),
        "bytes": TABLE.encode(),
        "frame": pandas.read_csv(path, dtype=str, keep_default_na=False),
    }
    run = clef.evaluate(sources[kind], engine="builtin")
    assert (run.summary.overall.count, run.summary.unlabelled) == (1, 1)
    assert [outcome.example.row for outcome in run.outcomes] == [2, 3]
    assert list(run.rows["answer"]) == ["billing", ""]
    assert run.rows["probability"].between(0.5, 1).all()


def test_a_bad_table_raises_and_its_good_rows_run_when_asked_for() -> None:
    table = (TABLE + "x,Which team?,zzz,billing|technical\n").encode()
    with pytest.raises(clef.InputError) as caught:
        clef.evaluate(table, engine="builtin")
    assert [problem.row for problem in caught.value.problems] == [4]
    assert len(clef.evaluate(table, engine="builtin", skip_bad_rows=True).outcomes) == 2


def test_a_file_that_is_not_there_is_told_in_words(tmp_path: Path) -> None:
    with pytest.raises(clef.InputError, match=r"nothing\.csv"):
        clef.evaluate(tmp_path / "nothing.csv", engine="builtin")


def test_an_error_in_a_notebook_ends_with_every_problem_and_what_to_do() -> None:
    with pytest.raises(clef.InputError) as caught:
        clef.decide("x", [{"type": "noul", "answers": 1}, {"type": "choice", "question": "Which?", "answers": ["a"]}])
    told = str(caught.value).splitlines()
    assert told[0] == f"{caught.value.message}:"
    assert told[1:] == [f"- {problem}" for problem in caught.value.problems]
    assert len(told) > 2
    many = clef.InputError.of([Problem(f"problem {number}", hint="mend it") for number in range(50)])
    assert str(many).splitlines()[-2:] == ["- problem 19 (mend it)", "- and 30 more"]
    assert str(clef.InputError("no such thing", hint="look again")) == "no such thing (look again)"


def test_many_states_are_decided_in_order_and_an_error_stays_with_its_state() -> None:
    states = ["refund my charge", "", "the app crashes", "word " * 2000, "refund"] * 4
    with clef.Engine.open(engine="builtin") as engine:
        ordered = list(engine.decide_many(states, TEAM, concurrency=3))
        as_come = list(engine.decide_many(iter(states), TEAM, ordered=False, concurrency=3))
    assert [one.position for one in ordered] == list(range(20))
    assert [one.state for one in ordered] == states
    codes = [one.error.code if one.error else one.answer.prediction for one in ordered[:5]]
    assert codes == ["billing", "invalid_input", "technical", "too_long", "billing"]
    with pytest.raises(clef.InputError):
        _ = ordered[1].answer
    assert sorted(one.position for one in as_come) == list(range(20))


def test_states_are_taken_as_there_is_room_and_not_before() -> None:
    taken = 0

    def states() -> Iterator[str]:
        nonlocal taken
        while True:
            taken += 1
            yield f"refund {taken}"

    with clef.Engine.open(engine="builtin") as engine:
        decisions = engine.decide_many(states(), TEAM, concurrency=2)
        first = [next(decisions) for _ in range(5)]
        decisions.close()  # type: ignore[attr-defined]
    assert [one.position for one in first] == [0, 1, 2, 3, 4]
    assert taken < 10


def test_an_engine_that_is_away_ends_many() -> None:
    with clef.Engine.open(engine="upstream", upstream="http://127.0.0.1:1") as engine, pytest.raises(clef.EngineError):
        list(engine.decide_many(["a"], TEAM))


@pytest.mark.anyio
async def test_the_same_with_await() -> None:
    async with clef.AsyncEngine.open(engine="builtin") as engine:
        answers = await engine.decide("refund me", [TEAM, clef.Noul("Angry?")])
        assert answers[0].prediction == "billing"
        found = [one.answer.prediction async for one in engine.decide_many(["refund", "crash"], TEAM)]
        run = await engine.evaluate(TABLE.encode())
    assert len(found) == 2
    assert run.summary.overall.count == 1


def test_a_run_is_kept_loaded_compared_and_shown(tmp_path: Path) -> None:
    rows = "".join(f"refund charge {n},<b>Which?</b>,billing,billing|technical\n" for n in range(30))
    run = clef.evaluate(f"context,question,answer,options\n{rows}".encode(), engine="builtin")
    run.save(tmp_path / "run.jsonl")
    again = clef.load_run(tmp_path / "run.jsonl")
    assert again.summary == run.summary
    assert again.outcomes[3].answer == run.outcomes[3].answer
    assert "not decisive" in again.compare(run).verdict
    assert run.gates(accuracy=0.5).to_dict()["questions"]
    with pytest.raises(clef.InputError):
        run.gates()
    with pytest.raises(clef.InputError, match=r"\.parquet"):
        run.save(tmp_path / "run.docx")
    shown = run._repr_html_()
    assert "&lt;b&gt;Which?&lt;/b&gt;" in shown
    assert "<b>" not in shown
    assert "refund" not in shown


def test_questions_may_be_a_file(tmp_path: Path) -> None:
    (tmp_path / "q.yaml").write_text('team: {question: "Which?", options: [billing, technical]}')
    run = clef.evaluate(b"text,expected_team\nrefund,billing\n", questions=tmp_path / "q.yaml", engine="builtin")
    assert run.summary.overall.count == 1


@pytest.mark.parametrize(("module", "least"), [("clef", 3), ("clef.session", 7)])
def test_the_examples_in_docstrings_run(module: str, least: int) -> None:
    found = doctest.testmod(importlib.import_module(module))
    assert found.failed == 0
    assert found.attempted >= least
