"""The Python API, as a notebook uses it."""

from pathlib import Path

import pandas
import pytest

import clef
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
    with clef.Session(engine="builtin") as session:
        answers = session.decide({"text": "refund"}, [clef.Noul("Angry?"), TEAM, clef.Score("How?", ["low", "high"])])
        assert [answer.type for answer in answers] == ["noul", "choice", "score"]
        assert session.facts.kind == "builtin"


def test_questions_may_be_the_apis_json() -> None:
    answer = clef.decide("text", {"question": "Which?", "answers": ["a", "b"]}, engine="builtin")
    assert set(answer.names) == {"a", "b"}


def test_what_cannot_be_asked_raises_with_every_problem() -> None:
    with clef.Session(engine="builtin") as session, pytest.raises(clef.InputError) as caught:
        session.decide("", [clef.Choice("?", ["one"]), clef.Choice("?", ["a", "A"])])
    assert [problem.code for problem in caught.value.problems] == ["empty_state", "one_option", "duplicate_options"]


def test_an_unknown_setting_value_is_named() -> None:
    with pytest.raises(clef.ClefError, match="CLEF_ENGINE"):
        clef.Session(engine="magic")


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
