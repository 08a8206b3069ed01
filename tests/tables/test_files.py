"""Archives and folders: their one table, the images it names, and images in folders that are named by their labels."""

import io
import zipfile
from pathlib import Path
from typing import Any

import pytest

from clef.decisions.questions import Noul
from clef.errors import InputError, TooLarge
from clef.tables import ReadOptions, Table, files, read
from tests.fakes.pictures import png, url

CAT, DOG = png(2, 2), png(3, 2)
NAMES = b"file_name,label\nimg/a.png,cat\nimg/b.png,dog\n"
ANIMAL = {"question": "=Which animal?"}


def packed(content: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in content.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def put(folder: Path, content: dict[str, bytes]) -> Path:
    for name, data in content.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


def look(source: Any, **options: Any) -> Table:
    return read(source, ReadOptions(mapping=ANIMAL, **options))


def seen(table: Table) -> list[tuple[tuple[str, ...], str, str]]:
    return [(one.images, one.written_label, one.extra.get("file", "")) for one in table.examples]


BOTH = [((url(CAT),), "cat", "img/a.png"), ((url(DOG),), "dog", "img/b.png")]


@pytest.mark.parametrize("way", ["archive", "archive in a folder", "packed on a Mac", "folder", "table beside"])
def test_a_table_names_its_images(way: str, tmp_path: Path) -> None:
    content = {"labels.csv": NAMES, "img/a.png": CAT, "img/b.png": DOG}
    if way == "archive in a folder":
        content = {f"pets/{name}": data for name, data in content.items()}
    if way == "packed on a Mac":
        content |= {"__MACOSX/._labels.csv": b"\0", "img/.DS_Store": b"\0"}
    source: Any = packed(content) if way[0] == "a" or "packed" in way else put(tmp_path, content)
    table = look(source / "labels.csv" if way == "table beside" else source, beside=way == "table beside")
    assert table.problems == ()
    assert seen(table) == BOTH
    assert table.facts.roles["images"] == "file_name"


def test_images_in_folders_are_labelled_by_them(tmp_path: Path) -> None:
    content = {"train/cat/1.png": CAT, "train/dog/1.png": DOG, "train/dog/notes.txt": b"x", "train/dog/2.webp": b"RIFF"}
    for source in (packed(content), put(tmp_path, content)):
        table = look(source)
        names = [("train/cat/1.png", "cat"), ("train/dog/1.png", "dog")]
        assert [(file, label) for _, label, file in seen(table)] == names
        assert [(one.row, one.column, one.message) for one in table.problems] == [
            (4, "image", '"train/dog/2.webp": WebP is not read')
        ]
        assert (table.facts.read, table.facts.used, table.facts.skipped) == (3, 2, 1)


def test_images_without_folders_are_a_table_without_labels(tmp_path: Path) -> None:
    source = packed({"1.png": CAT, "2.png": DOG})
    assert [problem.code for problem in look(source).problems] == ["missing_column"]
    table = read(source, ReadOptions(labelled=False, questions={"q": Noul("A cat?")}))
    assert [(one.images, one.label) for one in table.examples] == [((url(CAT),), None), ((url(DOG),), None)]


def test_every_image_that_is_not_there_is_named(tmp_path: Path) -> None:
    lines = b"image,label\nx/a.png,cat\n../../etc/passwd,cat\n,dog\nb.png,dog\na.png|b.png,dog\ndeep.png,dog\n"
    content = {"t/labels.csv": lines.replace(b"|", b"; "), "x/a.png": CAT, "y/a.png": CAT, "z/deep.png": DOG}
    table = look(packed(content))
    assert {(one.row, one.message) for one in table.problems} == {
        (3, 'no file "../../etc/passwd" in the archive'),
        (4, "the state is empty"),
        (5, 'no file "b.png" in the archive'),
        (6, 'no file "a.png; b.png" in the archive'),
    }
    assert [file for _, _, file in seen(table)] == ["x/a.png", "deep.png"]  # a bare name that one file has leads to it
    table = look(packed({"t.csv": b"image,label\na.png,cat\nx/a.png,dog\n", "x/a.png": CAT, "y/a.png": CAT}))
    assert table.problems[0].hint == 'it may be "x/a.png" or "y/a.png"'


def test_several_images_of_a_row_and_data_urls_beside_names() -> None:
    several = f'image,label\n"[""a.png"", ""{url(DOG)}""]",cat\n"a.png\nb.png",dog\n'
    table = look(packed({"t.csv": several.encode(), "a.png": CAT, "b.png": DOG}))
    assert [one.images for one in table.examples] == [(url(CAT), url(DOG))] * 2


def test_objects_name_images_too() -> None:
    line = b'{"state": "x", "questions": {"q": {"type": "noul", "instructions": "A cat?"}}, "labels": {"q": true}, '
    lines = line + b'"images": ["a.png"]}\n' + line + b'"images": ["a.png", "none.png"]}\n'
    table = read(packed({"t.jsonl": lines, "a.png": CAT}))
    assert [one.images for one in table.examples] == [(url(CAT),)]
    assert [(one.row, one.message) for one in table.problems] == [(2, 'no file "none.png" in the archive')]
    plain = b'{"file_name": "a.png", "label": "cat"}\n{"file_name": "b.png", "label": "dog"}\n'
    assert [one.images for one in look(packed({"m.jsonl": plain, "a.png": CAT, "b.png": DOG})).examples] == [
        (url(CAT),),
        (url(DOG),),
    ]


def test_a_table_that_was_sent_names_no_files_of_this_machine(tmp_path: Path) -> None:
    put(tmp_path, {"labels.csv": b"text,image,label\nx,a.png,cat\ny,b.png,dog\n", "a.png": CAT, "b.png": DOG})
    table = look(tmp_path / "labels.csv")
    assert [one.images for one in table.examples] == [(), ()]
    assert "no image as a data URL" in table.warnings[0].message


def test_a_name_leads_out_of_no_folder(tmp_path: Path) -> None:
    outside = put(tmp_path / "outside", {"secret.png": CAT})
    inside = put(tmp_path / "inside", {"t.csv": b"image,label\nlink.png,cat\n../outside/secret.png,cat\na.png,dog\n"})
    put(inside, {"a.png": DOG})
    (inside / "link.png").symlink_to(outside / "secret.png")
    for table in (look(inside), look(inside / "t.csv", beside=True)):
        assert [file for _, _, file in seen(table)] == ["a.png"]
        assert len(table.problems) == 2


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"a.csv": NAMES, "b/c.csv": NAMES}, '2 tables: "a.csv", "b/c.csv"'),
        ({"readme.txt": b"x"}, "no table and no images"),
        ({}, "no table and no images"),
        ({"a.xlsx": packed({"x.csv": NAMES})}, '"a.xlsx" is an archive'),
    ],
)
def test_an_archive_that_is_no_table_says_why(content: dict[str, bytes], said: str) -> None:
    (problem,) = look(packed(content)).problems
    assert said in problem.message


def test_a_locked_or_damaged_archive_says_so() -> None:
    whole = packed({"t.csv": NAMES, "img/a.png": CAT * 40, "img/b.png": DOG})
    locked = bytearray(whole)
    for at in (whole.index(b"PK\x01\x02") + 8, 6):
        locked[at] |= 1
    assert "locked with a password" in look(bytes(locked)).problems[0].message
    start = whole.index(b"img/a.png") + len("img/a.png")
    damaged = whole[:start] + b"\xff" * 20 + whole[start + 20 :]
    table = look(damaged)
    assert [(one.row, "cannot be unpacked" in one.message) for one in table.problems] == [(2, True)]
    assert len(table.examples) == 1
    assert "cannot be read" in look(whole[: len(whole) // 2]).problems[0].message


def test_what_unpacks_to_too_much_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_IMAGE_BYTES", 1000)
    large = png(2, 2) + b"\0" * 5000
    table = look(packed({"t.csv": NAMES, "img/a.png": large, "img/b.png": DOG}))
    assert [(one.row, one.message) for one in table.problems] == [(2, '"img/a.png" has more than 0.001 MB')]
    monkeypatch.setattr("clef.tables.formats.MAX_TABLE_BYTES", 10)
    with pytest.raises(TooLarge, match=r"t\.csv"):
        look(packed({"t.csv": NAMES}))


def test_a_book_is_no_archive(tmp_path: Path) -> None:
    assert not files.is_book(packed({"t.csv": NAMES}))
    assert files.is_book(packed({"[Content_Types].xml": b"", "xl/workbook.xml": b""}))
    assert files.is_book(packed({"mimetype": b"application/vnd.oasis.opendocument.spreadsheet"}))
    with pytest.raises(InputError, match="workbook"):
        look(packed({"[Content_Types].xml": b""})).require()


def test_a_name_that_no_system_knows_is_not_there(tmp_path: Path) -> None:
    lines = b"image,label\n" + b"x" * 5000 + b".png,cat\na\tb\x7f.png,cat\na.png,dog\n"
    put(tmp_path, {"t.csv": lines, "a.png": DOG})
    assert len(look(tmp_path / "t.csv", beside=True).problems) == 2
