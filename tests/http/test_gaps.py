"""What a plain proxy to llama.cpp would get wrong and clef does not: one test for each of the sixteen gaps.

The server behind it is a stub with llama.cpp's ways: keys sorted, its own error shapes, no aliases, JSON only.
"""

import gzip
import json
from typing import Any

import pytest
import zstandard
from aiohttp import web
from starlette.testclient import TestClient

from clef.engines.builtin import BuiltinEngine
from clef.engines.upstream import UpstreamEngine
from tests.fakes.pictures import look, png
from tests.fakes.system_one import SystemOne, even
from tests.http.conftest import Client

CHOICE = {"type": "choice", "instructions": "Which?", "criteria": {"zebra": None, "ant": None}}
NOUL = {"type": "noul", "instructions": "Is it?"}
SCORE = {"type": "score", "instructions": "How much?", "criteria": ["low", "high"]}


@pytest.fixture
def client(client_of: Client, server: SystemOne) -> TestClient:
    return client_of(UpstreamEngine(server.address))


def body(questions: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"model": "jev-latest", "state": "s", "questions": questions, **more}


def fails(server: SystemOne, status: int, kind: str, message: str) -> None:
    async def handler(server: SystemOne, body: dict[str, Any]) -> web.StreamResponse:
        return web.json_response({"error": {"code": status, "message": message, "type": kind}}, status=status)

    server.handler = handler


def test_gap_1_question_ids_stay_out_of_the_prompt(client: TestClient, server: SystemOne) -> None:
    answers = client.post("/v1/systemone", json=body({"is it fraud?": NOUL, "Q 🙂": CHOICE})).json()["answers"]
    assert list(answers) == ["is it fraud?", "Q 🙂"]
    assert list(server.bodies[0]["questions"]) == ["q1", "q2"]


def test_gap_2_questions_are_asked_alone_on_request_and_the_reply_says_so(
    client: TestClient, server: SystemOne
) -> None:
    reply = client.post("/v1/systemone", json=body({"a": NOUL, "b": CHOICE}, x_questions="isolated")).json()
    assert reply["x_questions"] == "isolated"
    assert [list(sent["questions"]) for sent in server.bodies] == [["q1"], ["q1"]]


def test_gap_3_instructions_may_be_missing_and_the_id_never_stands_in(client: TestClient, server: SystemOne) -> None:
    asked = {"secret id": {"type": "noul", "criteria": {"true": "it shouts"}}, "b": {**CHOICE, "instructions": None}}
    assert client.post("/v1/systemone", json=body(asked)).status_code == 200
    sent = server.bodies[0]["questions"]
    assert all(question["instructions"] for question in sent.values())
    assert "secret id" not in json.dumps(sent)


def test_gap_4_errors_have_the_protocols_shapes(client: TestClient, server: SystemOne) -> None:
    invalid = client.post("/v1/systemone", json=body({"a": {"type": "boolean"}}))
    assert invalid.status_code == 422
    assert set(invalid.json()["detail"][0]) == {"loc", "msg", "type"}
    fails(server, 400, "invalid_request_error", "no")
    refused = client.post("/v1/systemone", json=body({"a": NOUL}))
    assert refused.status_code == 400
    assert set(refused.json()["detail"]) == {"error_type", "message"}


@pytest.mark.parametrize(
    ("status", "kind", "message"),
    [
        (500, "server_error", "input (5000 tokens) is too large to process. increase the physical batch size: 512"),
        (400, "exceed_context_size_error", "the request (5000 tokens) exceeds the available context size (512 tokens)"),
    ],
)
def test_gap_5_a_prompt_that_is_too_long_is_no_500(
    client: TestClient, server: SystemOne, status: int, kind: str, message: str
) -> None:
    fails(server, status, kind, message)
    response = client.post("/v1/systemone", json=body({"a": NOUL}))
    assert response.status_code == 400
    assert response.json()["detail"]["error_type"] == "max_tokens_exceeded"
    assert "5000 of 512" in response.json()["detail"]["message"]


def test_gap_6_a_null_level_is_refused(client: TestClient, server: SystemOne) -> None:
    response = client.post("/v1/systemone", json=body({"a": {**SCORE, "criteria": ["low", None]}}))
    assert response.status_code == 422
    assert response.json()["detail"][0]["loc"] == ["body", "questions", "a", "criteria", 1]
    assert server.bodies == []


def test_gap_7_the_model_list_has_the_protocols_shape(client: TestClient) -> None:
    listed = client.get("/v1/models").json()["models"]
    assert "jev-latest" in [model["name"] for model in listed]
    assert all(isinstance(model[key], str) for model in listed for key in ("name", "description", "release_date"))


def test_gap_8_an_unknown_model_is_refused_and_the_reply_names_the_real_one(client: TestClient) -> None:
    assert client.post("/v1/systemone", json=body({"a": NOUL})).json()["model"] == "fake.gguf"
    unknown = client.post("/v1/systemone", json=body({"a": NOUL}, model="jev-9"))
    assert unknown.status_code == 400
    assert unknown.json()["detail"]["error_type"] == "api_usage_error"


@pytest.mark.parametrize(("coding", "pack"), [("gzip", gzip.compress), ("zstd", zstandard.compress)])
def test_gap_9_packed_bodies_are_opened(client: TestClient, coding: str, pack: Any) -> None:
    packed = pack(json.dumps(body({"a": NOUL})).encode())
    assert client.post("/v1/systemone", content=packed, headers={"Content-Encoding": coding}).status_code == 200


def test_gap_9_a_form_with_assets_becomes_images(client: TestClient, server: SystemOne) -> None:
    server.handler = look
    asked = body({"a": NOUL}, state={"seen": ["<image:1>", "beside <image:2>"]})
    asked["assets"] = {f"<image:{n}>": {"type": "image", "part": f"asset-{n}"} for n in (1, 2)}
    parts = {"asset-1": ("asset-1", png(3, 2), "image/png"), "asset-2": ("asset-2", png(5, 4), "image/png")}
    response = client.post("/v1/systemone", data={"request": json.dumps(asked)}, files=parts)
    assert response.status_code == 200, response.text
    assert server.bodies[-1]["state"] == {"seen": ["[image 1]", "beside [image 2]"]}
    assert len(server.bodies[-1]["images"]) == 2
    assert all(image.startswith("data:image/png;base64,") for image in server.bodies[-1]["images"])


def test_gap_10_every_reply_has_an_id_and_a_busy_server_says_when_to_come_back(
    client: TestClient, server: SystemOne
) -> None:
    ids = {client.post("/v1/systemone", json=body({"a": NOUL})).headers["x-typesafe-request-id"] for _ in range(2)}
    assert len(ids) == 2
    fails(server, 429, "rate_limit", "slow down")
    busy = client.post("/v1/systemone", json=body({"a": NOUL}))
    assert busy.status_code == 529
    assert int(busy.headers["retry-after"]) > 0
    assert busy.headers["x-typesafe-request-id"]


def test_gap_11_probabilities_come_in_the_order_of_the_request(client: TestClient) -> None:
    answer = client.post("/v1/systemone", json=body({"a": CHOICE})).json()["answers"]["a"]
    assert list(answer["probabilities"]) == ["zebra", "ant"]


def test_gap_12_of_equal_options_the_first_of_the_request_is_chosen(client: TestClient, server: SystemOne) -> None:
    async def tie(server: SystemOne, asked: dict[str, Any]) -> web.StreamResponse:
        reply = even(asked)
        reply["answers"]["q1"] |= {"probabilities": {"ant": 0.5, "zebra": 0.5}, "choice": "ant"}
        return web.json_response(reply)

    server.handler = tie
    assert client.post("/v1/systemone", json=body({"a": CHOICE})).json()["answers"]["a"]["choice"] == "zebra"


def test_gap_13_text_goes_up_composed_and_comes_back_as_written(client: TestClient, server: SystemOne) -> None:
    written = "cafe\u0301"
    asked = {"a": {**CHOICE, "criteria": {written: "re\u0301gulier", "b": None}}}
    answer = client.post("/v1/systemone", json=body(asked, state="e\u0301te\u0301")).json()["answers"]["a"]
    assert answer["choice"] == written
    assert server.bodies[0]["state"] == "\u00e9t\u00e9"
    assert list(server.bodies[0]["questions"]["q1"]["criteria"]) == ["caf\u00e9", "b"]


def test_gap_14_control_text_is_sent_as_it_is(client: TestClient, server: SystemOne) -> None:
    client.post("/v1/systemone", json=body({"a": NOUL}, state="<<clef:q1>> ignore"))
    assert server.bodies[0]["state"] == "<<clef:q1>> ignore"


def test_gap_15_what_cannot_be_answered_is_said_before_a_client_loses_patience(client_of: Client) -> None:
    response = client_of(BuiltinEngine(), max_wait=0.01).post("/v1/systemone", json=body({"a": NOUL}, state="w " * 900))
    assert response.status_code == 400
    assert response.elapsed.total_seconds() < 5


@pytest.mark.parametrize(
    "criteria", [None, {}, {"true": None}, {"true": "x"}, {"false": "x"}, {"true": "x", "false": None}]
)
def test_gap_16_a_side_of_a_noul_that_says_nothing_is_left_out(
    client: TestClient, server: SystemOne, criteria: dict[str, Any] | None
) -> None:
    assert client.post("/v1/systemone", json=body({"a": {**NOUL, "criteria": criteria}})).status_code == 200
    said = {side: text for side, text in (criteria or {}).items() if text}
    assert server.bodies[0]["questions"]["q1"].get("criteria", {}) == said
