"""/v1/systemone as its clients see it: the official SDK, the conformance suite, and bodies packed as they pack them."""

import gzip
import json
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import pytest
import typesafe_sdk
import zstandard
from aiohttp import web
from starlette.testclient import TestClient

from clef.engines.builtin import BuiltinEngine
from clef.engines.upstream import UpstreamEngine
from tests.fakes.system_one import SystemOne
from tests.http.conftest import Client, served

QUESTIONS: dict[str, Any] = {
    "team.1": {"type": "choice", "instructions": "Which team?", "criteria": {"technical": "bugs", "billing": None}},
    "Q 🙂": {"type": "noul", "criteria": {"true": "the customer shouts"}},
    "urgency": {"type": "score", "instructions": {"ask": "How urgent?"}, "criteria": ["later", {"label": "now"}]},
}
BODY: dict[str, Any] = {"model": "jev-latest", "state": [{"role": "user", "content": "refund"}], "questions": QUESTIONS}


def test_the_reply_has_the_clients_ids_order_and_text(client: TestClient) -> None:
    response = client.post("/v1/systemone", json=BODY | {"seed": 1, "x_trace": "t"})
    assert response.status_code == 200
    assert response.headers["x-typesafe-request-id"]
    body = response.json()
    assert set(body) == {"model", "answers", "usage", "x_questions"}
    assert list(body["answers"]) == list(QUESTIONS)
    assert list(body["answers"]["team.1"]["probabilities"]) == ["technical", "billing"]
    assert set(body["answers"]["Q 🙂"]) == {"type", "noul"}
    assert body["answers"]["urgency"]["legend"] == {"0": "later", "1": {"label": "now"}}
    assert body["usage"]["input_tokens"] > 0


@pytest.mark.parametrize(("asked", "requests"), [("joint", 1), ("isolated", 3)])
def test_the_questions_go_up_together_or_alone_as_asked(
    client_of: Client, server: SystemOne, asked: str, requests: int
) -> None:
    client = client_of(UpstreamEngine(server.address))
    body = client.post("/v1/systemone", json=BODY | {"x_questions": asked}).json()
    assert body["x_questions"] == asked
    assert len(server.bodies) == requests
    assert all(name.startswith("q") for sent in server.bodies for name in sent["questions"])
    assert [answer["type"] for answer in body["answers"].values()] == ["choice", "noul", "score"]


def test_the_way_can_be_set_for_all(client_of: Client, server: SystemOne) -> None:
    client = client_of(UpstreamEngine(server.address), questions="isolated")
    assert client.post("/v1/systemone", json=BODY).json()["x_questions"] == "isolated"


@pytest.mark.parametrize(
    ("change", "loc"),
    [
        ({"model": None}, ["body", "model"]),
        ({"state": None}, ["body", "state"]),
        ({"state": 3}, ["body", "state"]),
        ({"questions": {}}, ["body", "questions"]),
        ({"questions": []}, ["body", "questions"]),
        ({"x_questions": "both"}, ["body", "x_questions"]),
        ({"images": ["http://example.com/a.png"]}, ["body", "images", 0]),
        ({"questions": {"a": {"type": "boolean"}}}, ["body", "questions", "a", "type"]),
        ({"questions": {"a": {"type": "noul"}}}, ["body", "questions", "a", "instructions"]),
        ({"questions": {"a": {"type": "choice", "criteria": {}}}}, ["body", "questions", "a", "criteria"]),
        (
            {"questions": {"a": {"type": "choice", "criteria": {str(n): None for n in range(256)}}}},
            ["body", "questions", "a", "criteria"],
        ),
        ({"questions": {"a": {"type": "score", "criteria": {"0": "low"}}}}, ["body", "questions", "a", "criteria"]),
        ({"questions": {"a": {"type": "score", "criteria": ["low", None]}}}, ["body", "questions", "a", "criteria", 1]),
        ({"questions": {"a": {"type": "score", "criteria": ["low"]}}}, ["body", "questions", "a", "criteria"]),
        (
            {"questions": {"a": {"type": "choice", "criteria": {"é": None, "e\u0301": None}}}},
            ["body", "questions", "a", "criteria", "e\u0301"],
        ),
    ],
)
def test_what_cannot_be_answered_is_422_at_its_place(
    client: TestClient, change: dict[str, Any], loc: list[Any]
) -> None:
    response = client.post("/v1/systemone", json=BODY | change)
    assert response.status_code == 422
    details = response.json()["detail"]
    assert loc in [detail["loc"] for detail in details]
    assert all(detail["msg"] and detail["type"] for detail in details)


def test_every_problem_comes_at_once(client: TestClient) -> None:
    body = {"questions": {"a": {"type": "noul"}, "b": {"type": "score", "criteria": ["x", None, ""]}}}
    assert len(client.post("/v1/systemone", json=body).json()["detail"]) == 5


def test_one_option_and_255_are_answered(client: TestClient) -> None:
    for count in (1, 255):
        criteria = {f"option {n}": None for n in range(count)}
        questions = {"a": {"type": "choice", "instructions": "?", "criteria": criteria}}
        answer = client.post("/v1/systemone", json=BODY | {"questions": questions}).json()["answers"]["a"]
        assert len(answer["probabilities"]) == count


def test_an_unknown_model_is_named_and_the_known_ones_are_listed(client: TestClient) -> None:
    response = client.post("/v1/systemone", json=BODY | {"model": "gpt-9"})
    assert response.status_code == 400
    assert response.json()["detail"]["error_type"] == "api_usage_error"
    names = [model["name"] for model in client.get("/v1/models").json()["models"]]
    assert "jev-latest" in names
    for name in names:
        assert client.post("/v1/systemone", json=BODY | {"model": name}).status_code == 200


@pytest.mark.parametrize(
    ("encoding", "pack"),
    [("gzip", gzip.compress), ("deflate", zlib.compress), ("zstd", zstandard.ZstdCompressor().compress)],
)
def test_packed_bodies_are_opened_and_bombs_are_not(client_of: Client, encoding: str, pack: Any) -> None:
    client = client_of(max_body=100_000)
    headers = {"Content-Encoding": encoding}
    assert client.post("/v1/systemone", content=pack(json.dumps(BODY).encode()), headers=headers).status_code == 200
    bomb = client.post("/v1/systemone", content=pack(b" " * 50_000_000), headers=headers)
    assert bomb.status_code == 413
    broken = client.post("/v1/systemone", content=b"not packed at all", headers=headers)
    assert broken.status_code == 422
    assert "header says" in broken.json()["detail"][0]["msg"]


def test_an_encoding_nobody_knows_is_415(client: TestClient) -> None:
    assert client.post("/v1/systemone", content=b"x", headers={"Content-Encoding": "br"}).status_code == 415


def test_too_long_has_the_protocols_name(client: TestClient) -> None:
    response = client.post("/v1/systemone", json=BODY | {"state": "word " * 700})
    assert response.status_code == 400
    assert response.json()["detail"]["error_type"] == "max_tokens_exceeded"
    assert "700 of 512" in response.json()["detail"]["message"]


def test_an_engine_that_is_away_is_503_with_retry_after(client_of: Client) -> None:
    response = client_of(UpstreamEngine("http://127.0.0.1:9")).post("/v1/systemone", json=BODY)
    assert response.status_code == 503
    assert response.headers["retry-after"]
    assert response.json()["detail"]["message"]


def test_a_question_that_fails_alone_is_an_error_and_no_500(client_of: Client, server: SystemOne) -> None:
    async def refuse(server: SystemOne, body: dict[str, Any]) -> web.StreamResponse:
        return web.json_response({"error": {"message": "too many options (53)"}}, status=400)

    server.handler = refuse
    response = client_of(UpstreamEngine(server.address)).post("/v1/systemone", json=BODY | {"x_questions": "isolated"})
    assert response.status_code < 500
    assert "too many options" in response.json()["detail"]["message"]


def test_the_official_sdk_asks_and_lists_models() -> None:
    with served(BuiltinEngine()) as address, typesafe_sdk.TypeSafeClient(api_key="any", base_url=address) as sdk:
        state = "I was charged twice, refund me. " * 40  # over 1 kB, so that the SDK packs it
        reply = sdk.system_one(state, QUESTIONS)
        assert set(reply.answers) == set(QUESTIONS)
        assert "jev-latest" in [model.name for model in sdk.models.list().models]


@pytest.mark.parametrize("way", ["isolated", "joint"])
def test_the_conformance_suite_finds_every_requirement_held(tmp_path: Path, way: str) -> None:
    report = tmp_path / "report.json"
    with served(BuiltinEngine(), questions=way) as address:
        command = [sys.executable, "-m", "jevcompat.cli", "test", address, "--timeout", "60", "--json", str(report)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert "MUST 32/32, SHOULD 13/13" in done.stdout, done.stdout + done.stderr
    assert done.returncode == 0
