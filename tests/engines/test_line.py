"""The line in front of the engine: bounded, live first, and nobody who left holds a place."""

import asyncio
from collections.abc import Callable

import pytest

from clef.decisions.examples import Request
from clef.engines.line import PARTS, Line
from clef.errors import Overloaded, Unavailable
from tests.fakes.scripted import QUESTION, ScriptedEngine

pytestmark = pytest.mark.anyio


class Gate:
    """Holds every decision until the test lets it go."""

    def __init__(self) -> None:
        self.held: dict[str, asyncio.Event] = {}
        self.engine = ScriptedEngine(self._hold)

    async def _hold(self, state: str) -> None:
        self.held[state] = asyncio.Event()
        try:
            await self.held[state].wait()
        finally:
            del self.held[state]

    def let_go(self, state: str) -> None:
        self.held[state].set()


def asked(state: str) -> Request:
    return Request(state, (QUESTION,))


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0)


def start(line: Line, *states: str, lane: str = "live") -> list["asyncio.Task[object]"]:
    engine = line if lane == "live" else line.background
    return [asyncio.create_task(engine.decide(asked(state))) for state in states]


async def end(gate: Gate, *tasks: "asyncio.Task[object]") -> None:
    while not all(task.done() for task in tasks):
        for event in gate.held.values():
            event.set()
        await asyncio.sleep(0)


async def test_so_many_are_inside_so_many_wait_and_the_next_is_refused_at_once() -> None:
    gate = Gate()
    line = Line(gate.engine, at_once=2, waiting=3)
    tasks = start(line, *"abcde")
    await until(lambda: len(gate.held) == 2 and line.waiting("live") == 3)
    with pytest.raises(Overloaded) as caught:
        await line.decide(asked("f"))
    assert caught.value.status == 529
    assert caught.value.retry_after_s >= 1
    await end(gate, *tasks)
    assert gate.engine.calls == list("abcde")
    assert gate.engine.most_in_flight == 2
    await end(gate, *start(line, "g"))


async def test_who_waits_too_long_is_told_so() -> None:
    gate = Gate()
    line = Line(gate.engine, at_once=1, patience_s=0.01)
    first = start(line, "a")
    await until(lambda: bool(gate.held))
    with pytest.raises(Overloaded, match="within"):
        await line.decide(asked("b"))
    assert line.waiting("live") == 0
    await end(gate, *first)


async def test_who_leaves_holds_no_place_in_the_line_nor_in_the_engine() -> None:
    gate = Gate()
    line = Line(gate.engine, at_once=1)
    inside, waits, last = start(line, "inside", "waits", "last")
    await until(lambda: line.waiting("live") == 2)
    waits.cancel()
    await until(waits.done)
    assert line.waiting("live") == 1
    inside.cancel()
    await until(lambda: list(gate.held) == ["last"])
    await end(gate, last)
    assert gate.engine.calls == ["inside", "last"]
    assert line.inside.total() == 0


async def test_who_leaves_in_the_moment_a_place_comes_passes_it_on() -> None:
    gate = Gate()
    line = Line(gate.engine, at_once=1)
    inside, leaves, next_ = start(line, "inside", "leaves", "next")
    await until(lambda: line.waiting("live") == 2)
    gate.let_go("inside")
    await until(lambda: line.waiting("live") == 1)
    leaves.cancel()
    await until(lambda: list(gate.held) == ["next"])
    await end(gate, inside, next_)
    assert line.inside.total() == 0


async def test_a_run_gives_way_to_live_requests_and_still_goes_on() -> None:
    gate = Gate()
    line = Line(gate.engine, at_once=2)
    rows = start(line, "row 1", "row 2", lane="background")
    await until(lambda: len(gate.held) == 2)
    live = start(line, "a", "b", "c")
    more = start(line, "row 3", "row 4", lane="background")
    await until(lambda: set(gate.held) == {"row 1", "row 2", "a", "b"})
    gate.let_go("row 1")
    await until(rows[0].done)
    assert line.waiting("background") == 2
    gate.let_go("row 2")
    await until(lambda: set(gate.held) == {"row 3", "a", "b"})
    for state in "ab":
        gate.let_go(state)
    await until(lambda: "c" in gate.held)
    gate.let_go("c")
    await until(lambda: set(gate.held) == {"row 3", "row 4"})
    await end(gate, *live, *rows, *more)


async def test_one_request_of_many_questions_counts_once_and_asks_a_few_at_a_time() -> None:
    gate = Gate()
    line = Line(gate.engine, at_once=8, waiting=0)
    task = asyncio.create_task(line.decide_each([asked(str(n)) for n in range(20)]))
    await until(lambda: len(gate.held) == PARTS)
    while not task.done():
        for event in gate.held.values():
            event.set()
        await asyncio.sleep(0)
    assert len(task.result()) == 20
    assert gate.engine.most_in_flight == PARTS


async def test_it_is_drained_once_everyone_has_an_answer() -> None:
    gate = Gate()
    line = Line(gate.engine)
    await line.drain(0)
    assert line.inside.total() == 0
    line = Line(gate.engine)
    task = start(line, "a")
    await until(lambda: bool(gate.held))
    draining = asyncio.create_task(line.drain(5))
    await asyncio.sleep(0)
    with pytest.raises(Unavailable, match="ending"):
        await line.decide(asked("late"))
    assert not draining.done()
    await end(gate, *task)
    await draining
