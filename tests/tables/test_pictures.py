"""What a table says of images: checked where it is read, so that no row leads an engine to an address or a file."""

import base64
import json
from io import BytesIO
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from clef.decisions.questions import Choice
from clef.tables import ReadOptions, read
from clef.tables.stream import StreamOptions, open_stream
from tests.fakes.pictures import png, url

GOOD = url(png(2, 2))
BAD = [
    ("file:///etc/passwd", "an address is not fetched"),
    ("http://169.254.169.254/latest", "an address is not fetched"),
    ("cat.png", "not a data URL"),
    ("data:image/png;base64,@@@", "its base64 is damaged"),
    (url(png(60_000, 60_000)), "60000 x 60000 pixels"),
    (url(b"<svg/>", "image/svg+xml"), "SVG+XML is not read"),
]
ASKED = {"type": "choice", "instructions": "Q?", "criteria": {"a": None, "b": None}}


def csv(*cells: str, header: str = "image") -> bytes:
    quoted = ['"' + cell.replace('"', '""') + '"' for cell in cells]
    rows = [f"x{n},Q?,a,a|b,{cell}" for n, cell in enumerate(quoted)]
    return "\n".join([f"context,question,answer,options,{header}", *rows]).encode()


@pytest.mark.parametrize(("cell", "said"), BAD)
def test_a_row_with_an_image_that_cannot_be_taken_is_a_problem_at_its_place(cell: str, said: str) -> None:
    table = read(csv(GOOD, cell, json.dumps([GOOD, cell])))
    assert [example.images for example in table.examples] == [(GOOD,)]
    assert [(one.row, one.line, one.column) for one in table.problems] == [(3, 3, "image[0]"), (4, 4, "image[1]")]
    assert all(said in one.message and "data:image/png" in (one.hint or "") for one in table.problems)
    assert table.facts.skipped == 2


def test_more_images_than_a_request_may_have_are_a_problem() -> None:
    table = read(csv("\n".join([GOOD] * 9)))
    assert "9 images; at most 8" in table.problems[0].message
    assert not table.examples


def test_a_column_of_addresses_stays_a_column_and_one_is_told() -> None:
    table = read(csv("https://example.com/a.png", ""))
    assert [(example.images, dict(example.extra)) for example in table.examples] == [
        ((), {"image": "https://example.com/a.png"}),
        ((), {"image": ""}),
    ]
    assert not table.problems
    assert ["no image is sent" in one.message for one in table.warnings] == [True]


def test_an_empty_column_of_images_says_nothing() -> None:
    table = read(csv("", " "))
    assert (len(table.examples), table.problems, table.warnings) == (2, (), ())


def test_a_column_that_is_said_to_have_images_is_not_taken_for_another() -> None:
    table = read(csv("cat.png", header="photo"), ReadOptions(mapping={"images": "photo"}))
    assert [(one.row, one.column) for one in table.problems] == [(2, "photo[0]")]


@pytest.mark.parametrize("images", [[GOOD, {"url": GOOD}], [7], "cat.png", {"url": GOOD}, ["file:///etc/passwd"]])
def test_images_of_labelled_json_are_checked_and_none_is_dropped_in_silence(images: object) -> None:
    lines = [
        {"state": "x", "questions": {"q": ASKED}, "labels": {"q": "a"}, "images": images},
        {"state": "x", "instructions": "Q?", "criteria": {"a": None, "b": None}, "gold": "a", "images": images},
        {"state": "x", "questions": {"q": ASKED}, "labels": {"q": "a"}, "images": [GOOD]},
    ]
    table = read("\n".join(map(json.dumps, lines)).encode())
    assert [(example.row, example.images) for example in table.examples] == [(3, (GOOD,))]
    assert [one.row for one in table.problems] == [1, 2]
    assert all((one.column or "").startswith("images[") for one in table.problems)


def test_in_a_wide_table_a_bad_image_leaves_out_all_questions_of_its_row() -> None:
    content = f'text,images,colour,size\nx,"{GOOD}",a,a\ny,cat.png,a,b\n'.encode()
    questions = {name: Choice("Q?", ["a", "b"]) for name in ("colour", "size")}
    table = read(content, ReadOptions(questions=questions))
    assert [(example.state, example.images) for example in table.examples] == [("x", (GOOD,))] * 2
    assert [(one.row, one.column) for one in table.problems] == [(3, "images[0]")]


@pytest.mark.parametrize("is_piped", [False, True])
def test_a_row_to_be_labelled_with_a_bad_image_is_told_and_not_sent(tmp_path: Path, is_piped: bool) -> None:
    content = f'text,images\nx,"{GOOD}"\ny,file:///etc/passwd\n'.encode()
    file = tmp_path / "rows.csv"
    file.write_bytes(content)
    records = list(open_stream(BytesIO(content) if is_piped else file, StreamOptions()).records)
    assert [(record.images, record.problem) for record in records] == [
        ((GOOD,), None),
        ((), "images[0]: an address is not fetched"),
    ]


def pillow() -> Image.Image:
    return Image.open(BytesIO(png(2, 2)))


@pytest.mark.parametrize(
    "cell", [png(2, 2), {"bytes": png(2, 2), "path": "cat.png"}, [png(2, 2)], [{"bytes": png(2, 2), "path": None}]]
)
def test_images_as_parquet_holds_them_become_data_urls(cell: object, tmp_path: Path) -> None:
    rows = {"text": ["x"], "question": ["Q?"], "answer": ["a"], "options": ["a|b"], "image": [cell]}
    pq.write_table(pa.table(rows), tmp_path / "rows.parquet")
    table = read(tmp_path / "rows.parquet")
    assert [example.images for example in table.require()] == [(GOOD,)]


@pytest.mark.parametrize("cell", [pillow(), [pillow(), png(2, 2)]])
def test_images_as_a_library_hands_them_out_become_data_urls(cell: object) -> None:
    frame = pd.DataFrame({"text": ["x"], "question": ["Q?"], "answer": ["a"], "options": ["a|b"], "image": [cell]})
    table = read(frame)
    for example in table.require():
        assert len(example.images) == (2 if isinstance(cell, list) else 1)
        for image in example.images:
            shown = Image.open(BytesIO(base64.b64decode(image.partition(",")[2])))
            assert (shown.size, shown.getpixel((1, 1))) == ((2, 2), 128)


def test_bytes_that_are_no_image_stay_text() -> None:
    frame = pd.DataFrame({"text": [b"hello"], "question": ["Q?"], "answer": ["a"], "options": ["a|b"]})
    assert read(frame).require()[0].state == "hello"


@pytest.mark.parametrize("header", ["image,label", "label,image"])
def test_a_table_of_images_and_labels_needs_no_text(header: str) -> None:
    cells = {"image": f'"{GOOD}"', "label": "cat"}
    rows = [",".join(cells[name] for name in header.split(",")), ",".join(cells[name] for name in header.split(","))]
    content = "\n".join([header, *rows, ",".join({"image": f'"{GOOD}"', "label": "dog"}[n] for n in header.split(","))])
    table = read(content.encode(), ReadOptions(mapping={"question": "=Which animal?"}))
    assert [(example.state, example.images, example.written_label) for example in table.require()] == [
        ("", (GOOD,), "cat"),
        ("", (GOOD,), "cat"),
        ("", (GOOD,), "dog"),
    ]


def test_beside_an_image_the_text_may_be_empty_and_without_one_it_may_not() -> None:
    content = f'text,question,answer,options,image\n,Q?,a,a|b,"{GOOD}"\n,Q?,a,a|b,\nx,Q?,b,a|b,\n'
    table = read(content.encode())
    assert [(example.state, len(example.images)) for example in table.examples] == [("", 1), ("x", 0)]
    assert [(one.row, one.message) for one in table.problems] == [(3, "the state is empty")]


def test_a_table_of_images_alone_tells_a_row_without_one() -> None:
    content = f'image,label\n"{GOOD}",cat\n,dog\n"{GOOD}",dog\n'
    table = read(content.encode(), ReadOptions(mapping={"question": "=Which animal?"}))
    assert [(one.row, one.column, one.message) for one in table.problems] == [(3, "image", "the state is empty")]


def test_a_table_of_addresses_alone_has_nothing_to_decide_about() -> None:
    content = b"image,label\nhttps://example.com/a.png,cat\n"
    table = read(content, ReadOptions(mapping={"question": "=Which animal?"}))
    assert not table.examples
    assert ["no column for the state" in one.message for one in table.problems] == [True]
    assert ["no image is sent" in one.message for one in table.warnings] == [True]


def test_labelled_json_of_images_needs_no_state() -> None:
    line = {"questions": {"q": ASKED}, "labels": {"q": "a"}, "images": [GOOD]}
    assert [example.state for example in read(json.dumps(line).encode()).require()] == [""]
    both = read(json.dumps(line | {"labels": {"q": "c"}, "images": ["cat.png"]}).encode())
    assert [one.column for one in both.problems] == ["images[0]", "labels.q"]
    without = read(json.dumps(line | {"images": []}).encode())
    assert [one.message for one in without.problems] == ["the state is empty"]


def test_images_alone_are_labelled(tmp_path: Path) -> None:
    file = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"image": [{"bytes": png(2, 2), "path": "cat.png"}, None]}), file)
    records = list(open_stream(file, StreamOptions()).records)
    assert [(one.state, one.images, one.problem) for one in records] == [
        ("", (GOOD,), None),
        (None, (), "the state is empty"),
    ]
