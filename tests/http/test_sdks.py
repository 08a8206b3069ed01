"""The official SDKs as a user's programs: what they send is understood, what they get they can read."""

import asyncio
import json
import subprocess
from typing import Any

import pytest
import typesafe_sdk
from aiohttp import web

from clef.engines.builtin import BuiltinEngine
from clef.engines.upstream import UpstreamEngine
from tests.fakes.pictures import png, url
from tests.fakes.system_one import SystemOne, even
from tests.http.conftest import served
from tests.needing import ROOT, need, without

LONG = "I was charged twice, refund me. " * 40
"""Over 1 kB, from which on the SDK packs its bodies."""
QUESTIONS: dict[str, Any] = {
    "team": {"type": "choice", "instructions": "Which team?", "criteria": {"technical": "bugs", "billing": None}},
    "angry": {"type": "noul", "instructions": "Is the customer angry?"},
    "urgency": {"type": "score", "instructions": "How urgent?", "criteria": ["later", "now"]},
}


def check(reply: Any) -> None:
    answers = reply.answers
    assert set(answers) == set(QUESTIONS)
    assert answers["team"].choice in ("technical", "billing")
    assert 0 <= answers["angry"].noul <= 1
    assert answers["urgency"].legend == {0: "later", 1: "now"}


@pytest.mark.parametrize("packed", ["zstd", False])
def test_python_asks_packed_and_plain(packed: Any) -> None:
    with served(BuiltinEngine()) as address:
        with typesafe_sdk.TypeSafeClient(api_key="any", base_url=address, compression=packed) as sdk:
            check(sdk.system_one(LONG, QUESTIONS))

        async def asynchronous() -> None:
            async with typesafe_sdk.AsyncTypeSafeClient(api_key="any", base_url=address, compression=packed) as sdk:
                for reply in await asyncio.gather(*(sdk.system_one(LONG, QUESTIONS) for _ in range(3))):
                    check(reply)
                assert "jev-latest" in [model.name for model in (await sdk.models.list()).models]

        asyncio.run(asynchronous())


def test_python_reads_our_errors() -> None:
    with served(BuiltinEngine()) as address, typesafe_sdk.TypeSafeClient(api_key="any", base_url=address) as sdk:
        with pytest.raises(typesafe_sdk.TypeSafeError, match="Unknown model: gpt-9"):
            sdk.system_one("s", QUESTIONS, model="gpt-9")
        with pytest.raises(typesafe_sdk.TypeSafeError, match="700 of 512 tokens"):
            sdk.system_one("word " * 700, QUESTIONS)


@pytest.mark.parametrize("packed", ["zstd", False])
def test_python_sends_images_beside_the_request(server: SystemOne, packed: Any) -> None:
    server.sees = True
    first, second = png(3, 2), png(5, 4)
    with served(UpstreamEngine(server.address)) as address:
        state: dict[str, Any] = {"photo": typesafe_sdk.Image(first), "text": LONG}
        with typesafe_sdk.TypeSafeClient(api_key="any", base_url=address, compression=packed) as sdk:
            check(sdk.system_one(state, QUESTIONS))
            with pytest.raises(typesafe_sdk.TypeSafeError, match="neither a PNG nor a JPEG"):
                sdk.system_one(typesafe_sdk.Image(b"no image"), QUESTIONS)
            photo = typesafe_sdk.Image(second)
            with sdk.attach_assets(photo):
                check(sdk.system_one(f"Compare {photo}.", QUESTIONS))
    assert [body["images"] for body in server.bodies] == [[url(first)], [url(second)]]
    assert server.bodies[0]["state"]["photo"] == "[image 1]"
    assert server.bodies[1]["state"] == "Compare [image 1]."


@pytest.mark.parametrize("status", [429, 503])
def test_python_comes_back_when_the_engine_was_busy(server: SystemOne, status: int) -> None:
    async def busy_once(server: SystemOne, body: dict[str, Any]) -> web.StreamResponse:
        if len(server.bodies) == 1:
            return web.json_response({"error": {"message": "busy"}}, status=status, headers={"Retry-After": "0"})
        return web.json_response(even(body))

    server.handler = busy_once
    with (
        served(UpstreamEngine(server.address)) as address,
        typesafe_sdk.TypeSafeClient(api_key="any", base_url=address) as sdk,
    ):
        check(sdk.system_one("s", QUESTIONS))
    assert len(server.bodies) == 2


SCRIPT = """
import { TypeSafeClient } from "@typesafe-ai/sdk";
const [baseURL, questions, state] = process.argv.slice(1);
const client = new TypeSafeClient({ apiKey: "any", baseURL, timeout: 30_000 });
const reply = await client.systemOne({ state, questions: JSON.parse(questions), model: "jev-latest" });
const models = await client.models.list();
let error;
try {
  await client.systemOne({ state, questions: JSON.parse(questions), model: "gpt-9" });
} catch (caught) {
  error = { status: caught.status, message: caught.message };
}
console.log(JSON.stringify({ answers: reply.answers, models: models.map(({ name }) => name), error }));
"""


def test_javascript_asks_lists_models_and_reads_our_errors() -> None:
    need(without("node", npm_sdk=True))
    with served(BuiltinEngine()) as address:
        command = ["node", "--input-type=module", "-e", SCRIPT, address, json.dumps(QUESTIONS), LONG]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert set(told["answers"]) == set(QUESTIONS)
    assert told["answers"]["team"]["choice"] in ("technical", "billing")
    assert 0 <= told["answers"]["angry"]["noul"] <= 1
    assert "confidence" in told["answers"]["urgency"]
    assert "jev-latest" in told["models"]
    assert told["error"]["status"] == 400
    assert "Unknown model: gpt-9" in told["error"]["message"]
