"""Requests made from our own OpenAPI description, right and wrong ones: none brings clef down or is answered in a way
that is not described; and the examples in it are what the built-in model answers.
"""

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis import Case
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from starlette.testclient import TestClient

from clef.engines.builtin import BuiltinEngine
from clef.settings import Settings
from clef.web.app import create_app
from tests.http.conftest import Client, served

CHECKS = [not_a_server_error, content_type_conformance, response_schema_conformance, status_code_conformance]
OURS = {"Origin": "http://127.0.0.1:8000"}
HOST = {"Host": "127.0.0.1"}
app = create_app(Settings(), BuiltinEngine())
SPEC = app.openapi()
schema = schemathesis.openapi.from_dict(SPEC).include(path_regex="^/v1/")
schema.app = app
ENDLESS = r"^/api/engine/log$"
"""A stream that goes on for as long as it is read."""
OUTSIDE = r"^/api/(doctor|models/.*)$"
"""What looks at the machine or downloads."""
api = schemathesis.openapi.from_dict(SPEC).include(path_regex="^/api/").exclude(path_regex=f"{ENDLESS}|{OUTSIDE}")
BOUNDED: dict[str, Any] = {
    "deadline": None,
    "derandomize": True,
    "database": None,
    "phases": [Phase.explicit, Phase.generate],
    "suppress_health_check": list(HealthCheck),
}
TABLE = "\n".join(
    ["text,question,options,label", "It crashes,Which?,a|b,a", "I was charged twice,Which?,a|b,b", "Hello,Which?,a|b,a"]
)


@pytest.mark.filterwarnings("ignore")
@schema.parametrize()
@settings(max_examples=40, **BOUNDED)
def test_no_request_makes_a_reply_that_is_not_described(case: Case[Any]) -> None:
    response = case.call(headers=HOST)
    assert response.status_code < 500, response.text
    case.validate_response(response, checks=CHECKS)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The address of a clef, and the id of a run there."""
    import httpx2

    with served(BuiltinEngine(), data_dir=tmp_path_factory.mktemp("api")) as address:
        made = httpx2.post(f"{address}/api/runs", content=TABLE, headers={"Content-Type": "text/csv"})
        assert made.status_code == 201, made.text
        yield address, made.json()["id"]


@pytest.mark.filterwarnings("ignore")
@api.parametrize()
@settings(max_examples=12, **BOUNDED)
def test_no_request_to_the_api_is_answered_in_a_way_that_is_not_described(
    case: Case[Any], running: tuple[str, str]
) -> None:
    address, run = running
    if "run_id" in case.path_parameters and case.method != "DELETE" and len(str(case.path_parameters["run_id"])) % 2:
        case.path_parameters["run_id"] = run
    response = case.call(base_url=address, timeout=20)
    assert response.status_code < 500, response.text
    case.validate_response(response, checks=[not_a_server_error, status_code_conformance])


def shape_of(value: Any) -> Any:
    """A JSON value with its numbers and texts replaced by what they are."""
    if isinstance(value, dict):
        return {key: shape_of(item) for key, item in value.items()}
    if isinstance(value, list):
        return [shape_of(item) for item in value]
    return "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__


def example_of(path: str, method: str) -> tuple[Any, Any]:
    """The request and the reply that the description shows for a route."""
    route = SPEC["paths"][path][method]
    asked = next((one["example"] for one in route.get("requestBody", {}).get("content", {}).values()), None)
    status = "303" if path.startswith("/sign") else "200"
    replied = route["responses"][status]
    contents = replied.get("content", {}).values()
    return asked, next((one["example"] for one in contents if "example" in one), replied.get("headers"))


@pytest.mark.parametrize("path", ["/v1/systemone", "/v1/decisions", "/api/predict"])
def test_the_example_of_a_decision_is_what_the_built_in_model_answers(client: TestClient, path: str) -> None:
    asked, shown = example_of(path, "post")
    response = client.post(path, json=asked)
    assert response.status_code == 200, response.text
    assert shape_of(response.json()) == shape_of(shown)
    assert list(response.json()) == list(shown)


def test_the_example_of_the_models_lists_such_as_there_are(client: TestClient) -> None:
    _, shown = example_of("/v1/models", "get")
    listed = client.get("/v1/models").json()
    assert set(listed) == set(shown)
    assert all(one in listed["models"] for one in shown["models"])


def test_the_example_of_the_metrics_has_lines_that_are_told(client: TestClient) -> None:
    asked, _ = example_of("/v1/systemone", "post")
    client.post("/v1/systemone", json=asked)
    _, shown = example_of("/metrics", "get")
    told = client.get("/metrics").text.splitlines()
    assert [line for line in shown.splitlines() if line not in told] == []


def test_the_example_of_signing_in_leads_on_with_a_session(client_of: Client) -> None:
    key = "sixteen-characters-or-more"
    client = client_of(api_key=key)
    asked, shown = example_of("/sign-in", "post")
    response = client.post("/sign-in", data=asked | {"key": key}, headers=OURS, follow_redirects=False)
    assert (response.status_code, response.headers["location"]) == (303, shown["Location"]["example"])
    parts = [part.strip().partition("=")[::2] for part in response.headers["set-cookie"].split(";")]
    expected = [part.strip().partition("=")[::2] for part in shown["Set-Cookie"]["example"].split(";")]
    assert len(parts[0][0]) == len(expected[0][0])
    assert parts[1:] == expected[1:]
    left = client.post("/sign-out", headers=OURS, follow_redirects=False)
    assert left.headers["location"] == example_of("/sign-out", "post")[1]["Location"]["example"]
    wrong = client.post("/sign-in", data={"key": "no"}, headers=OURS)
    assert str(wrong.status_code) in SPEC["paths"]["/sign-in"]["post"]["responses"]


@pytest.mark.parametrize("path", ["/v1/systemone", "/v1/decisions", "/v1/models", "/metrics"])
def test_errors_of_routes_are_described(path: str) -> None:
    (route,) = SPEC["paths"][path].values()
    assert {"401", "403", "429"} <= set(route["responses"])
