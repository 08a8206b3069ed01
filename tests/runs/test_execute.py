"""Running examples through an engine: how many at once, what is tried again, and what stops it."""

import asyncio

import pytest

from clef.decisions.examples import Outcome
from clef.errors import BadReply, Barred, Crashed, Refused, TimedOut, TooLong, Unavailable
from clef.runs import execute as executing
from clef.runs.execute import outcomes as outcomes_of
from tests.fakes.scripted import ScriptedEngine, examples

pytestmark = pytest.mark.anyio


async def outcomes(engine: ScriptedEngine, count: int = 10, concurrency: int = 4) -> list[Outcome]:
    return [outcome async for _, outcome in outcomes_of(examples(count), engine, concurrency)]


async def test_every_row_comes_back_once() -> None:
    engine = ScriptedEngine()
    found = await outcomes(engine, 100)
    assert sorted(outcome.example.row for outcome in found) == list(range(2, 102))
    assert len(engine.calls) == 100
    assert all(outcome.correct for outcome in found)


async def test_never_more_in_flight_than_asked() -> None:
    async def pause(state: str) -> None:
        await asyncio.sleep(0)

    engine = ScriptedEngine(pause)
    await outcomes(engine, 50, concurrency=3)
    assert engine.most_in_flight == 3


async def test_leaving_early_sends_nothing_more_and_cancels_what_is_in_flight() -> None:
    async def pause(state: str) -> None:
        if state not in ("row 0", "row 1"):
            await asyncio.Event().wait()

    engine = ScriptedEngine(pause)
    source = outcomes_of(examples(100), engine, 4)
    await anext(source)
    await source.aclose()
    assert engine.in_flight == 0
    assert len(engine.calls) <= 6


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (TooLong(600, 512), "too_long"),
        (Refused("no"), "engine_refused"),
        (BadReply("NaN"), "bad_reply"),
        (TimedOut("slow"), "engine_timeout"),
    ],
)
async def test_a_permanent_error_is_one_call_and_one_failed_row(error: Exception, code: str) -> None:
    async def fail(state: str) -> None:
        if state == "row 3":
            raise error

    engine = ScriptedEngine(fail)
    found = await outcomes(engine)
    failed = [outcome for outcome in found if outcome.failure]
    assert [(outcome.example.state, outcome.failure and outcome.failure.code) for outcome in failed] == [
        ("row 3", code)
    ]
    assert failed[0].correct is None
    assert engine.calls.count("row 3") == 1


async def test_a_busy_engine_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executing, "PAUSE_S", 0.001)
    left = {"row 3": 2}

    async def busy(state: str) -> None:
        if left.get(state, 0):
            left[state] -= 1
            raise Unavailable("busy", phase="ready")

    engine = ScriptedEngine(busy)
    assert all(outcome.answer for outcome in await outcomes(engine))
    assert engine.calls.count("row 3") == 3


async def test_an_engine_that_stays_away_ends_the_run_instead_of_failing_every_row(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(executing, "PAUSE_S", 0.001)

    async def gone(state: str) -> None:
        raise Unavailable("nothing answers", phase="off")

    engine = ScriptedEngine(gone)
    with pytest.raises(Unavailable):
        await outcomes(engine, 1000)
    assert len(engine.calls) <= 4 * executing.ATTEMPTS


async def test_an_engine_that_gave_up_ends_the_run_at_once() -> None:
    async def failed(state: str) -> None:
        raise Unavailable("gave up", phase="failed")

    engine = ScriptedEngine(failed)
    with pytest.raises(Unavailable):
        await outcomes(engine, 10, concurrency=1)
    assert len(engine.calls) == 1


async def test_what_bars_every_request_ends_the_run_and_fails_no_row() -> None:
    async def barred(state: str) -> None:
        if state != "row 0":
            raise Barred("the engine does not accept the access key", hint="check CLEF_UPSTREAM_KEY")

    engine = ScriptedEngine(barred)
    with pytest.raises(Unavailable, match="access key") as caught:
        await outcomes(engine, 1000)
    assert (caught.value.phase, caught.value.hint) == ("failed", "check CLEF_UPSTREAM_KEY")
    assert len(engine.calls) < 20


async def test_a_row_that_alone_is_told_of_the_key_fails_alone() -> None:
    async def firewall(state: str) -> None:
        if state == "row 5":
            raise Barred("HTTP 403 for this text")

    found = await outcomes(ScriptedEngine(firewall))
    assert [(one.example.state, one.failure.code) for one in found if one.failure] == [("row 5", "engine_refused")]


async def test_a_loading_engine_is_waited_for() -> None:
    left = {"row 0": 12}

    async def loading(state: str) -> None:
        if left.get(state, 0):
            left[state] -= 1
            raise Unavailable("loading", phase="loading", retry_after_s=0)

    assert all(outcome.answer for outcome in await outcomes(ScriptedEngine(loading)))


async def test_an_input_that_kills_the_engine_twice_is_marked_and_skipped() -> None:
    async def crash(state: str) -> None:
        if state == "row 5":
            raise Crashed("killed by signal 9")

    engine = ScriptedEngine(crash)
    found = await outcomes(engine)
    assert [outcome.example.state for outcome in found if outcome.failure] == ["row 5"]
    assert engine.calls.count("row 5") == executing.CRASHES
