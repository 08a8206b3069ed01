"""Turns the sources that are no bytes (paths, frames, Arrow tables, datasets) into the table they hold."""

import gc
import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from clef.decisions.questions import Choice, Noul, Question
from clef.errors import InputError, NotFound, TooLarge
from clef.tables import ReadOptions, Table, read, read_question_set

CSV = b"context,question,answer,options\nhello,q,a,a|b\nthere,q,b,a|b\n"
COLUMNS: dict[str, list[Any]] = {
    "context": ["x", "y", "z"],
    "question": ["q", "q", "q"],
    "options": ["1|2"] * 3,
    "answer": ["1", None, "2"],
}


def labels(table: Table) -> list[tuple[int, str]]:
    return [(example.row, example.written_label) for example in table.examples]


def test_a_path_is_read_like_its_bytes_and_closed(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(CSV)
    assert read(path) == read(str(path)) == read(CSV) == read(bytearray(CSV))
    gc.collect()  # an open file would warn here, and warnings are errors


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"gone\.csv"):
        read(tmp_path / "gone.csv")
    with pytest.raises(InputError, match="int"):
        read(7)


@pytest.mark.parametrize("size", [1, 7, 300_000])
def test_rows_and_lines_do_not_depend_on_where_the_reader_cuts_the_text(size: int) -> None:
    cell = "x" * size
    middle = f'"{cell}\n{cell}",q,a,a|b\n' * 3 + f"{cell},q,zzz,a|b\n"
    table = read(("context,question,answer,options\n" + middle + "ok,q,b,a|b\n").encode())
    assert [(problem.row, problem.line) for problem in table.problems] == [(5, 8)]
    assert [(example.row, example.line) for example in table.examples] == [(2, 2), (3, 4), (4, 6), (6, 9)]


def test_a_million_character_cell_is_a_cell() -> None:
    table = read(b'context,question,answer,options\n"' + b"long, " * 200_000 + b'",q,a,a|b\n')
    assert len(str(table.require()[0].state)) == 1_200_000


def test_the_row_limit_is_in_the_message() -> None:
    data = CSV + b"more,q,a,a|b\n" * 10_000
    with pytest.raises(TooLarge, match="more than 10,000 rows") as caught:
        read(data, ReadOptions(max_rows=10_000))
    assert "CLEF_MAX_ROWS" in str(caught.value.hint)
    assert read(data, ReadOptions(max_rows=10_002)).facts.used == 10_002
    lines = b'{"context": "x", "question": "q", "answer": "a", "options": ["a", "b"]}\n' * 11
    for source in (lines, pd.DataFrame({"context": ["x"] * 11}), pa.table({"context": ["x"] * 11})):
        with pytest.raises(TooLarge, match="more than 10 rows"):
            read(source, ReadOptions(max_rows=10))


@pytest.mark.parametrize("dtype", ["object", "str", "category"])
def test_a_pandas_frame(dtype: str) -> None:
    table = read(pd.DataFrame({name: pd.Series(cells, dtype=dtype) for name, cells in COLUMNS.items()}))
    assert labels(table) == [(2, "1"), (3, ""), (4, "2")]
    assert table.facts.unlabelled == 1
    assert table.facts.format == "frame"


def test_integers_that_an_empty_cell_made_decimals_are_integers_again() -> None:
    frame = pd.DataFrame({**COLUMNS, "answer": [1.0, None, 2.0], "id": [1.5, 2.0, float("nan")]})
    table = read(frame)
    assert labels(table) == [(2, "1"), (3, ""), (4, "2")]
    assert [example.extra["id"] for example in table.examples] == ["1.5", "2.0", ""]


def test_labels_of_a_frame_may_be_booleans_and_lists_of_options() -> None:
    frame = pd.DataFrame(
        {
            "text": ["x", "y"],
            "question": "q",
            "type": ["noul", "choice"],
            "options": [None, ["a", "b"]],
            "gold": [True, "b"],
        }
    )
    assert [example.label for example in read(frame).require()] == [0, 1]
    whole = pd.DataFrame({"text": ["x", "y"], "question": "q", "gold": [True, False]})
    assert [example.written_label for example in read(whole).require()] == ["true", "false"]


def test_words_for_missing_in_a_frame_are_words() -> None:
    frame = pd.DataFrame({"text": ["x", "y"], "question": "q", "gold": ["NA", "None"]})
    assert [example.written_label for example in read(frame).require()] == ["NA", "None"]


def test_an_arrow_table_and_a_parquet_file(tmp_path: Path) -> None:
    table = pa.table({**COLUMNS, "options": [["1", "2"]] * 3, "score": [1, 2, 3]})
    out = io.BytesIO()
    pq.write_table(table, out)
    (tmp_path / "t.parquet").write_bytes(out.getvalue())
    for source in (table, out.getvalue(), tmp_path / "t.parquet"):
        found = read(source)
        assert labels(found) == [(2, "1"), (3, ""), (4, "2")]
        assert found.examples[0].question == Choice("q", ["1", "2"])
        assert found.examples[0].extra == {"score": "1"}
    assert read(out.getvalue()).facts.format == "parquet"


def test_parquet_without_pyarrow_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InputError, match="pyarrow") as caught:
        read(b"PAR1....")
    assert "clef[parquet]" in str(caught.value.problems[0].hint)


class Feature:
    def __init__(self, names: list[str] | None = None) -> None:
        if names:
            self.names = names


class Dataset:
    """What the datasets library offers of a dataset, as far as the reader asks."""

    column_names = ("text", "label")

    def __init__(self) -> None:
        self.features = {"text": Feature(), "label": Feature(["negative", "positive"])}

    def __len__(self) -> int:
        return 3

    def __getitem__(self, name: str) -> list[Any]:
        cells: dict[str, list[Any]] = {"text": ["good", "bad", "hm"], "label": [1, 0, -1]}
        return cells[name]


def test_a_dataset_has_the_names_of_its_classes() -> None:
    question = {"sentiment": Choice("Which sentiment?", ["negative", "positive"])}
    table = read(Dataset(), ReadOptions(questions=question))
    assert [example.label for example in table.require()] == [1, 0, None]
    assert table.examples[0].question_name == "sentiment"
    assert table.facts.format == "dataset"


def test_a_set_of_splits_is_no_table() -> None:
    class Splits:
        features: dict[str, Any] = {}  # noqa: RUF012  # a stand-in for a foreign class
        column_names: dict[str, Any] = {"train": [], "test": []}  # noqa: RUF012

    table = read(Splits())
    assert table.problems[0].hint == "give one of them: train, test"


def test_a_sheet_that_is_not_there_lists_those_that_are() -> None:
    from tests.tables.workbooks import xlsx

    book = xlsx({"May": [["context", "question", "answer"]], "June": [["x"]]})
    with pytest.raises(InputError) as caught:
        read(book, ReadOptions(sheet="july"))
    assert caught.value.problems[0].hint == 'the sheets are "May", "June"'


def test_equal_questions_are_one_object() -> None:
    table = read(CSV)
    assert table.examples[0].question is table.examples[1].question
    lines = (
        b'{"state": "x", "questions": {"q": {"type": "noul", "instructions": "Angry?"}}, "labels": {"q": true}}\n' * 2
    )
    first, second = read(lines).examples
    assert first.question is second.question


def test_reading_leaves_the_garbage_collector_as_it_was() -> None:
    read(CSV)
    assert gc.isenabled()
    gc.disable()
    try:
        read(CSV)
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_require_gives_the_examples_or_every_problem() -> None:
    assert len(read(CSV).require()) == 2
    with pytest.raises(InputError) as caught:
        read(CSV + b",q,a,a|b\nx,q,c,a|b\n").require()
    assert [problem.row for problem in caught.value.problems] == [4, 5]
    assert "2 problems in the table" in caught.value.message


def test_a_preview_has_the_first_examples_and_all_problems() -> None:
    table = read(CSV + b"x,q,c,a|b\n" * 30 + b"y,q,a,a|b\n" * 30)
    preview = table.preview()
    assert set(preview) == {"facts", "examples", "problems", "warnings"}
    assert len(preview["examples"]) == 20
    assert len(preview["problems"]) == 30
    assert set(preview["problems"][0]) == {"row", "line", "column", "code", "message", "hint"}
    assert preview["examples"][0] == {
        "row": 2,
        "line": 2,
        "state": "hello",
        "question": "q",
        "type": "choice",
        "options": ["a", "b"],
        "descriptions": [None, None],
        "label": "a",
        "images": 0,
    }


def test_a_table_wrong_in_every_row_does_not_fill_the_memory_with_problems() -> None:
    table = read(b"context,question,answer,options\n" + b"x,q,c,a|b\n" * 12_000)
    assert len(table.problems) == 10_001
    assert table.problems[-1].message == "and 2,000 more problems"
    assert table.facts.skipped == 12_000


@pytest.mark.parametrize(
    "text",
    [
        b'a",",\n' * 60_000,  # each line leaves a quote open, whether one was open before or not
        b'"\n' * 100_000,
        b'x,"\n' * 100_000,
        b'"a""\n' * 100_000,
        b"," * 2_000_000,
        b"\r" * 500_000,
    ],
    ids=["open either way", "quote a line", "open second cell", "escaped and open", "separators", "line ends"],
)
def test_hostile_text_takes_time_in_proportion_to_its_size(text: bytes) -> None:
    table = read(b"context,question,answer\n" + text)  # quadratic reading would take minutes here
    assert table.problems


QUESTIONS = b"""{"questions": [
  {"id": "mood", "kind": "choice", "question": "Mood?", "options": [{"value": "glad", "description": "smiles"}, "sad"]},
  {"name": "angry", "type": "predicate", "instructions": "Angry?"},
  {"instructions": "Stars?", "levels": [1, 2, 3]}
]}"""


def test_questions_of_other_tools_are_read() -> None:
    questions = read_question_set(QUESTIONS)
    assert list(questions) == ["mood", "angry", "q3"]
    assert questions["angry"] == Noul("Angry?")
    assert questions["mood"].answers == ("glad", "sad")
    assert questions["q3"].answers == ("1", "2", "3")


def test_everything_wrong_with_questions_is_said_at_once() -> None:
    data = b"""{"a": {"type": "essay"}, "b": {"question": "q", "options": ["x", "X"]},
        "c": 7, "d": {"type": "score", "question": "q"}}"""
    with pytest.raises(InputError) as caught:
        read_question_set(data)
    assert [problem.column for problem in caught.value.problems] == [
        "questions.a",
        "questions.b.answers",
        "questions.c",
        "questions.d",
    ]
    with pytest.raises(InputError, match="not JSON"):
        read_question_set(b"{")


def test_a_table_that_is_to_be_labelled_needs_no_labels() -> None:
    rows = b"refund me,Which team?,billing|technical\nit crashes,Which team?,billing|technical\n"
    table = b"context,question,options\n" + rows
    assert [problem.code for problem in read(table).problems] == ["missing_column"]
    found = read(table, ReadOptions(labelled=False))
    assert (found.problems, found.facts.unlabelled) == ((), 2)
    assert found.examples[0].question.answers == ("billing", "technical")


def test_given_questions_are_asked_of_each_state_that_is_to_be_labelled() -> None:
    questions: dict[str, Question] = {"team": Choice("Which?", ["billing", "technical"]), "angry": Noul("Angry?")}
    found = read(b"text,id\nrefund me,1\nit crashes!,2\n", ReadOptions(labelled=False, questions=questions))
    assert found.problems == ()
    asked = [(example.row, example.question_name, example.label) for example in found.examples]
    assert asked == [(2, "team", None), (2, "angry", None), (3, "team", None), (3, "angry", None)]
    assert found.examples[0].extra == {"id": "1"}


def test_labels_that_are_there_are_kept_even_where_they_are_not_needed() -> None:
    found = read(b"context,question,answer,options\nhi,Q?,a,a|b\n", ReadOptions(labelled=False))
    assert found.examples[0].label == 0


def test_a_server_starts_without_the_reader() -> None:
    code = "import sys, clef.web.app, clef.tables; sys.exit('clef.tables.formats' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
