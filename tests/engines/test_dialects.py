"""The servers of the protocol, each as it answers: where it is asked, what it gets, and what its reply means."""

import asyncio
import gzip
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from aiohttp import web

from clef.decisions.examples import PROBE, Request
from clef.decisions.questions import Choice, Noul, Score
from clef.engines.exchange import Exchange
from clef.engines.places import body_for, place_of
from clef.engines.upstream import UpstreamEngine
from clef.errors import BadReply, ClefError, Refused, Rejected, Unavailable
from clef.settings import load_settings
from tests.fakes.system_one import SystemOne

pytestmark = pytest.mark.anyio
ASKED = Request(
    "I was charged twice", (Choice("Team?", ["technical", "billing"]), Noul("Angry?"), Score("?", ["a", "b"]))
)
PNG = "data:image/png;base64,iVBORw0KGgo="


def answers(choice: Mapping[str, Any], **extra: Any) -> dict[str, Any]:
    """The three answers to ASKED, in the keys that every dialect has; choice's probabilities are .25 and .75."""
    probabilities = {"billing": 0.75, "technical": 0.25}
    score = {"score": 0.9, "legend": {"0": "a", "1": "b"}, "probabilities": {"0": 0.1, "1": 0.9}, "confidence": 0.8}
    return {
        "q1": {"type": "choice", "choice": "billing", "probabilities": probabilities, **choice},
        "q2": {"type": "noul", "noul": 0.9, **extra},
        "q3": {"type": "score", **score, **extra},
    }


@dataclass(frozen=True)
class Dialect:
    """One server: what its reply to ASKED is, and what else it has to say."""

    reply: Mapping[str, Any]
    model: str
    written: str = ""
    path: str = "/v1/systemone"
    pages: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    sent_model: str | None = None
    health: int | None = 200
    """Status of GET /health; None where it is a page of `pages`, or none."""


PLAIN = {"usage": {"input_tokens": 120, "output_tokens": 0}}
DIALECTS = {
    "llama.cpp": Dialect(
        {"model": "Clef-Flash-Q8_0.gguf", "answers": answers({"confidence": 0.5}), **PLAIN},
        "Clef-Flash-Q8_0.gguf",
        pages={"/props": (200, '{"default_generation_settings":{"n_ctx":8192},"modalities":{"vision":false}}')},
    ),
    "SGLang": Dialect(
        {"model": "pplx-decider", "answers": answers({"x_label_mass": 0.98}), "x_reads": [], **PLAIN},
        "pplx-decider",
        written="/v1",
    ),
    "vLLM": Dialect(
        {"model": "Cloudflare/clef-flash", "answers": answers({"confidence": 0.75}), **PLAIN},
        "Cloudflare/clef-flash",
        written="/v1/systemone",
        sent_model="Cloudflare/clef-flash",
    ),
    "Ollama": Dialect(
        {"model": "clef-flash:9b", "answers": answers({"confidence": 0.5}), **PLAIN},
        "clef-flash:9b",
        sent_model="clef-flash:9b",
        health=None,  # it has none
    ),
    "laya-serve": Dialect(
        {"model": "laya-s", "answers": answers({"confidence": 0.19}, confidence=0.53, action="accept"), **PLAIN},
        "laya-s",
        pages={"/health": (200, '{"status":"ok","model":"laya-s"}')},
        health=None,
    ),
    "hosted Jev": Dialect(
        {"model": "jev-1.13.0", "answers": answers({"confidence": 0.5, "stats": {}}), "assets_used": None, **PLAIN},
        "jev-1.13.0",
        sent_model="jev-latest",
        health=None,
    ),
    "OpenRouter": Dialect(
        {"id": "gen-1", "provider": "Cloudflare", "model": "cloudflare/clef-flash",
         "answers": answers({"confidence": 0.5}), "usage": {"input_tokens": 120, "output_tokens": 0, "cost": 1e-6}},
        "cloudflare/clef-flash",
        written="/api/v1/systemone",
        path="/api/v1/systemone",
        sent_model="cloudflare/clef-flash",
        health=None,
    ),
    "Workers AI": Dialect(
        {"result": {"model": "clef-flash", "answers": answers({"confidence": 0.25}), **PLAIN},
         "success": True, "errors": [], "messages": []},
        "clef-flash",
        written="/client/v4/accounts/0a1b/ai/run/@cf/cloudflare/clef-flash",
        path="/client/v4/accounts/0a1b/ai/run/@cf/cloudflare/clef-flash",
        health=None,
    ),
    "LM Studio": Dialect(
        {"model": "clef-flash", "answers": answers({"confidence": 0.5}), **PLAIN},
        "clef-flash",
        pages={"/health": (200, '{"error":"Unexpected endpoint or method. (GET /health)"}')},
        health=None,
    ),
    "Lemonade": Dialect(
        {"model": "Clef-Flash-GGUF", "answers": answers({"confidence": 0.5}), **PLAIN},
        "Clef-Flash-GGUF",
        written="/api/v1",
        path="/api/v1/systemone",
        sent_model="Clef-Flash-GGUF",
        health=None,
    ),
    "Alibaba": Dialect(
        {"model": "decision", "request_id": "r", "latency_ms": 3, "answers": answers({"confidence": 0.5}), **PLAIN},
        "decision",
        written="/compatible-mode/v1/systemone",
        path="/compatible-mode/v1/systemone",
        health=None,
    ),
}  # fmt: skip


def play(server: SystemOne, dialect: Dialect) -> str:
    """Let the server answer as a dialect does; returns the address as a person writes it."""
    server.pages = {"/props": (404, ""), **dialect.pages}
    server.health_status = dialect.health or 404

    async def handler(server: SystemOne, body: dict[str, Any]) -> web.StreamResponse:
        reply: Any = json.loads(json.dumps(dialect.reply))
        inner = reply.get("result", reply)
        inner["answers"] = {name: inner["answers"][f"q{ORDER[one['type']]}"] for name, one in body["questions"].items()}
        return web.json_response(reply)

    server.handler = handler
    return server.address + dialect.written


ORDER = {"choice": 1, "noul": 2, "score": 3}


@pytest.mark.parametrize("name", DIALECTS)
async def test_its_reply_is_read_and_its_confidence_is_not(server: SystemOne, name: str) -> None:
    dialect = DIALECTS[name]
    engine = UpstreamEngine(play(server, dialect), key="key-of-mine", model=dialect.sent_model)
    facts = await engine.probe()
    assert (facts.phase, facts.model) == ("ready", dialect.model)
    reply = await engine.decide(ASKED)
    assert reply.answers[0].names == ("technical", "billing")
    assert reply.answers[0].probabilities == (0.25, 0.75)
    assert reply.answers[0].confidence == pytest.approx(0.5)
    assert [answer.prediction for answer in reply.answers] == ["billing", "yes", "b"]
    assert (reply.model, reply.input_tokens) == (dialect.model, 120)
    assert set(server.paths) == {dialect.path}
    assert server.headers[0]["Authorization"] == "Bearer key-of-mine"
    assert server.bodies[1].get("model", dialect.model) in (dialect.model, dialect.sent_model)
    assert set(server.bodies[1]) <= {"state", "questions", "model"}
    await engine.close()


@pytest.mark.parametrize("name", DIALECTS)
async def test_it_is_recognised_by_a_decision_whatever_it_says_of_its_health(server: SystemOne, name: str) -> None:
    engine = UpstreamEngine(play(server, DIALECTS[name]))
    assert (await engine.facts()).phase == "ready"
    assert len(server.bodies) == 1
    await engine.close()


@pytest.mark.parametrize(
    ("written", "asked", "root", "model"),
    [
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080/v1/systemone", "http://127.0.0.1:8080", None),
        ("http://127.0.0.1:8080/", "http://127.0.0.1:8080/v1/systemone", "http://127.0.0.1:8080", None),
        ("http://h:1/v1", "http://h:1/v1/systemone", "http://h:1", None),
        ("http://h:1/v1/systemone/", "http://h:1/v1/systemone", "http://h:1", None),
        ("http://h/llm/v1", "http://h/llm/v1/systemone", "http://h/llm", None),
        ("https://api.sarvam.ai/v2/systemone", "https://api.sarvam.ai/v2/systemone", "https://api.sarvam.ai", None),
        ("https://x/inference/v1/systemone", "https://x/inference/v1/systemone", "https://x/inference", None),
        ("https://api.typesafe.ai", "https://api.typesafe.ai/v1/systemone", "https://api.typesafe.ai", "jev-latest"),
        ("https://openrouter.ai", "https://openrouter.ai/api/v1/systemone", "https://openrouter.ai", None),
        (
            "https://openrouter.ai/api/v1",
            "https://openrouter.ai/api/v1/systemone",
            "https://openrouter.ai/api/v1",
            None,
        ),
        (
            "https://api.cloudflare.com/client/v4/accounts/a/ai/run/@cf/cloudflare/clef",
            "https://api.cloudflare.com/client/v4/accounts/a/ai/run/@cf/cloudflare/clef",
            "https://api.cloudflare.com/client/v4/accounts/a/ai/run/@cf/cloudflare/clef",
            "clef",
        ),
    ],
)
def test_an_address_may_be_written_in_any_of_its_forms(written: str, asked: str, root: str, model: str | None) -> None:
    place = place_of(load_settings(upstream=written).upstream)
    assert (place.decisions, place.root, place.model) == (asked, root, model)
    body, _ = body_for(place, PROBE, None)
    assert body.get("model") == model


# Images.


@pytest.mark.parametrize("state", ["a text", {"k": 1}, [{"role": "user", "content": "hi"}]])
def test_openrouter_gets_images_as_parts_of_the_state(state: Any) -> None:
    body, _ = body_for(place_of("https://openrouter.ai"), Request(state, PROBE.questions, (PNG,)), "m")
    assert "images" not in body
    assert body["state"][-1] == {"type": "image_url", "image_url": {"url": PNG}}
    assert len(body["state"]) == 2


def test_jev_gets_images_as_assets_that_the_state_names() -> None:
    place = place_of("https://api.typesafe.ai")
    body, headers = body_for(place, Request("look", PROBE.questions, (PNG, PNG.replace("png", "jpg"))), None)
    assert headers == {"TypeSafe-Danger-Zone-Images": "true"}
    assert [asset["format"] for asset in body["assets"].values()] == ["png", "jpeg"]
    assert set(body["assets"]) == set(body["state"]["images"])
    with pytest.raises(Rejected, match="PNG and JPEG only"):
        body_for(place, Request("look", PROBE.questions, ("https://example.com/a.png",)), None)


async def test_a_server_that_looks_at_images_gets_them(server: SystemOne) -> None:
    async def looks(server: SystemOne, body: dict[str, Any]) -> web.StreamResponse:
        if body["images"] != [PNG]:
            return web.json_response({"error": {"message": "failed to decode image", "type": "x"}}, status=400)
        return web.json_response({"model": "m", "answers": {"q1": {"type": "noul", "noul": 0.9}}})

    server.handler = looks
    engine = UpstreamEngine(server.address)
    for _ in range(2):
        assert (await engine.decide(Request("s", PROBE.questions, (PNG,)))).answers[0].prediction == "yes"
    assert len(server.bodies) == 3, "whether it looks is asked once"
    await engine.close()


async def test_a_server_that_ignores_images_is_not_asked_about_them(server: SystemOne) -> None:
    engine = UpstreamEngine(server.address)
    for _ in range(2):
        with pytest.raises(Rejected, match="does not look at images"):
            await engine.decide(Request("s", PROBE.questions, (PNG,)))
    assert len(server.bodies) == 1
    assert (await engine.decide(PROBE)).answers[0].prediction == "yes"
    await engine.close()


async def test_a_server_that_says_it_takes_no_images_is_quoted(server: SystemOne) -> None:
    async def refuses(server: SystemOne, body: dict[str, Any]) -> web.StreamResponse:
        return web.json_response({"error": {"message": "images need --mmproj", "type": "x"}}, status=501)

    server.handler = refuses
    engine = UpstreamEngine(server.address)
    with pytest.raises(Rejected, match="cannot read these images: images need --mmproj"):
        await engine.decide(Request("s", PROBE.questions, (PNG,)))
    await engine.close()


async def test_a_llama_server_says_itself_whether_it_looks_at_images(server: SystemOne) -> None:
    server.sees = False
    engine = UpstreamEngine(server.address)
    await engine.probe()
    with pytest.raises(Rejected, match="does not look at images"):
        await engine.decide(Request("s", PROBE.questions, (PNG,)))
    assert len(server.bodies) == 1
    await engine.close()


# What stands between.


def replies(server: SystemOne, status: int, body: bytes = b"", /, **headers: str) -> None:
    async def handler(server: SystemOne, _: dict[str, Any]) -> web.StreamResponse:
        return web.Response(status=status, body=body, headers={k.replace("_", "-"): v for k, v in headers.items()})

    server.handler = handler


REPLY = b'{"model":"m","answers":{"q1":{"type":"noul","noul":0.9}}}'


async def decided(server: SystemOne) -> Any:
    engine = UpstreamEngine(server.address, key="key-of-mine")
    try:
        return await engine.decide(PROBE)
    finally:
        await engine.close()


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_told_and_not_followed(server: SystemOne, status: int) -> None:
    replies(server, status, Location="https://login.example.com/?to=secret")
    with pytest.raises(Refused, match=r"on to https://login\.example\.com/ \(set CLEF_UPSTREAM") as caught:
        await decided(server)
    assert "CLEF_UPSTREAM" in str(caught.value.hint)
    assert len(server.bodies) == 1


async def test_json_is_json_whatever_its_type_says(server: SystemOne) -> None:
    replies(server, 200, REPLY, Content_Type="text/html; charset=iso-8859-1")
    assert (await decided(server)).model == "m"


@pytest.mark.parametrize("packing", ["gzip", "deflate"])
async def test_packed_replies_are_opened(server: SystemOne, packing: str) -> None:
    pack = gzip.compress if packing == "gzip" else zlib.compress
    replies(server, 200, pack(REPLY), Content_Encoding=packing)
    assert (await decided(server)).model == "m"


@pytest.mark.parametrize(
    ("status", "body", "headers", "kind", "said"),
    [
        (200, b"not packed", {"Content_Encoding": "gzip"}, BadReply, "not packed as its header says"),
        (200, b"", {}, BadReply, "nothing at all"),
        (204, b"", {}, BadReply, "nothing at all"),
        (200, b"<html>Sign in</html>", {"Content_Type": "text/html"}, BadReply, "web page"),
        (200, b'{"answers":{},"x":NaN}', {}, BadReply, "NaN or Infinity"),
        (200, b"\xff\xfe\x00", {}, BadReply, "not JSON"),
        (200, b'{"answers":', {}, BadReply, "not JSON"),
        (200, b"[" * 5000 + b"]" * 5000, {}, BadReply, "not JSON"),
        (200, b'{"error":{"code":429,"message":"slow"}}', {}, Unavailable, "slow"),
    ],
)
async def test_what_is_no_reply_is_told_in_words(
    server: SystemOne, status: int, body: bytes, headers: dict[str, str], kind: type[ClefError], said: str
) -> None:
    replies(server, status, body, **headers)
    with pytest.raises(kind, match=said) as caught:
        await decided(server)
    assert caught.value.message


IN_A_MINUTE = "in a minute"


@pytest.mark.parametrize(
    ("headers", "low", "high"),
    [
        ({"Retry_After": "7"}, 7, 7),
        ({"Retry_After": "1.2"}, 2, 2),
        ({"Retry_After": "0"}, 0, 0),
        ({"retry_after_ms": "1500", "Retry_After": "9"}, 2, 2),
        ({"Retry_After": IN_A_MINUTE}, 30, 60),
        ({"Retry_After": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0, 0),
        ({"Retry_After": "soon"}, 2, 2),
        ({"Retry_After": "-5"}, 2, 2),
        ({}, 2, 2),
    ],
)
async def test_a_busy_server_says_when_to_come_back(
    server: SystemOne, headers: dict[str, str], low: int, high: int
) -> None:
    told = {
        name: format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True) if said == IN_A_MINUTE else said
        for name, said in headers.items()
    }
    replies(server, 429, b"", **told)
    with pytest.raises(Unavailable) as caught:
        await decided(server)
    assert low <= caught.value.retry_after_s <= high


async def test_who_has_nothing_left_to_spend_is_not_asked_again_until_then(server: SystemOne) -> None:
    replies(server, 402, b'{"error":{"code":402,"message":"Insufficient credits"}}')
    engine = UpstreamEngine(server.address)
    with pytest.raises(Unavailable):
        await engine.decide(PROBE)
    for _ in range(3):
        facts = await engine.facts()
        assert (facts.phase, "Insufficient credits" in str(facts.message)) == ("failed", True)
    assert len(server.bodies) == 1
    await engine.close()


async def test_a_wrong_key_of_a_hosted_server_is_not_tried_at_every_look(server: SystemOne) -> None:
    replies(server, 401, b'{"errors":[{"code":10000,"message":"Authentication error"}],"success":false}')
    engine = UpstreamEngine(f"{server.address}/ai/run/@cf/cloudflare/clef", key="key-of-mine")
    for _ in range(3):
        facts = await engine.facts()
        assert facts.phase == "failed"
        assert "does not accept the access key" in str(facts.message)
    assert len(server.bodies) == 1
    await engine.close()


@pytest.mark.parametrize(
    "listed", ['{"models":[{"name":"jev-latest"},{"name":"clef"}]}', '{"data":[{"id":"jev-latest"},{"id":"clef"}]}']
)
async def test_a_model_that_is_not_there_brings_the_names_of_those_that_are(server: SystemOne, listed: str) -> None:
    replies(server, 404, b'{"error":{"message":"model \'x\' not found"}}')
    server.pages["/v1/models"] = (200, listed)
    engine = UpstreamEngine(server.address, model="x")
    facts = await engine.probe()
    assert (facts.phase, facts.hint) == ("failed", "set CLEF_UPSTREAM_MODEL to one of: jev-latest, clef")
    for nothing in ("{}", "[]", "<html>", '{"data":[]}', '{"data":[1]}'):
        server.pages["/v1/models"] = (200, nothing)
        assert "CLEF_UPSTREAM_MODEL" in str((await engine.probe()).hint)
    await engine.close()


async def test_a_slow_first_decision_is_waited_for_and_asked_once(server: SystemOne) -> None:
    go = asyncio.Event()
    loop = asyncio.get_running_loop()

    async def slow(server: SystemOne, body: dict[str, Any]) -> web.StreamResponse:
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(go.wait(), loop))
        return web.json_response({"model": "m", "answers": {"q1": {"type": "noul", "noul": 0.9}}})

    server.handler = slow
    engine = UpstreamEngine(server.address)
    facts = await engine.facts()
    assert (facts.phase, "first decision" in str(facts.message)) == ("loading", True)
    go.set()
    assert (await engine.facts()).phase == "ready"
    assert len(server.bodies) == 1
    await engine.close()


@pytest.mark.parametrize("key", ["abcdef-key-of-mine", 'with"quote'])
def test_a_key_that_a_server_repeats_is_taken_out(key: str) -> None:
    said = Exchange("http://h", 401, json.dumps({"error": f"bad key {key}"}).encode(), {}).without(key)
    assert key not in said.text
    assert said.json() == {"error": "bad key (key)"}
