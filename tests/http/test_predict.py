"""POST /api/predict: what a program sends and gets, and every way of sending something wrong."""

import json
from typing import Any

import pytest
from aiohttp import web
from starlette.testclient import TestClient

from clef.engines.upstream import UpstreamEngine
from tests.fakes.system_one import SystemOne
from tests.http.conftest import Client

ASKED = {
    "state": "I was charged twice for my order, please refund me",
    "questions": [
        {"question": "Which team?", "answers": ["technical", {"answer": "billing", "description": "charges, refunds"}]},
        {"question": "Angry?", "type": "noul", "true": "shouts", "false": "calm"},
        {"question": "How urgent?", "type": "score", "levels": ["later", "this week", "today"]},
    ],
}


def problems(body: dict[str, Any]) -> list[tuple[str, str | None]]:
    return [(problem["code"], problem["column"]) for problem in body["error"]["problems"]]


def test_a_choice_in_its_simplest_form(client: TestClient) -> None:
    body = {"state": "refund me", "questions": [{"question": "Which team?", "answers": ["billing", "technical"]}]}
    response = client.post("/api/predict", json=body)
    assert response.status_code == 200
    (result,) = response.json()["results"]
    assert result["question"] == "Which team?"
    assert {answer["answer"] for answer in result["answers"]} == {"billing", "technical"}
    assert result["prediction"] == result["answers"][0]["answer"]
    assert result["probability"] == result["answers"][0]["probability"] >= result["answers"][1]["probability"]
    assert 0 <= result["confidence"] <= 1


def test_all_three_types_together(client: TestClient) -> None:
    body = client.post("/api/predict", json=ASKED).json()
    by_type = {result["type"]: result for result in body["results"]}
    assert set(by_type) == {"choice", "noul", "score"}
    assert by_type["noul"]["confidence"] is None
    assert {answer["answer"] for answer in by_type["noul"]["answers"]} == {"yes", "no"}
    assert 0 <= by_type["score"]["score"] <= 2
    assert by_type["score"]["levels"][by_type["score"]["level"]] == by_type["score"]["prediction"]
    assert "score" not in by_type["choice"]
    assert (body["shape"], body["engine"]) == ("joint", "builtin")


def test_results_come_most_confident_first_and_a_noul_ranks_by_its_distance_from_a_half(
    client_of: Client, server: SystemOne
) -> None:
    async def handler(server: SystemOne, body: dict[str, Any]) -> web.StreamResponse:
        answers = {
            "q1": {"type": "choice", "choice": "a", "probabilities": {"a": 0.7, "b": 0.3}},
            "q2": {"type": "noul", "noul": 0.1},
            "q3": {"type": "choice", "choice": "b", "probabilities": {"a": 0.0, "b": 1.0}},
            "q4": {"type": "noul", "noul": 0.5},
        }
        return web.json_response({"model": "m", "answers": answers})

    server.handler = handler
    choice = {"question": "?", "answers": ["a", "b"]}
    noul = {"question": "?", "type": "noul"}
    body = {"state": "s", "questions": [choice, noul, choice, noul]}
    results = client_of(UpstreamEngine(server.address)).post("/api/predict", json=body).json()["results"]
    assert [result["position"] for result in results] == [2, 1, 0, 3]
    assert results[0]["answers"][0] == {"answer": "b", "probability": 1.0}
    assert results[3]["tie"]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({}, [("empty_state", "state"), ("not_a_list", "questions")]),
        (ASKED | {"state": "  "}, [("empty_state", "state")]),
        (ASKED | {"state": None}, [("empty_state", "state")]),
        (ASKED | {"questions": []}, [("no_question", "questions")]),
        (
            {"state": "s", "questions": [{"question": " ", "answers": ["a", "b"]}]},
            [("empty_text", "questions[0].question")],
        ),
        ({"state": "s", "questions": [{"question": "?", "answers": ["a"]}]}, [("one_option", "questions[0].answers")]),
        (
            {"state": "s", "questions": [{"question": "?", "answers": ["a", "A"]}]},
            [("duplicate_options", "questions[0].answers")],
        ),
        (
            {"state": "s", "questions": [{"question": "?", "answers": [f"o{n}" for n in range(256)]}]},
            [("too_many_options", "questions[0].answers")],
        ),
        (
            {"state": "", "questions": [{"question": "", "answers": ["a", "b"]}, {"question": "?", "answers": ["a"]}]},
            [
                ("empty_state", "state"),
                ("empty_text", "questions[0].question"),
                ("one_option", "questions[1].answers"),
            ],
        ),
        ([], [("not_an_object", None)]),
    ],
)
def test_every_problem_is_named_at_once(client: TestClient, body: Any, expected: list[tuple[str, str | None]]) -> None:
    response = client.post("/api/predict", json=body)
    assert response.status_code == 400
    assert problems(response.json()) == expected
    assert response.json()["error"]["fault"] == "input"


@pytest.mark.parametrize("body", [b"", b"{", b"state=1", b"\xff\xfe", b'{"state": NaN}', b"[" * 100_000])
def test_a_body_that_is_not_json_is_refused_in_words(client: TestClient, body: bytes) -> None:
    response = client.post("/api/predict", content=body, headers={"Content-Type": "application/json"})
    assert response.status_code == 400
    assert "not JSON" in response.json()["error"]["message"]


def test_a_state_nested_too_deep_is_refused(client: TestClient) -> None:
    deep = "[" * 200 + "1" + "]" * 200
    response = client.post("/api/predict", content=f'{{"state": {deep}, "questions": []}}'.encode())
    assert response.status_code == 400
    assert ("too_deep", "state") in problems(response.json())


def test_a_state_that_the_model_would_cut_is_refused_with_both_numbers(client: TestClient) -> None:
    response = client.post("/api/predict", json=ASKED | {"state": "word " * 700})
    assert response.status_code == 413
    assert (response.json()["error"]["tokens"], response.json()["error"]["limit"]) == (700, 512)


def test_a_body_over_the_limit_is_413_with_the_limit(client_of: Client) -> None:
    response = client_of(max_body=2000).post("/api/predict", json=ASKED | {"state": "x" * 5000})
    assert response.status_code == 413
    assert "0.002 MB" in response.json()["error"]["message"]
    assert "CLEF_MAX_BODY" in response.json()["error"]["hint"]


def test_text_comes_back_as_it_was_written(client: TestClient) -> None:
    names = ["cafe\u0301", "<b>thé</b>", "قهوة 🙂", " spaces "]
    asked = {"state": "s", "questions": [{"question": "Où?", "answers": names}]}
    result = client.post("/api/predict", json=asked).json()["results"][0]
    assert sorted(answer["answer"] for answer in result["answers"]) == sorted(names)


@pytest.mark.parametrize(
    ("reply", "status", "code", "said"),
    [
        ((200, "<html>hi</html>"), 502, "bad_reply", "answers with a web page"),
        ((200, '{"answers":{"q1":{"type":"noul","noul":NaN}}}'), 502, "bad_reply", "NaN or Infinity"),
        ((200, '{"answers":{"q1":{"type":"noul","noul":7}}}'), 502, "bad_reply", "outside 0 to 1"),
        (
            (501, '{"error":{"message":"not supported","type":"not_supported_error"}}'),
            502,
            "engine_refused",
            "decision model",
        ),
        (
            (503, '{"error":{"message":"Loading model","type":"unavailable_error"}}'),
            503,
            "engine_unavailable",
            "Loading",
        ),
        (
            (500, '{"error":{"message":"input (9 tokens) is too large to process. (current batch size: 8)"}}'),
            413,
            "too_long",
            "9 of 8",
        ),
    ],
)
def test_what_the_engine_does_wrong_is_told_and_never_500(
    client_of: Client, server: SystemOne, reply: tuple[int, str], status: int, code: str, said: str
) -> None:
    async def handler(server: SystemOne, body: dict[str, Any]) -> web.StreamResponse:
        return web.Response(status=reply[0], text=reply[1], content_type="application/json")

    server.handler = handler
    body = {"state": "s", "questions": [{"question": "?", "type": "noul"}]}
    response = client_of(UpstreamEngine(server.address)).post("/api/predict", json=body)
    error = response.json()["error"]
    assert (response.status_code, error["code"]) == (status, code)
    assert said in error["message"]
    assert ("retry-after" in response.headers) == (status == 503)


def test_an_engine_that_is_down_is_503_with_retry_after(client_of: Client) -> None:
    client = client_of(UpstreamEngine("http://127.0.0.1:9"))
    response = client.post("/api/predict", json=ASKED)
    assert response.status_code == 503
    assert "retry-after" in response.headers
    assert response.json()["error"]["fault"] == "upstream"
    assert client.get("/api/health").json()["reachable"] is False


def test_health_names_engine_model_and_phase(client: TestClient) -> None:
    body = client.get("/api/health").json()
    assert (body["reachable"], body["engine"], body["phase"]) == (True, "builtin", "ready")
    assert body["model"]
    assert "2 MB" in body["message"]


def test_replies_are_json_that_a_browser_can_read(client: TestClient) -> None:
    text = client.post("/api/predict", json=ASKED).text
    json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
