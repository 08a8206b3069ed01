"""Talking to a server: what it may do wrong, and what a person is told."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from clef.decisions.examples import Request
from clef.decisions.questions import Choice, Noul, Score
from clef.engines.engine import EngineFacts
from clef.engines.upstream import UpstreamEngine, is_in_environment
from clef.errors import BadReply, ClefError, Refused, TimedOut, TooLong, Unavailable
from tests.fakes.system_one import SystemOne, even

pytestmark = pytest.mark.anyio
ASKED = Request("text", (Choice("Which?", ["b", "a"]), Noul("True?"), Score("How much?", ["low", "high"])))


@pytest.fixture
async def engine(server: SystemOne) -> AsyncIterator[UpstreamEngine]:
    opened = UpstreamEngine(server.address, timeout_s=5)
    yield opened
    await opened.close()


def replies(server: SystemOne, status: int, text: str, content_type: str = "application/json") -> None:
    async def handler(server: SystemOne, body: dict[str, object]) -> web.StreamResponse:
        return web.Response(status=status, text=text, content_type=content_type)

    server.handler = handler


async def test_all_three_types_in_one_request(engine: UpstreamEngine, server: SystemOne) -> None:
    reply = await engine.decide(ASKED)
    assert [answer.prediction for answer in reply.answers] == ["b", "yes", "low"]
    assert reply.model == "fake.gguf"
    assert list(server.bodies[0]["questions"]) == ["q1", "q2", "q3"]


async def test_confidence_is_recomputed(engine: UpstreamEngine) -> None:
    assert (await engine.decide(ASKED)).answers[0].confidence == pytest.approx(0.2)


async def test_ready_means_a_decision_was_answered(engine: UpstreamEngine, server: SystemOne) -> None:
    facts = await engine.probe()
    assert (facts.phase, facts.model, facts.max_tokens) == ("ready", "fake.gguf", 4096)
    assert len(server.bodies) == 1


async def test_a_chat_model_with_green_health_is_not_ready(engine: UpstreamEngine, server: SystemOne) -> None:
    replies(server, 501, '{"error":{"message":"not a decision model","type":"not_supported_error"}}')
    for facts in (await engine.probe(), await engine.facts()):
        assert facts.phase in ("failed", "off")
        assert "decision model" in str(facts.message)


@pytest.mark.parametrize(
    ("status", "said", "hint"),
    [
        (404, "no /v1/systemone", "11361"),
        (501, "not a decision model", "Clef-Flash"),
        (401, "access key", "CLEF_UPSTREAM_KEY"),
    ],
)
async def test_each_refusal_has_its_own_words_and_remedy(
    engine: UpstreamEngine, server: SystemOne, status: int, said: str, hint: str
) -> None:
    replies(server, status, "{}")
    with pytest.raises(Refused) as caught:
        await engine.decide(ASKED)
    assert said in caught.value.message
    assert hint in str(caught.value.hint)


async def test_a_loading_server_is_loading(engine: UpstreamEngine, server: SystemOne) -> None:
    server.health_status = 503
    assert (await engine.facts()).phase == "loading"
    replies(server, 503, '{"error":{"message":"Loading model","type":"unavailable_error"}}')
    with pytest.raises(Unavailable) as caught:
        await engine.decide(ASKED)
    assert caught.value.transient
    assert caught.value.phase == "loading"


async def test_a_prompt_that_is_too_long_is_permanent_though_the_server_says_500(
    engine: UpstreamEngine, server: SystemOne
) -> None:
    message = "input (900 tokens) is too large to process. increase the physical batch size (current batch size: 512)"
    replies(server, 500, json.dumps({"error": {"code": 500, "message": message, "type": "server_error"}}))
    with pytest.raises(TooLong) as caught:
        await engine.decide(ASKED)
    assert (caught.value.tokens, caught.value.limit) == (900, 512)


@pytest.mark.parametrize(
    ("status", "text", "kind"),
    [
        (200, "<html>hello</html>", BadReply),
        (502, "<html>bad gateway</html>", Unavailable),
        (200, "", BadReply),
        (200, '{"answers":{"q1":{"type":"choice","choice":"b","probabilities":{"b":NaN,"a":NaN}}}}', BadReply),
        (200, "[]", BadReply),
    ],
)
async def test_an_answer_that_is_none_is_an_error_in_words(
    engine: UpstreamEngine, server: SystemOne, status: int, text: str, kind: type[ClefError]
) -> None:
    replies(server, status, text)
    with pytest.raises(kind) as caught:
        await engine.decide(ASKED)
    assert caught.value.message


async def test_nobody_there(nobody: str) -> None:
    engine = UpstreamEngine(nobody)
    facts = await engine.facts()
    assert facts.phase == "off"
    assert "CLEF_UPSTREAM" in str(facts.hint)
    with pytest.raises(Unavailable):
        await engine.decide(ASKED)
    await engine.close()


async def test_slow_is_a_time_out_that_names_the_setting(server: SystemOne) -> None:
    async def never(server: SystemOne, body: dict[str, object]) -> web.StreamResponse:
        await asyncio.Event().wait()
        raise AssertionError

    server.handler = never
    engine = UpstreamEngine(server.address, timeout_s=0.2)
    with pytest.raises(TimedOut) as caught:
        await engine.decide(ASKED)
    assert "CLEF_UPSTREAM_TIMEOUT" in str(caught.value.hint)
    await engine.close()


async def test_a_server_that_hangs_up_is_unavailable() -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(hang_up, "127.0.0.1", 0) as listening:
        engine = UpstreamEngine(f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}")
        with pytest.raises(Unavailable):
            await engine.decide(ASKED)
        await engine.close()


async def test_the_key_goes_out_as_bearer_and_is_shown_nowhere(server: SystemOne) -> None:
    engine = UpstreamEngine(server.address, key="secret-key", model="clef-flash")
    await engine.decide(ASKED)
    assert server.headers[0]["Authorization"] == "Bearer secret-key"
    assert server.bodies[0]["model"] == "clef-flash"
    assert "secret-key" not in repr(await engine.facts())
    await engine.close()


async def test_no_proxy_stands_before_a_loopback_address(server: SystemOne, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    engine = UpstreamEngine(server.address)
    assert (await engine.probe()).phase == "ready"
    await engine.close()


async def test_a_proxy_of_the_environment_stands_before_another_address(
    server: SystemOne, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", server.address)
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    engine = UpstreamEngine("http://decisions.invalid:8080")
    assert (await engine.decide(ASKED)).model == "fake.gguf"
    assert server.headers[0]["Host"] == "decisions.invalid:8080"
    await engine.close()


@pytest.mark.parametrize(("key", "sent"), [("my key", "Bearer my key"), (None, "Basic Ym9iOnNlY3JldA==")])
async def test_a_key_goes_before_what_a_netrc_says_of_the_server(
    server: SystemOne, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, key: str | None, sent: str
) -> None:
    (tmp_path / "netrc").write_text("machine decisions.invalid login bob password secret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setenv("http_proxy", server.address)
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    engine = UpstreamEngine("http://decisions.invalid:8080", key=key)
    await engine.decide(ASKED)
    await engine.decide(ASKED)
    assert [headers["Authorization"] for headers in server.headers[:2]] == [sent, sent]
    await engine.close()


@pytest.mark.parametrize(
    ("environment", "is_asked"),
    [
        ({}, False),
        ({"http_proxy": "http://192.0.2.9:3128"}, True),
        ({"https_proxy": "http://192.0.2.9:3128"}, False),
        ({"http_proxy": "http://192.0.2.9:3128", "no_proxy": "192.0.2.1"}, False),
        ({"NETRC": "/there/netrc"}, True),
    ],
)
def test_the_environment_is_asked_at_each_request_only_where_it_names_something(
    environment: dict[str, str], is_asked: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "NETRC"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert is_in_environment("http://192.0.2.1:8080") == is_asked
    assert not is_in_environment("http://127.0.0.1:8080")


@pytest.mark.parametrize("wanted", ["422 detail", "400 text"])
async def test_a_server_that_wants_a_model_named_is_told_the_name_that_means_any(
    engine: UpstreamEngine, server: SystemOne, wanted: str
) -> None:
    missing: dict[str, tuple[int, dict[str, Any]]] = {
        "422 detail": (422, {"detail": [{"loc": ["body", "model"], "msg": "Field required", "type": "missing"}]}),
        "400 text": (400, {"error": {"message": "model is required"}}),
    }

    async def handler(server: SystemOne, body: dict[str, Any]) -> web.StreamResponse:
        status, said = missing[wanted]
        return web.json_response(even(body) if "model" in body else said, status=200 if "model" in body else status)

    server.handler = handler
    await engine.decide(ASKED)
    await engine.decide(ASKED)
    assert [body.get("model") for body in server.bodies] == [None, "jev-latest", "jev-latest"]


async def test_a_server_that_knows_no_such_name_is_asked_for_a_model_as_before(
    engine: UpstreamEngine, server: SystemOne
) -> None:
    async def handler(server: SystemOne, body: dict[str, Any]) -> web.StreamResponse:
        said = "model 'jev-latest' not found" if "model" in body else "model is required"
        return web.json_response({"error": {"message": said}}, status=404 if "model" in body else 400)

    server.handler = handler
    for _ in range(2):
        with pytest.raises(Refused, match="model is required") as caught:
            await engine.decide(ASKED)
        assert "CLEF_UPSTREAM_MODEL" in str(caught.value.hint)


@pytest.mark.parametrize("turns", range(5))
@pytest.mark.parametrize("error", [None, Unavailable("gone", phase="off")])
async def test_a_cancellation_that_comes_with_the_answer_is_not_lost(
    monkeypatch: pytest.MonkeyPatch, turns: int, error: Unavailable | None
) -> None:
    engine = UpstreamEngine("http://127.0.0.1:9")
    told = asyncio.Event()

    async def health() -> EngineFacts:
        await told.wait()
        if error is not None:
            raise error
        return EngineFacts("upstream", phase="ready", model="m")

    monkeypatch.setattr(engine, "_ask_health", health)
    task = asyncio.create_task(engine.facts())
    await asyncio.sleep(0.01)
    told.set()
    for _ in range(turns):
        await asyncio.sleep(0)
    if task.cancel():
        with pytest.raises(asyncio.CancelledError):
            await task
    else:
        assert (await task).kind == "upstream"
    await engine.close()
