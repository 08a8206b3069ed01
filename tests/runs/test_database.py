"""The file under the runs: one owner, up to date, and every trouble in words."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from clef.errors import StoreError
from clef.runs.database import Database

pytestmark = pytest.mark.anyio


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    opened = Database(tmp_path / "clef.db")
    yield opened
    await opened.close()


def count(connection: sqlite3.Connection) -> int:
    return int(connection.execute("select count(*) from questions").fetchone()[0])


def add(connection: sqlite3.Connection, body: str = "a") -> None:
    connection.execute("insert into questions (body) values (?)", (body,))


async def test_a_write_that_fails_leaves_nothing(database: Database) -> None:
    def half(connection: sqlite3.Connection) -> None:
        add(connection)
        add(connection)  # the same body again

    with pytest.raises(StoreError):
        await database.write(half)
    assert await database.read(count) == 0


async def test_a_second_clef_on_the_same_folder_is_told_so(database: Database) -> None:
    with pytest.raises(StoreError, match="another clef") as caught:
        Database(database.path)
    assert "CLEF_DATA_DIR" in str(caught.value.hint)


async def test_a_full_disk_is_said_and_what_was_written_stays(database: Database) -> None:
    await database.write(add)

    def fill(connection: sqlite3.Connection) -> None:
        connection.execute("pragma max_page_count = 1")
        for number in range(10_000):
            add(connection, "x" * 4000 + str(number))

    with pytest.raises(StoreError, match="full"):
        await database.write(fill)
    assert await database.read(count) == 1


async def test_a_file_held_by_another_program_is_said(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clef.runs.database.BUSY_MS", 50)
    with closing(sqlite3.connect(database.path, isolation_level=None)) as other:
        other.execute("begin immediate")
        with pytest.raises(StoreError, match="another program holds"):
            await database.write(add)


async def test_a_damaged_file_is_said(tmp_path: Path) -> None:
    (tmp_path / "clef.db").write_bytes(b"this is not a database" * 100)
    with pytest.raises(StoreError, match="not a database"):
        Database(tmp_path / "clef.db")


async def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="cannot be kept"):
        Database(tmp_path / "file" / "clef.db")


async def test_a_file_of_a_newer_clef_is_left_alone(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "clef.db")) as connection:
        connection.execute("pragma user_version = 999")
    with pytest.raises(StoreError, match="newer clef"):
        Database(tmp_path / "clef.db")
