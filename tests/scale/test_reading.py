"""Files at an address, settled and cut: what is wrong is told by file, row and line before anybody is asked."""

from pathlib import Path

import pandas
import pytest

import clef
from clef.decisions.examples import Shape
from clef.scale.parts import Receipt, drop_others, parts_of
from clef.scale.places import files_at
from clef.scale.reading import cut, look, settle
from clef.scale.task import claim, pin
from clef.tables import ReadOptions, read
from tests.fakes.system_one import SystemOne
from tests.scale.making import outcomes_of, settled, task_for, work_here, write_table

LABELS = "context,question,answer\n"


def test_a_bad_row_is_told_with_its_file_its_row_and_its_line(tmp_path: Path) -> None:
    write_table(tmp_path / "a.csv", 3)
    for name in ("b.csv", "c.csv"):
        path = write_table(tmp_path / name, 2)
        path.write_text(path.read_text() + "x,Which team?,zzz,a|b\n")
    with pytest.raises(clef.InputError) as caught:
        settled([str(tmp_path)], task_for(tmp_path / "out"))
    assert [str(problem).split(":")[0] for problem in caught.value.problems] == ["b.csv", "c.csv"]
    assert [(problem.row, problem.line) for problem in caught.value.problems] == [(4, 6), (4, 6)]
    assert caught.value.problems[0].to_dict()["file"] == "b.csv"
    skipping = task_for(tmp_path / "out", skip_bad_rows=True)
    assert settled([str(tmp_path)], skipping).several_files


def test_a_file_with_other_columns_is_told_with_what_differs(tmp_path: Path) -> None:
    write_table(tmp_path / "a.csv", 2)
    (tmp_path / "b.csv").write_text("context,question,answer,choices,who\nx,Which?,a,a|b,me\n")
    with pytest.raises(clef.InputError, match=r'b\.csv.*not those of a\.csv: it lacks "options" and it also has'):
        settled([str(tmp_path)], task_for(tmp_path / "out"))


def test_a_file_that_cannot_be_read_is_told_even_where_bad_rows_are_skipped(tmp_path: Path) -> None:
    write_table(tmp_path / "a.csv", 2)
    (tmp_path / "b.csv").write_bytes(b"%PDF-1.7")
    with pytest.raises(clef.InputError, match=r"b\.csv: this is a PDF"):
        settled([str(tmp_path)], task_for(tmp_path / "out", skip_bad_rows=True))


def test_options_from_labels_are_those_of_all_files(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(LABELS + "x,Which?,a\ny,Which?,b\n")
    (tmp_path / "b.csv").write_text(LABELS + "x,Which?,c\ny,Which?,a\n")
    task = settled([str(tmp_path)], task_for(tmp_path / "out"))
    both = [part for number, file in enumerate(files_at([str(tmp_path)])) for part in cut(file, number, task)]
    examples = [example for part in both for example in part.examples()[1]]
    assert {example.question.answers for example in examples} == {("a", "b", "c")}
    assert [example.question.answers[example.label or 0] for example in examples] == ["a", "b", "c", "a"]
    assert [example.extra for example in examples] == [{"file": "a.csv"}] * 2 + [{"file": "b.csv"}] * 2


def test_files_are_found_by_folder_and_by_pattern_and_what_is_hidden_is_left(tmp_path: Path) -> None:
    for name in ("day-2.csv", "day-1.jsonl", "notes.md", "_old/x.csv", "more/day-3.parquet"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    assert [file.name for file in files_at([str(tmp_path)])] == ["day-1.jsonl", "day-2.csv", "more/day-3.parquet"]
    assert [file.name for file in files_at([f"{tmp_path}/day-*.csv"])] == ["day-2.csv"]
    with pytest.raises(clef.InputError, match="no table at"):
        files_at([f"{tmp_path}/nothing-*.csv"])
    with pytest.raises(clef.InputError, match="cannot be used"):
        files_at(["ftp://host/table.csv"])


def test_rows_of_one_state_stay_in_one_part_where_they_are_asked_together(tmp_path: Path) -> None:
    rows = "".join(f"text {n % 7},Question {n}?,a,a|b\n" for n in range(70))
    table = read(("context,question,answer,options\n" + rows).encode())
    parts = list(parts_of(table.examples, 0, task_for(tmp_path / "out", shape="joint")))
    states = [{example.state for example in part.examples()[1]} for part in parts]
    assert len(parts) == 7
    assert sum(map(len, states)) == len(set.union(*states))


@pytest.mark.parametrize("shape", ["isolated", "joint"])
@pytest.mark.parametrize("ending", ["parquet", "jsonl", "csv"])
def test_parts_give_the_outcomes_of_one_machine(tmp_path: Path, server: SystemOne, shape: Shape, ending: str) -> None:
    columns = {"context": [f"t{n % 9}" for n in range(45)], "question": [f"Q{n % 5}?" for n in range(45)]}
    frame = pandas.DataFrame(columns | {"answer": ["a", "b", "c"] * 15, "options": "a|b|c", "who": "me"})
    path = tmp_path / f"table.{ending}"
    writers = {
        "parquet": lambda: frame.to_parquet(path),
        "jsonl": lambda: frame.to_json(path, orient="records", lines=True),
        "csv": lambda: frame.to_csv(path, index=False),
    }
    writers[ending]()
    task = task_for(tmp_path / "out", server, shape=shape)
    receipts = work_here([str(path)], task)
    with clef.Engine.open(engine="upstream", upstream=server.address) as one:
        alone = one.evaluate(path, shape=shape)
    many = outcomes_of(task, receipts)
    assert [(one.example, one.answer, one.shape) for one in many] == [
        (one.example, one.answer, one.shape) for one in alone.outcomes
    ]
    assert sum(one.rows for one in receipts if isinstance(one, Receipt)) == 45


def test_a_part_that_is_there_is_not_asked_again_and_a_changed_row_is(tmp_path: Path, server: SystemOne) -> None:
    table = write_table(tmp_path / "table.csv", 40)
    task = task_for(tmp_path / "out", server)
    first = work_here([str(table)], task)
    asked = len(server.bodies)
    assert work_here([str(table)], task) == first
    assert len(server.bodies) - asked <= 2  # whether the server decides, and no row
    table.write_text(table.read_text().replace("text 15\n", "TEXT 15\n"))
    again = work_here([str(table)], task)
    names = [one.name for one in again if isinstance(one, Receipt)]
    assert len([one for one in first if one not in again]) == 1
    assert drop_others(task.folder, names) == 1
    assert len(list((tmp_path / "out").glob("*.parquet"))) == 4


def test_a_folder_of_another_task_or_of_other_files_is_refused(tmp_path: Path) -> None:
    task = task_for(tmp_path / "out")
    assert claim(task) is None
    pin(task, "builtin:sparrow")
    assert claim(task) == "builtin:sparrow"
    other = task_for(tmp_path / "out", shape="joint", reading=ReadOptions(questions={"q": clef.Noul("Angry?")}))
    with pytest.raises(clef.InputError, match="another task: questions, asked differ"):
        claim(other)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.docx").write_text("")
    with pytest.raises(clef.InputError, match=r"other files \(thesis\.docx\)"):
        claim(task_for(tmp_path / "mine"))


def test_rows_without_labels_are_read_for_given_questions(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("context,who\nhello,me\n")
    reading = ReadOptions(questions={"angry": clef.Noul("Angry?")}, labelled=False)
    task = task_for(tmp_path / "out", kind="predict", reading=reading)
    (file,) = files_at([str(tmp_path / "a.csv")])
    settle([look(file, reading)], task)
    (receipt,) = work_here([str(tmp_path / "a.csv")], task)
    assert isinstance(receipt, Receipt)
    frame = pandas.read_parquet(tmp_path / "out" / f"{receipt.name}.parquet")
    assert frame["prediction"].isin(["yes", "no"]).all()
    assert list(frame["who"]) == ["me"]
