"""Turns outcomes into files and back: what a spreadsheet is shown, and what clef reads again."""

import csv
import io
import json
import sys
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clef.decisions.answers import Answer
from clef.decisions.examples import Example, Failure, Outcome
from clef.decisions.questions import Choice, Noul, Option, Question, Score, fold
from clef.errors import InputError
from clef.reports.export import write_csv, write_jsonl, write_parquet
from clef.tables import read

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0\ufeff"), min_size=1, max_size=10).filter(
    lambda text: bool(text.strip())
)
DANGEROUS = ["-1", "=x", "'quoted", "+5", "@SUM(A1)", "\tx", "  =1+1", "＝1", "''", "'=x"]
NAMES = st.lists(TEXT | st.sampled_from(DANGEROUS), min_size=2, max_size=5, unique_by=fold)


def outcome(question: Question, label: int | None = 0, *, state: Any = "some text", **more: Any) -> Outcome:
    names = question.answers
    written = "" if label is None else names[label]
    example = Example(state, question, label, more.pop("written", written), row=2, line=2, question_name="q")
    for name, value in more.items():
        object.__setattr__(example, name, value)
    rest = 0.5 / max(1, len(names) - 1)
    answer = Answer(question.type, names, (0.5, *[rest] * (len(names) - 1)))
    return Outcome(example, answer, None, 0.0125, model="m")


def written(outcomes: Iterable[Outcome]) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(b"".join(write_csv(outcomes)).decode("utf-8-sig"), newline="")))


CHOICE = Choice("Which?", ["a", "b"])


def test_the_columns_programs_rely_on_come_first_and_in_order() -> None:
    data = b"".join(write_csv([outcome(CHOICE)]))
    assert data.startswith(
        b"\xef\xbb\xbfrow,context,question,options,answer,prediction,confidence,answer_probability,correct,error,"
    )
    assert data.count(b"\r\n") == data.count(b"\n") == 2


def test_a_row_says_what_was_asked_and_answered() -> None:
    question = Score("Urgent?", ["low", "mid", "high"])
    (row,) = written([outcome(question, 2, extra={"id": "007"})])
    assert row["options"] == '["low", "mid", "high"]'
    assert row["answer"] == "high"
    assert row["prediction"] == "low"
    assert row["answer_probability"] == "0.25"
    assert row["correct"] == "false"
    assert row["type"] == "score"
    assert row["score"] == "0.75"
    assert row["level"] == "0"
    assert row["elapsed_ms"] == "12.5"
    assert row["id"] == "007"
    assert json.loads(row["probabilities"]) == {"low": 0.5, "mid": 0.25, "high": 0.25}


def test_failed_and_unlabelled_rows_have_empty_cells_and_not_wrong_ones() -> None:
    failed = Outcome(Example("x", CHOICE, 0, "a", 2, 2), None, Failure("too_long", "too long: 9 of 8 tokens"))
    first, second = written([failed, outcome(CHOICE, None)])
    assert first["error"] == "too_long: too long: 9 of 8 tokens"
    assert (first["prediction"], first["correct"], first["confidence"]) == ("", "", "")
    assert (second["answer"], second["correct"], second["answer_probability"]) == ("", "", "")
    assert second["prediction"] == "a"


@pytest.mark.parametrize(
    "cell", ["=cmd|' /C calc'!A1", "+1", "-1", "@x", "\t=1", "\r=1", "\n=1", "  =1", "\u00a0=1", "＝1", "＋1"]
)
def test_no_cell_of_the_users_text_runs_as_a_formula(cell: str) -> None:
    (row,) = written([outcome(Choice(cell, [cell, "b"]), 0, state=cell, extra={cell: cell}, written=cell)])
    for name, value in row.items():
        for text in (name, value):
            assert text.lstrip()[:1] not in ("=", "+", "-", "@", "＝", "＋"), (name, value)


def test_our_own_numbers_stay_numbers() -> None:
    tiny = Outcome(Example("x", CHOICE, 1, "b"), Answer("choice", ("a", "b"), (1 - 1e-9, 1e-9)))
    (row,) = written([tiny])
    assert row["answer_probability"] == "1e-09"
    assert float(row["probability"]) == 1 - 1e-9


@settings(max_examples=300, deadline=None)
@given(NAMES, st.data())
def test_an_export_read_again_has_the_same_questions_and_labels(names: list[str], data: st.DataObject) -> None:
    text = st.sampled_from([*names, *DANGEROUS, "some text"])
    questions: list[Question] = [
        Choice(data.draw(text), names),
        Choice(data.draw(text), [Option(names[0], "=why"), *names[1:]]),
        Noul(data.draw(text)),
        Noul("Angry?", true="-shouts", false=None),
        Score(data.draw(text), names),
    ]
    outcomes = [
        outcome(
            question, data.draw(st.integers(0, len(question.answers) - 1)), state=data.draw(text), extra={"=id": "-7"}
        )
        for question in questions
    ]
    again = read(b"".join(write_csv(outcomes)))
    assert again.problems == ()
    assert again.facts.own_export
    for before, after in zip(outcomes, again.examples, strict=True):
        assert after.question == before.example.question
        assert after.label == before.example.label
        assert after.state == before.example.state
        assert after.extra == before.example.extra
    third = [Outcome(example, None) for example in again.examples]
    assert [example.label for example in read(b"".join(write_csv(third))).examples] == [
        o.example.label for o in outcomes
    ]


def test_positions_of_levels_that_are_digits_are_not_read_as_levels() -> None:
    question = Score("Stars?", ["1", "2", "3"])
    again = read(b"".join(write_csv([outcome(question, 1, written="1")])))
    assert again.examples[0].label == 1


def test_an_apostrophe_in_a_foreign_file_is_the_users() -> None:
    table = read(b"context,question,answer,options\n'=x,q,'a,'a|b\n")
    assert table.examples[0].state == "'=x"
    assert table.examples[0].question.answers == ("'a", "b")


@settings(max_examples=150, deadline=None)
@given(NAMES, st.data())
def test_jsonl_read_again_has_the_same_questions_and_labels(names: list[str], data: st.DataObject) -> None:
    questions: list[Question] = [Choice("Which?", names), Noul("Angry?", true="shouts"), Score("Urgent?", names)]
    outcomes = [
        outcome(question, data.draw(st.integers(0, len(question.answers) - 1)), state={"a": [names[0], 1.5, None]})
        for question in questions
    ]
    again = read(b"".join(write_jsonl(outcomes)))
    assert again.problems == ()
    assert [(e.question, e.label, e.state) for e in again.examples] == [
        (o.example.question, o.example.label, o.example.state) for o in outcomes
    ]


def test_jsonl_keeps_everything_raw() -> None:
    line = json.loads(b"".join(write_jsonl([outcome(Choice("=q", ["-1", "b"]), 0, state="=x", extra={"id": "007"})])))
    assert line["state"] == "=x"
    assert line["id"] == "007"
    assert line["labels"] == {"q": "-1"}
    assert line["result"]["probabilities"] == {"-1": 0.5, "b": 0.5}
    assert line["result"]["correct"] is True


def test_columns_of_the_table_that_are_called_like_ours_are_told_apart() -> None:
    (row,) = written([outcome(CHOICE, extra={"prediction": "mine", "row": "9"})])
    assert row["prediction"] == "a"
    assert row["prediction (table)"] == "mine"
    assert row["row (table)"] == "9"


def test_parquet_has_the_same_columns_with_types() -> None:
    import pyarrow.parquet as pq

    table = pq.read_table(
        io.BytesIO(write_parquet([outcome(CHOICE, state="=x", extra={"id": "007"}), outcome(CHOICE, None)]))
    )
    rows = table.to_pylist()
    assert table.column_names[:10] == list(written([outcome(CHOICE)])[0])[:10]
    assert rows[0]["context"] == "=x"
    assert rows[0]["correct"] is True
    assert rows[0]["id"] == "007"
    assert rows[1]["correct"] is None
    assert write_parquet([])


def test_parquet_without_pyarrow_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InputError, match="pyarrow") as caught:
        write_parquet([outcome(CHOICE)])
    assert "clef[parquet]" in str(caught.value.problems[0].hint)


def test_a_large_run_is_written_in_blocks_from_a_stream() -> None:
    asked = 0

    def stream() -> Iterator[Outcome]:
        nonlocal asked
        for _ in range(2_000):
            asked += 1
            yield outcome(CHOICE)

    blocks = write_csv(stream(), extra=())
    next(blocks)
    assert asked < 2_000
    assert b"".join(blocks).count(b"\r\n") > 1_000


def test_no_outcomes_are_a_header() -> None:
    assert b"".join(write_csv([])).startswith(b"\xef\xbb\xbfrow,")
    assert b"".join(write_jsonl([])) == b""
