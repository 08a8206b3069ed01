"""An input that was in flight when the server died runs alone the next time, so that no other is blamed for it."""

import asyncio

import pytest

from clef.decisions.examples import Request
from clef.decisions.questions import Noul
from clef.engines.llama.turns import Turns
from clef.errors import Refused

pytestmark = pytest.mark.anyio


def request(state: str) -> Request:
    return Request(state, (Noul("Is it?"),))


class Watch:
    """Runs requests through turns and records who is in flight together."""

    def __init__(self, turns: Turns) -> None:
        self.turns = turns
        self.flying: set[str] = set()
        self.company: dict[str, int] = {}
        self.go_on = asyncio.Event()

    async def run(self, state: str) -> None:
        async with self.turns.take(request(state)):
            self.flying.add(state)
            self.company[state] = max(len(self.flying), self.company.get(state, 0))
            await self.go_on.wait()
            await asyncio.sleep(0)
            self.flying.discard(state)


async def fly(watch: Watch, *states: str) -> None:
    tasks = [asyncio.create_task(watch.run(state)) for state in states]
    for _ in range(5):
        await asyncio.sleep(0)
    watch.go_on.set()
    await asyncio.wait_for(asyncio.gather(*tasks), 5)


async def test_new_inputs_fly_together() -> None:
    watch = Watch(Turns())
    await fly(watch, "a", "b", "c")
    assert max(watch.company.values()) == 3


async def test_suspects_fly_alone_one_after_the_other_and_the_rest_still_flies() -> None:
    turns = Turns()
    for state in ("b", "c"):
        assert not turns.blame(request(state), death=1)
    watch = Watch(turns)
    await fly(watch, "a", "b", "c", "d", "e")
    assert watch.company["b"] == watch.company["c"] == 1
    assert set(watch.company) == set("abcde")


async def test_two_deaths_convict_and_an_answer_between_them_clears() -> None:
    turns = Turns()
    assert not turns.blame(request("a"), death=1)
    turns.clear(request("a"))
    assert not turns.blame(request("a"), death=2)
    assert turns.blame(request("a"), death=3)
    with pytest.raises(Refused, match="twice"):
        async with turns.take(request("a")):
            pass
    async with turns.take(request("b")):
        pass


async def test_one_death_with_the_same_input_in_flight_twice_convicts_nobody() -> None:
    turns = Turns()
    assert not turns.blame(request("a"), death=1)
    assert not turns.blame(request("a"), death=1)


async def test_a_suspect_that_gives_up_waiting_holds_up_nobody() -> None:
    turns = Turns()
    async with turns.take(request("a")):
        turns.blame(request("b"), death=1)
        waiting = asyncio.create_task(Watch(turns).run("b"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait({waiting})
        async with asyncio.timeout(5), turns.take(request("c")):
            pass
