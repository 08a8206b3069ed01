"""Policies by name, and numbers that are kept only while they are fresh."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from clef.decisions.examples import Failure, Outcome
from clef.engines.engine import EngineFacts
from clef.errors import InputError, NotFound, Taken
from clef.runs.database import Database
from clef.runs.store import NewRun, Numbered, Store, StoredRun
from tests.fakes.scripted import examples

pytestmark = pytest.mark.anyio


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    opened = Store(Database(tmp_path / "clef.db"))
    yield opened
    await opened.close()


@pytest.fixture
async def run(store: Store) -> StoredRun:
    return await store.create(NewRun("t", EngineFacts("builtin", "ready")), examples(2))


async def add(store: Store, run: StoredRun, position: int) -> StoredRun:
    outcome = Outcome(examples(2)[position], None, Failure("too_long", "too long"))
    await store.add(run.id, [Numbered(position, outcome)], {})
    return await store.get(run.id)


async def test_a_policy_is_kept_until_it_is_deleted(store: Store, tmp_path: Path) -> None:
    await store.policies.save("zweite Ü 2", {"version": 1}, run="abc")
    await store.policies.save("first", {"version": 1, "rule": {"accuracy": 0.9}})
    await store.close()
    again = Store(Database(tmp_path / "clef.db"))
    assert [(one.name, one.run) for one in await again.policies.listed()] == [("first", None), ("zweite Ü 2", "abc")]
    assert (await again.policies.get("first")).body == {"version": 1, "rule": {"accuracy": 0.9}}
    await again.policies.delete("first")
    for lost in (again.policies.get("first"), again.policies.delete("first")):
        with pytest.raises(NotFound, match="first"):
            await lost
    await again.close()


async def test_a_name_in_use_is_not_overwritten_unasked(store: Store) -> None:
    await store.policies.save("p", {"n": 1})
    with pytest.raises(Taken, match="p"):
        await store.policies.save("p", {"n": 2})
    assert (await store.policies.get("p")).body == {"n": 1}
    await store.policies.save("p", {"n": 2}, replace=True)
    assert (await store.policies.get("p")).body == {"n": 2}


@pytest.mark.parametrize("name", ["", " ", " p", "a/b", "a\\b", "a\nb", "..", "x" * 101])
async def test_a_name_that_no_address_can_hold_is_refused(store: Store, name: str) -> None:
    with pytest.raises(InputError):
        await store.policies.save(name, {})
    assert await store.policies.listed() == []


async def test_numbers_are_kept_until_an_outcome_comes_or_goes(store: Store, run: StoredRun) -> None:
    run = await add(store, run, 0)
    await store.measures.save(run.id, "summary", run.revision, {"rows": 1, "accuracy": 0.5})
    assert await store.measures.get(run.id, "summary") == {"rows": 1, "accuracy": 0.5}
    assert (await store.measures.headlines([run.id, "none"]))[run.id]["accuracy"] == 0.5
    after = await add(store, run, 1)
    assert await store.measures.get(run.id, "summary") is None
    assert await store.measures.headlines([run.id]) == {}
    await store.measures.save(run.id, "summary", run.revision, {"rows": 1})
    assert await store.measures.get(run.id, "summary") is None, "numbers of an earlier state are never fresh"
    await store.measures.save(run.id, "summary", after.revision, {"rows": 2})
    await store.forget_failures(run.id)
    assert await store.measures.get(run.id, "summary") is None


async def test_numbers_of_other_formulas_are_measured_again(
    store: Store, run: StoredRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.measures.save(run.id, "risk", run.revision, {"n": 1})
    monkeypatch.setattr("clef.runs.measures.MADE_BY", "0.0.0/0")
    assert await store.measures.get(run.id, "risk") is None


async def test_the_oldest_numbers_go_and_the_summary_stays(
    store: Store, run: StoredRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clef.runs.measures.KEPT", 3)
    for name in ("summary", "a", "b", "c", "d"):
        await store.measures.save(run.id, name, run.revision, {})
    kept = [name for name in ("summary", "a", "b", "c", "d") if await store.measures.get(run.id, name) is not None]
    assert kept == ["summary", "b", "c", "d"]
