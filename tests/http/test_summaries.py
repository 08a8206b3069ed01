"""The numbers on the page of a run that is under way: not counted at every look, and never of far fewer rows."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest

from clef.engines.engine import EngineFacts
from clef.runs.store import Store, StoredRun
from clef.web import run_view
from clef.web.run_view import Summaries

COUNTING_S = 1.0
RUN = StoredRun(
    id="r",
    name="",
    note="",
    created=datetime(2026, 12, 1, tzinfo=UTC),
    state="running",
    reason=None,
    shape="isolated",
    engine=EngineFacts("builtin", "ready"),
    identity="",
    facts={},
    rows=10_000,
    use_cache=False,
    done=0,
    failed=0,
    cached=0,
    revision=1,
    deleted=None,
)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


async def nothing_kept(*_: object) -> None:
    return None


STORE = cast(Store, SimpleNamespace(measures=SimpleNamespace(get=nothing_kept)))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()

    async def counted(_: Store, run: StoredRun) -> Mapping[str, Any]:
        found.now += COUNTING_S
        return {"answered": run.done}

    monkeypatch.setattr(run_view, "summary_of", counted)
    return found


def answered(summaries: Summaries, *runs: StoredRun) -> list[Any]:
    async def look() -> list[Any]:
        return [((await summaries.of(STORE, run)) or {}).get("answered") for run in runs]

    return asyncio.run(look())


def test_the_first_look_comes_before_the_first_row_and_does_not_stay(clock: Clock) -> None:
    assert answered(Summaries(clock), RUN, replace(RUN, done=3), replace(RUN, done=40)) == [0, 3, 40]


def test_numbers_of_nearly_as_many_rows_are_used_again_for_a_while(clock: Clock) -> None:
    summaries = Summaries(clock)
    looks = [replace(RUN, done=done) for done in (1000, 1500, 2000, 2001)]
    assert answered(summaries, *looks) == [1000, 1000, 1000, 2001]
    clock.now += run_view.RESTS * COUNTING_S
    assert answered(summaries, replace(RUN, done=2100)) == [2100]


def test_what_has_ended_is_counted_as_it_ended(clock: Clock) -> None:
    ended = replace(RUN, done=1100, state="finished", revision=2)
    assert answered(Summaries(clock), replace(RUN, done=1000), ended, ended) == [1000, 1100, 1100]
