"""Which engine answers, and what a person is told about the choice."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from clef.decisions.examples import Request
from clef.decisions.questions import Noul
from clef.engines.engine import EngineFacts
from clef.engines.opening import ChosenEngine
from clef.engines.status import Change
from clef.engines.upstream import UpstreamEngine
from clef.errors import InputError, Unavailable
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


async def test_a_stranger_that_speaks_no_http_is_named_and_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clef.engines.looking.LOOK_TIMEOUT_S", 0.3)

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async with await asyncio.start_server(silent, "127.0.0.1", 0) as stranger:
        address = f"http://127.0.0.1:{stranger.sockets[0].getsockname()[1]}"
        async with opened(upstream=address) as (_, facts):
            assert facts.kind == "builtin"
            said = str(facts.message)
            assert f"What listens at {address} (" in said
            assert f"process {os.getpid()}) is not used, and left alone" in said


async def test_a_server_that_wants_a_key_says_so(server: SystemOne) -> None:
    async def locked(server: SystemOne, body: dict[str, object]) -> web.StreamResponse:
        return web.json_response({"error": {"message": "Invalid API Key"}}, status=401)

    server.handler = locked
    async with opened(upstream=server.address) as (_, facts):
        assert facts.kind == "builtin"
        assert "access key" in str(facts.message)


async def test_a_server_that_was_there_is_not_stopped_and_the_built_in_model_neither(
    server: SystemOne, nobody: str
) -> None:
    async with opened(upstream=server.address) as (engine, _):
        with pytest.raises(InputError, match="did not start the server"):
            await engine.turn_off()
        with pytest.raises(InputError, match="did not start the server"):
            await engine.restart(Change(context=8192))
        assert (await engine.status()).actions == ()
        assert (await engine.decide(ASKED)).answers
    async with opened(upstream=nobody) as (engine, _):
        with pytest.raises(InputError, match="part of clef"):
            await engine.turn_off()


async def test_starting_looks_again_for_a_server_that_was_down(nobody: str) -> None:
    engine = ChosenEngine(load_settings(upstream=nobody, engine="upstream"))
    assert isinstance(await engine.chosen(), UpstreamEngine)
    await engine.turn_on()
    assert (await engine.status()).actions == ("start",)
    await engine.close()


async def test_the_time_of_the_last_decisions_is_kept(server: SystemOne) -> None:
    async with opened(upstream=server.address) as (engine, _):
        assert (await engine.status()).to_dict()["speed"] == {"median_ms": None, "recent_ms": []}
        for _ in range(3):
            await engine.decide(ASKED)
        speed = (await engine.status()).to_dict()["speed"]
        assert len(speed["recent_ms"]) == 3
        assert speed["median_ms"] > 0


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
