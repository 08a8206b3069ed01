"""A run as one file: out of one store and into another, and what is refused."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from clef.engines.engine import EngineFacts
from clef.errors import InputError
from clef.runs.database import Database
from clef.runs.queue import RunQueue
from clef.runs.store import NewRun, Store
from tests.fakes.scripted import ScriptedEngine, examples

pytestmark = pytest.mark.anyio


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    opened = Store(Database(tmp_path / "one" / "clef.db"))
    yield opened
    await opened.close()


async def test_a_run_moves_whole_from_one_store_to_another(store: Store, tmp_path: Path) -> None:
    queue = RunQueue(store, ScriptedEngine(), 4)
    await queue.start()
    await queue.submit(NewRun("other.csv", EngineFacts("upstream", "ready", "fake")), examples(3))
    run = await queue.submit(NewRun("table.csv", EngineFacts("upstream", "ready", "fake"), note="May"), examples(20))
    async for _ in queue.events(run.id):
        pass
    await queue.close()
    await store.export(run.id, tmp_path / "run.clef")

    other = Store(Database(tmp_path / "two" / "clef.db"))
    taken = await other.take_in(tmp_path / "run.clef")
    assert (taken.name, taken.note, taken.done, taken.state) == ("table.csv", "May", 20, "finished")
    assert await other.over(taken.id, list) == await store.over(run.id, list)
    again = await other.take_in(tmp_path / "run.clef")
    assert again.id != taken.id
    assert len(await other.runs()) == 2
    await other.close()


async def test_a_file_that_holds_no_run_is_refused_in_words(store: Store, tmp_path: Path) -> None:
    text, empty, other = tmp_path / "text", tmp_path / "empty", tmp_path / "other"
    text.write_text("hello, this is no database at all")
    empty.touch()
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("create table things (id integer)")
    for path in (text, empty, other, tmp_path / "missing"):
        with pytest.raises(InputError, match="no run"):
            await store.take_in(path)
    assert await store.runs() == []


async def test_a_file_with_a_trigger_in_it_is_refused(store: Store, tmp_path: Path) -> None:
    run = await store.create(NewRun("t", EngineFacts("builtin", "ready")), examples(1))
    await store.export(run.id, tmp_path / "run.clef")
    with closing(sqlite3.connect(tmp_path / "run.clef")) as connection:
        connection.execute("create view trap as select * from runs")
    with pytest.raises(InputError, match="no single run"):
        await store.take_in(tmp_path / "run.clef")


async def test_a_file_of_an_older_clef_gets_what_it_lacks(store: Store, tmp_path: Path) -> None:
    run = await store.create(NewRun("t", EngineFacts("builtin", "ready")), examples(2))
    await store.export(run.id, tmp_path / "old.clef")
    with closing(sqlite3.connect(tmp_path / "old.clef")) as connection:
        connection.execute("alter table runs drop column revision")
        connection.commit()
    assert (await store.take_in(tmp_path / "old.clef")).revision == 0
