"""Which engine answers, and what a person is told about the choice."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from clef.decisions.examples import Request
from clef.decisions.questions import Noul
from clef.engines.engine import EngineFacts
from clef.engines.opening import ChosenEngine
from clef.errors import Unavailable
from clef.settings import load_settings
from tests.fakes.system_one import SystemOne

pytestmark = pytest.mark.anyio
ASKED = Request("text", (Noul("True?"),))


@asynccontextmanager
async def opened(**options: Any) -> AsyncIterator[tuple[ChosenEngine, EngineFacts]]:
    engine = ChosenEngine(load_settings(**options))
    engine.start()
    try:
        await engine.chosen()
        yield engine, await engine.facts()
    finally:
        await engine.close()


async def test_a_decision_server_at_the_upstream_address_is_used(server: SystemOne) -> None:
    async with opened(upstream=server.address) as (engine, facts):
        assert (facts.kind, facts.phase, facts.address) == ("upstream", "ready", server.address)
        assert (await engine.decide(ASKED)).model == "fake.gguf"


async def test_with_nobody_there_the_built_in_model_answers_and_says_why(nobody: str) -> None:
    async with opened(upstream=nobody) as (engine, facts):
        assert (facts.kind, facts.phase) == ("builtin", "ready")
        assert nobody in str(facts.message)
        assert (await engine.decide(ASKED)).answers


async def test_a_server_that_decides_nothing_is_named_and_not_used(server: SystemOne) -> None:
    async def chat_model(server: SystemOne, body: dict[str, object]) -> web.StreamResponse:
        return web.json_response({"error": {"message": "not a decision model"}}, status=501)

    server.handler = chat_model
    async with opened(upstream=server.address) as (_, facts):
        assert facts.kind == "builtin"
        assert "not a decision model" in str(facts.message)


async def test_a_server_that_is_still_loading_is_waited_for(server: SystemOne) -> None:
    async def loading(server: SystemOne, body: dict[str, object]) -> web.StreamResponse:
        return web.json_response({"error": {"message": "Loading model", "type": "unavailable_error"}}, status=503)

    server.handler = loading
    server.health_status = 503
    async with opened(upstream=server.address) as (_, facts):
        assert (facts.kind, facts.phase) == ("upstream", "loading")


async def test_builtin_on_request_does_not_look_for_a_server(server: SystemOne) -> None:
    async with opened(upstream=server.address, engine="builtin") as (_, facts):
        assert facts.kind == "builtin"
    assert server.bodies == []


async def test_upstream_on_request_stays_upstream_even_when_it_is_down(nobody: str) -> None:
    async with opened(upstream=nobody, engine="upstream") as (engine, facts):
        assert (facts.kind, facts.phase) == ("upstream", "off")
        with pytest.raises(Unavailable):
            await engine.decide(ASKED)


async def test_llama_without_a_model_says_what_is_missing() -> None:
    engine = ChosenEngine(load_settings(engine="llama"))
    with pytest.raises(Unavailable, match="needs a model"):
        await engine.decide(ASKED)
    facts = await engine.facts()
    assert facts.phase == "failed"
    assert "CLEF_MODEL" in str(facts.hint)
    await engine.close()


async def test_until_it_has_chosen_it_is_starting(server: SystemOne) -> None:
    release = asyncio.Event()
    loop = asyncio.get_running_loop()

    async def slow(server: SystemOne, body: dict[str, object]) -> web.StreamResponse:
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(release.wait(), loop))
        raise web.HTTPServiceUnavailable

    server.handler = slow
    engine = ChosenEngine(load_settings(upstream=server.address))
    engine.start()
    assert (await engine.facts()).phase == "starting"
    release.set()
    await engine.close()
