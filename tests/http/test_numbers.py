"""Whole numbers of a request reach the model digit by digit, or are refused in words."""

from typing import Any

import pytest
from starlette.testclient import TestClient

from clef.engines.upstream import UpstreamEngine
from tests.fakes.system_one import SystemOne
from tests.http.conftest import Client

EXACT = [2**63 - 1, -(2**63), 2**64 - 1, 10**15 + 1]
LOST = [2**64, -(2**63) - 1, 10**30]


def v1(state: Any) -> tuple[str, dict[str, Any]]:
    asked = {"a": {"type": "noul", "instructions": "Is it?"}}
    return "/v1/systemone", {"model": "clef", "state": state, "questions": asked}


def api(state: Any) -> tuple[str, dict[str, Any]]:
    return "/api/predict", {"state": state, "questions": [{"question": "Is it?", "type": "noul"}]}


@pytest.fixture
def client(client_of: Client, server: SystemOne) -> TestClient:
    return client_of(UpstreamEngine(server.address))


@pytest.mark.parametrize("ask", [v1, api])
def test_numbers_of_64_bits_stay_exact_beside_large_fractions(client: TestClient, server: SystemOne, ask: Any) -> None:
    state = {"ids": EXACT, "mass": 6.02e23}
    path, body = ask(state)
    assert client.post(path, json=body).status_code == 200
    assert server.bodies[-1]["state"] == state


@pytest.mark.parametrize("number", LOST)
def test_a_larger_one_is_refused_at_its_place(client: TestClient, server: SystemOne, number: int) -> None:
    path, body = v1({"orders": [{"id": number}]})
    refused = client.post(path, json=body)
    assert refused.status_code == 422
    (detail,) = refused.json()["detail"]
    assert (detail["loc"], detail["type"]) == (["body", "state", "orders", 0, "id"], "big_number")
    path, body = api({"orders": [{"id": number}]})
    body["questions"][0]["true"] = {"above": number}
    refused = client.post(path, json=body)
    assert refused.status_code == 400
    problems = refused.json()["error"]["problems"]
    assert [problem["column"] for problem in problems] == ["state.orders[0].id", "questions[0].true.above"]
    assert "text" in problems[0]["hint"]
    assert server.bodies == []


def test_where_a_model_does_not_read_it_any_number_is_ignored(client: TestClient) -> None:
    path, body = v1("s")
    assert client.post(path, json=body | {"seed": LOST[-1]}).status_code == 200


def test_a_body_that_is_nested_too_deep_for_exact_numbers_is_a_refusal(client: TestClient) -> None:
    deep = "[" * 1000 + str(LOST[-1]) + "]" * 1000
    text = f'{{"model": "clef", "state": "s", "seed": {deep}, "questions": {{"a": {{"type": "noul"}}}}}}'
    response = client.post("/v1/systemone", content=text, headers={"Content-Type": "application/json"})
    assert response.status_code == 422
