"""POST /v1/decisions: OpenAI's shapes over the same decisions."""

import base64
from typing import Any

import pytest
from starlette.testclient import TestClient

from clef.engines.upstream import UpstreamEngine
from tests.fakes.pictures import look, png
from tests.fakes.system_one import SystemOne
from tests.http.conftest import Client

QUESTIONS: list[dict[str, Any]] = [
    {"type": "predicate", "name": "angry", "instructions": "The customer is angry."},
    {
        "type": "choice",
        "instructions": "Same?",
        "choices": [{"value": True, "description": "the same"}, {"value": "no"}],
    },
    {
        "type": "score",
        "name": "urgency",
        "instructions": [{"type": "input_text", "text": "How"}, {"type": "input_text", "text": "urgent?"}],
        "levels": [{"label": "low", "description": "can wait"}, {"label": "high"}],
    },
]
BODY: dict[str, Any] = {"model": "clef", "input": "I was charged twice.", "questions": QUESTIONS}


@pytest.fixture
def client(client_of: Client, server: SystemOne) -> TestClient:
    return client_of(UpstreamEngine(server.address))


def test_answers_come_in_order_with_names_and_values_as_sent(client: TestClient, server: SystemOne) -> None:
    reply = client.post("/v1/decisions", json=BODY).json()
    predicate, choice, score = reply["answers"]
    assert predicate == {"type": "predicate", "name": "angry", "probability": 0.6}
    assert (choice["name"], choice["choice"]) == (None, True)
    assert choice["probabilities"] == [{"value": True, "probability": 0.6}, {"value": "no", "probability": 0.4}]
    assert score["probabilities"][1] == {"value": 1, "label": "high", "probability": 0.4}
    assert score["score"] == pytest.approx(0.4)
    assert reply["usage"]["total_tokens"] == 10
    sent = server.bodies[0]["questions"]
    assert sent["q2"]["criteria"] == {"true": "the same", "no": None}
    assert sent["q3"]["instructions"] == "How\nurgent?"
    assert sent["q3"]["criteria"] == ["low: can wait", "high"]


def test_messages_and_images_are_the_state(client: TestClient, server: SystemOne) -> None:
    image = f"data:image/png;base64,{base64.b64encode(png(2, 2)).decode()}"
    parts = [{"type": "input_text", "text": "look"}, {"type": "input_image", "image_url": image}]
    given = [{"role": "user", "content": parts}]
    server.handler = look
    assert client.post("/v1/decisions", json=BODY | {"input": given}).status_code == 200
    assert server.bodies[-1]["images"] == [image]
    assert server.bodies[-1]["state"][0]["content"][0] == {"type": "text", "text": "look"}


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"input": None}, "input"),
        ({"questions": {}}, "questions"),
        ({"questions": []}, "questions"),
        ({"questions": [{"type": "noul", "instructions": "?"}]}, "questions.0.type"),
        ({"questions": [{"type": "predicate"}]}, "questions.0.instructions"),
        ({"questions": ["x"]}, "questions.0"),
        ({"questions": [{"type": "choice", "instructions": "?", "choices": [{"value": "a"}]}]}, "questions.0.choices"),
        ({"questions": [{"type": "choice", "instructions": "?"}]}, "questions.0.choices"),
        (
            {"questions": [{"type": "choice", "instructions": "?", "choices": [{"value": True}, {"value": "true"}]}]},
            "questions.0.choices.1.value",
        ),
        (
            {"questions": [{"type": "score", "instructions": "?", "levels": [{"label": 1}]}]},
            "questions.0.levels.0.label",
        ),
    ],
)
def test_what_is_wrong_is_told_as_openais_clients_read_it(
    client: TestClient, change: dict[str, Any], param: str
) -> None:
    response = client.post("/v1/decisions", json=BODY | change)
    assert response.status_code == 400
    error = response.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert error["param"] == param
    assert error["message"]


def test_an_unknown_model_is_refused_in_the_same_shape(client: TestClient) -> None:
    response = client.post("/v1/decisions", json=BODY | {"model": "gpt-9"})
    assert response.status_code == 400
    assert "gpt-9" in response.json()["error"]["message"]
