"""Runs that live through a closed tab, an engine that dies and a process that is killed."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from clef.decisions.examples import Example, Reply, Request
from clef.decisions.questions import Choice, Json
from clef.engines.engine import EngineFacts
from clef.errors import InputError, Refused, StoreError, Unavailable
from clef.runs import execute as executing
from clef.runs import queue as queueing
from clef.runs.database import Database
from clef.runs.queue import Event, RunQueue
from clef.runs.store import NewRun, Store, StoredRun
from tests.fakes.scripted import ScriptedEngine, examples

pytestmark = pytest.mark.anyio
FACTS = EngineFacts("upstream", "ready", "fake")
NEW = NewRun("table.csv", FACTS)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    opened = Store(Database(tmp_path / "clef.db"))
    yield opened
    await opened.close()


async def to_the_end(queue: RunQueue, run: StoredRun) -> list[Event]:
    async with asyncio.timeout(20):
        return [event async for event in queue.events(run.id)]


async def run_all(store: Store, engine: ScriptedEngine, count: int = 10, **changes: object) -> StoredRun:
    queue = RunQueue(store, engine, 4)
    await queue.start()
    run = await queue.submit(replace(NEW, **changes), examples(count))  # type: ignore[arg-type]
    await to_the_end(queue, run)
    await queue.close()
    return await store.get(run.id)


async def test_every_row_is_in_the_store_in_the_tables_order(store: Store) -> None:
    run = await run_all(store, ScriptedEngine(), 300)
    assert (run.state, run.done, run.rows, run.failed) == ("finished", 300, 300, 0)
    assert [outcome.example.row for outcome in await store.over(run.id, list)] == list(range(2, 302))


async def test_what_is_read_back_is_what_was_written(store: Store) -> None:
    question = Choice("Où?", {"thé": {"why": "leaf"}, "eau": None})
    example = Example({"text": "é"}, question, 1, "EAU", 7, 9, "Où?", {"id": "x-1"}, ("data:image/png;base64,AA",))
    engine = ScriptedEngine()
    queue = RunQueue(store, engine, 1)
    run = await store.create(NEW, [example])
    assert await store.unanswered(run.id) == [0]
    assert await store.examples(run.id, [0]) == {0: example}
    await queue.close()


async def test_rows_of_one_state_are_asked_once_however_far_apart(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clef.runs.job.PART", 2)
    states: list[Json] = [{"a": 1, "b": 2}, "x", "y", {"b": 2, "a": 1}, "z", "x"]
    rows = [replace(one, state=state) for one, state in zip(examples(6), states, strict=True)]
    engine = ScriptedEngine()
    queue = RunQueue(store, engine, 2)
    await queue.start()
    run = await queue.submit(NEW, rows)
    await to_the_end(queue, run)
    await queue.close()
    assert len(engine.calls) == 4
    assert (await store.get(run.id)).done == 6


async def test_progress_counts_finished_rows_and_ends_at_the_total(store: Store) -> None:
    queue = RunQueue(store, ScriptedEngine(), 4)
    await queue.start()
    run = await queue.submit(NEW, examples(50))
    events = await to_the_end(queue, run)
    done = [event.done for event in events]
    assert done == sorted(done)
    assert (done[-1], events[-1].rows, events[-1].state) == (50, 50, "finished")
    await queue.close()


async def test_who_follows_a_fast_run_is_told_now_and_then_and_of_its_last_row_however_long_the_next_takes(
    store: Store,
) -> None:
    async def stop_at_row_900(state: str) -> None:
        if int(state.split()[1]) >= 900:
            await asyncio.Event().wait()

    queue = RunQueue(store, ScriptedEngine(stop_at_row_900), 4)
    await queue.start()
    run = await queue.submit(NEW, examples(1000))
    told = 0
    async with asyncio.timeout(20):
        async for event in queue.events(run.id):
            told += 1
            if event.done == 900:
                break
    assert told < 300
    await queue.close()


async def test_what_came_back_is_written_though_the_next_row_takes_for_ever(store: Store) -> None:
    async def stop_at_row_5(state: str) -> None:
        if state == "row 5":
            await asyncio.Event().wait()

    queue = RunQueue(store, ScriptedEngine(stop_at_row_5), 1)
    await queue.start()
    run = await queue.submit(NEW, examples(10))
    async with asyncio.timeout(20):
        while (await store.get(run.id)).done < 5:
            await asyncio.sleep(0.01)
    await queue.close()


async def test_what_comes_just_after_a_late_write_is_written_too(store: Store) -> None:
    async def stop_after_the_late_write(state: str) -> None:
        if state == "row 2":
            while (await store.get(run.id)).done < 2:
                await asyncio.sleep(0.001)
        if state == "row 3":
            await asyncio.Event().wait()

    queue = RunQueue(store, ScriptedEngine(stop_after_the_late_write), 1)
    run = await queue.submit(NEW, examples(10))
    await queue.start()
    async with asyncio.timeout(20):
        while (await store.get(run.id)).done < 3:
            await asyncio.sleep(0.01)
    await queue.close()


async def test_a_late_write_that_fails_ends_the_run_with_its_reason(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = asyncio.Event()

    async def wait_after_the_first(state: str) -> None:
        if state != "row 0":
            await failed.wait()

    async def full(*_: object) -> None:
        failed.set()
        raise StoreError("the disk is full")

    monkeypatch.setattr(store, "add", full)
    queue = RunQueue(store, ScriptedEngine(wait_after_the_first), 1)
    await queue.start()
    run = await queue.submit(NEW, examples(10))
    last = (await to_the_end(queue, run))[-1]
    await queue.close()
    assert (last.state, last.reason) == ("failed", "the disk is full")


async def test_runs_wait_in_line(store: Store) -> None:
    release = asyncio.Event()

    async def wait(state: str) -> None:
        await release.wait()

    queue = RunQueue(store, ScriptedEngine(wait), 4)
    await queue.start()
    first = await queue.submit(NEW, examples(3))
    second = await queue.submit(NEW, examples(3))
    async with asyncio.timeout(5):
        while (await store.get(first.id)).state != "running":
            await asyncio.sleep(0.01)
    assert (await store.get(second.id)).state == "queued"
    release.set()
    await to_the_end(queue, second)
    assert (await store.get(first.id)).state == "finished"
    await queue.close()


async def test_a_process_that_ends_in_mid_run_goes_on_with_each_row_once(tmp_path: Path) -> None:
    async def stop_at_row_50(state: str) -> None:
        if int(state.split()[1]) >= 50:
            await asyncio.Event().wait()

    first = Store(Database(tmp_path / "clef.db"))
    queue = RunQueue(first, ScriptedEngine(stop_at_row_50), 4)
    await queue.start()
    run = await queue.submit(NEW, examples(100))
    async for event in queue.events(run.id):
        if event.done == 50:
            break
    await queue.close()
    await first.close()

    second = Store(Database(tmp_path / "clef.db"))
    engine = ScriptedEngine()
    queue = RunQueue(second, engine, 4)
    await queue.start()
    await to_the_end(queue, run)
    found = await second.get(run.id)
    assert (found.state, found.done) == ("finished", 100)
    assert [outcome.example.row for outcome in await second.over(run.id, list)] == list(range(2, 102))
    assert sorted(int(state.split()[1]) for state in engine.calls) == list(range(50, 100))
    await queue.close()
    await second.close()


async def test_identical_requests_are_sent_once(store: Store) -> None:
    engine = ScriptedEngine()
    queue = RunQueue(store, engine, 4)
    await queue.start()
    run = await queue.submit(NEW, examples(5) * 3)
    await to_the_end(queue, run)
    assert len(engine.calls) == 5
    assert (await store.get(run.id)).done == 15
    await queue.close()


async def test_answers_are_used_again_by_the_next_run_unless_switched_off(store: Store) -> None:
    await run_all(store, ScriptedEngine())
    engine = ScriptedEngine()
    again = await run_all(store, engine)
    assert (engine.calls, again.cached, again.done) == ([], 10, 10)
    assert all(outcome.correct for outcome in await store.over(again.id, list))
    off = await run_all(store, engine, use_cache=False)
    assert (len(engine.calls), off.cached) == (10, 0)


async def test_another_models_answers_are_not_used(store: Store) -> None:
    class Other(ScriptedEngine):
        async def facts(self) -> EngineFacts:
            return EngineFacts("upstream", "ready", "other")

    await run_all(store, ScriptedEngine())
    engine = Other()
    await run_all(store, engine)
    assert len(engine.calls) == 10


async def test_joint_sends_the_questions_of_a_state_together_and_says_so(store: Store) -> None:
    class Counting(ScriptedEngine):
        asked: list[int]

        async def decide(self, request: Request) -> Reply:
            self.asked.append(len(request.questions))
            reply = await super().decide(request)
            return Reply(reply.answers * len(request.questions), reply.model)

    engine = Counting()
    engine.asked = []
    other = Choice("Which?", ["yes", "no"])
    rows = [row for example in examples(4) for row in (example, replace(example, question=other))]
    queue = RunQueue(store, engine, 4)
    await queue.start()
    run = await queue.submit(replace(NEW, shape="joint"), rows)
    await to_the_end(queue, run)
    assert engine.asked == [2, 2, 2, 2]
    assert {outcome.shape for outcome in await store.over(run.id, list)} == {"joint"}
    await queue.close()


async def test_a_stopped_run_keeps_what_came_and_resumes_with_the_rest(store: Store) -> None:
    async def stop_at_row_5(state: str) -> None:
        if not released and int(state.split()[1]) >= 5:
            await asyncio.Event().wait()

    released: list[bool] = []
    engine = ScriptedEngine(stop_at_row_5)
    queue = RunQueue(store, engine, 1)
    await queue.start()
    run = await queue.submit(NEW, examples(10))
    async for event in queue.events(run.id):
        if event.done == 5:
            await queue.stop(run.id)
    stopped = await store.get(run.id)
    assert (stopped.state, stopped.done) == ("stopped", 5)
    assert engine.in_flight == 0
    released.append(True)
    await queue.resume(run.id)
    await to_the_end(queue, run)
    assert (await store.get(run.id)).done == 10
    with pytest.raises(InputError, match="each of its 10 rows"):
        await queue.resume(run.id)
    await queue.close()


async def test_failed_rows_are_asked_again_on_request(store: Store) -> None:
    broken = {"row 3"}

    async def fail(state: str) -> None:
        if state in broken:
            raise Refused("no")

    engine = ScriptedEngine(fail)
    queue = RunQueue(store, engine, 4)
    await queue.start()
    run = await queue.submit(NEW, examples(10))
    await to_the_end(queue, run)
    assert (await store.get(run.id)).failed == 1
    broken.clear()
    assert await queue.retry(run.id) == 1
    await to_the_end(queue, run)
    found = await store.get(run.id)
    assert (found.state, found.done, found.failed) == ("finished", 10, 0)
    assert engine.calls.count("row 3") == 2
    await queue.close()


async def test_an_engine_that_goes_away_pauses_the_run_and_it_goes_on(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executing, "PAUSE_S", 0.001)
    monkeypatch.setattr(queueing, "WAIT_S", 0.01)
    away = {"now": False}

    class Flaky(ScriptedEngine):
        async def facts(self) -> EngineFacts:
            return EngineFacts("upstream", "off" if away["now"] else "ready", "fake", message="it is away")

    async def gone(state: str) -> None:
        if state == "row 4" and not seen:
            seen.append(state)
            away["now"] = True
        if away["now"]:
            raise Unavailable("nothing answers", phase="off")

    seen: list[str] = []
    queue = RunQueue(store, Flaky(gone), 1)
    await queue.start()
    run = await queue.submit(NEW, examples(10))
    states = []
    async with asyncio.timeout(10):
        async for event in queue.events(run.id):
            states.append(event.state)
            if event.state == "paused":
                away["now"] = False
    assert "paused" in states
    assert states[-1] == "finished"
    assert (await store.get(run.id)).done == 10
    await queue.close()


async def test_another_model_does_not_go_on_with_a_run(store: Store) -> None:
    class Other(ScriptedEngine):
        async def facts(self) -> EngineFacts:
            return EngineFacts("upstream", "ready", "other")

    async def stop_at_row_5(state: str) -> None:
        if int(state.split()[1]) >= 5:
            await asyncio.Event().wait()

    queue = RunQueue(store, ScriptedEngine(stop_at_row_5), 1)
    await queue.start()
    run = await queue.submit(NEW, examples(10))
    async for event in queue.events(run.id):
        if event.done == 5:
            break
    await queue.close()
    engine = Other()
    queue = RunQueue(store, engine, 1)
    await queue.start()
    await to_the_end(queue, run)
    found = await store.get(run.id)
    assert (found.state, engine.calls) == ("stopped", [])
    assert "other" in str(found.reason)
    await queue.close()


async def test_a_deleted_run_can_be_brought_back_for_a_day(store: Store) -> None:
    from datetime import UTC, datetime, timedelta

    run = await run_all(store, ScriptedEngine())
    await store.delete(run.id)
    assert await store.runs() == []
    await store.purge(datetime.now(UTC) + timedelta(hours=23))
    await store.restore(run.id)
    assert [found.id for found in await store.runs()] == [run.id]
    await store.delete(run.id)
    await store.purge(datetime.now(UTC) + timedelta(hours=25))
    with pytest.raises(Exception, match="no run"):
        await store.get(run.id)


async def test_who_does_not_read_holds_few_events_and_no_outcomes_and_still_hears_of_the_end(store: Store) -> None:
    queue = RunQueue(store, ScriptedEngine(), 4)
    run = await store.create(NEW, examples(300))
    with queue.follow(run.id, latest=True) as asleep, queue.follow(run.id) as awake:
        await queue.start()
        await to_the_end(queue, run)
        assert sum(len(awake.get_nowait().outcomes) for _ in range(awake.qsize())) == 300
        assert asleep.qsize() <= 3
        held = [asleep.get_nowait() for _ in range(asleep.qsize())]
    assert [event.state for event in held] == ["queued", "running", "finished"]
    assert (held[-1].done, sum(len(event.outcomes) for event in held)) == (300, 0)
    await queue.close()


async def test_a_run_that_pauses_for_ever_does_not_fill_the_memory_of_who_does_not_read(store: Store) -> None:
    queue = RunQueue(store, ScriptedEngine(), 1)
    run = await store.create(NEW, examples(1))
    with queue.follow(run.id, latest=True) as asleep:
        for number in range(queueing.UNREAD * 2):
            asleep.put_nowait(Event(("paused", "running")[number % 2], 0, 1, 0, 0))
        asleep.put_nowait(Event("finished", 1, 1, 0, 0))
        held = [asleep.get_nowait() for _ in range(asleep.qsize())]
    assert len(held) == queueing.UNREAD
    assert held[-1].ended
