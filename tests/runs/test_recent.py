"""Runs in memory: their state, their order, and how many are kept."""

import pytest

from clef.engines.engine import EngineFacts
from clef.errors import NotFound, Unavailable
from clef.runs.recent import RecentRuns, Run
from tests.fakes.scripted import ScriptedEngine, examples

pytestmark = pytest.mark.anyio
FACTS = EngineFacts("upstream", "ready", "fake")


def new(runs: RecentRuns, count: int = 10) -> Run:
    return runs.create("table.csv", examples(count), FACTS, {})


async def test_a_run_that_comes_to_its_end_is_finished_and_in_table_order() -> None:
    run = new(RecentRuns())
    async for _ in run.execute(ScriptedEngine(), 4):
        pass
    assert run.state == "finished"
    assert [outcome.example.row for outcome in run.in_table_order] == list(range(2, 12))


async def test_a_run_that_is_left_is_stopped_and_keeps_what_came() -> None:
    run = new(RecentRuns())
    source = run.execute(ScriptedEngine(), 2)
    await anext(source)
    await source.aclose()
    assert run.state == "stopped"
    assert len(run.outcomes) == 1


async def test_a_run_whose_engine_goes_away_is_failed_and_says_why() -> None:
    async def failed(state: str) -> None:
        raise Unavailable("gave up", hint="read the log", phase="failed")

    run = new(RecentRuns())
    with pytest.raises(Unavailable):
        async for _ in run.execute(ScriptedEngine(failed), 2):
            pass
    assert (run.state, run.reason) == ("failed", "gave up (read the log)")


def test_the_oldest_run_makes_room() -> None:
    runs = RecentRuns(kept=2)
    first, second, third = new(runs), new(runs), new(runs)
    assert runs.newest_first() == [third, second]
    with pytest.raises(NotFound):
        runs.get(first.id)
