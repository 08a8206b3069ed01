"""The further numbers of runs over HTTP, and act or review for new answers."""

import json
import random
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from aiohttp import web
from starlette.testclient import TestClient

from clef.engines.upstream import UpstreamEngine
from clef.runs.store import Store
from tests.fakes.system_one import SystemOne
from tests.http.conftest import Client
from tests.http.test_runs import create, finished

ROWS = 300
CHANCE = random.Random(5)
TABLE = "context,question,answer,options,source\n" + "".join(
    f"message {n} {'ab'[n % 2]},Which team?,{'ab'[n % 2]},a|b,{('mail', 'chat')[n % 3 == 0]}\n" for n in range(ROWS)
)


def sure(state: str, seed: int) -> float:
    """Probability of the right answer: mostly high, sometimes below a half; the same for the same state and seed."""
    return min(0.99, random.Random(f"{state} {seed}").betavariate(5, 1.5))


@pytest.fixture
def client(client_of: Client, server: SystemOne) -> TestClient:
    server.seed = 1  # type: ignore[attr-defined]

    async def handler(server: SystemOne, body: dict[str, Any]) -> web.StreamResponse:
        if body["state"] == "ping":
            return web.json_response({"model": "m", "answers": {"q1": {"type": "noul", "noul": 0.5}}})
        right = str(body["state"])[-1]
        p = sure(body["state"], server.seed)  # type: ignore[attr-defined]
        probabilities = {name: p if name == right else 1 - p for name in "ab"}
        choice = max(probabilities, key=probabilities.__getitem__)
        answer = {"type": "choice", "choice": choice, "probabilities": probabilities}
        return web.json_response({"model": "m", "answers": {"q1": answer}})

    server.handler = handler
    return client_of(UpstreamEngine(server.address))


@pytest.mark.parametrize(
    "part", ["bands", "calibration", "recalibration", "risk", "classes", "scores", "slices", "suspects"]
)
def test_each_part_is_json_without_nan(client: TestClient, part: str) -> None:
    run = finished(client, create(client, TABLE)["id"])
    response = client.get(f"/api/runs/{run['id']}/measures/{part}")
    assert response.status_code == 200, response.text
    json.loads(response.text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


@pytest.mark.parametrize(
    "query", [{"accuracy": "0.95"}, {"review": "0.3"}, {"wrong": "10", "check": "1"}, {"risk": "0.1"}]
)
def test_a_gate_comes_with_a_policy_that_decides_new_answers(client: TestClient, query: dict[str, str]) -> None:
    run = finished(client, create(client, TABLE)["id"])
    found = client.get(f"/api/runs/{run['id']}/gates", params=query).json()
    asked = {"state": "message 7 b", "questions": [{"question": "Which team?", "answers": ["a", "b"]}]}
    results = client.post("/api/predict", json=asked).json()["results"]
    thresholds = found["policy"]["questions"]["Which team?"]["thresholds"]
    decided = client.post("/api/gate", json={"policy": found["policy"], "results": results}).json()["decisions"]
    acts = "all" in thresholds and results[0]["probability"] >= thresholds["all"]
    assert decided == ["act" if acts else "review"]
    other = [result | {"question": "Another?"} for result in results]
    assert client.post("/api/gate", json={"policy": found["policy"], "results": other}).json()["decisions"] == [
        "review"
    ]


@pytest.mark.parametrize("query", [{}, {"accuracy": "0.9", "review": "0.1"}, {"wrong": "1"}, {"accuracy": "7"}])
def test_a_gate_that_makes_no_sense_is_400_in_words(client: TestClient, query: dict[str, str]) -> None:
    run = finished(client, create(client, TABLE)["id"])
    response = client.get(f"/api/runs/{run['id']}/gates", params=query)
    assert response.status_code == 400
    assert response.json()["error"]["message"]


def test_a_gate_on_few_rows_is_refused_in_words(client: TestClient) -> None:
    run = finished(client, create(client, "\n".join(TABLE.splitlines()[:31]) + "\n")["id"])
    found = client.get(f"/api/runs/{run['id']}/gates", params={"accuracy": "0.9"}).json()
    assert found["policy"]["questions"].get("Which team?", {}).get("thresholds", {}) == {}
    assert "50" in json.dumps(found)


def test_two_runs_are_compared_row_by_row(client: TestClient, server: SystemOne) -> None:
    first = finished(client, create(client, TABLE)["id"])
    server.seed = 2  # type: ignore[attr-defined]
    second = finished(client, create(client, TABLE, cache="false")["id"])
    (found,) = client.get("/api/compare", params={"run": [first["id"], second["id"]]}).json()["comparisons"]
    total = found["fixed"] + found["broken"] + found["both_wrong"] + found["both_right"]
    assert total == ROWS
    assert 0 <= found["p"] <= 1
    assert found["verdict"]
    assert client.post("/api/policies", json={"name": "p", "run": first["id"], "review": 0.4}).status_code == 201
    at = client.get("/api/compare", params={"run": [first["id"], second["id"]], "policy": "p"}).json()
    assert at["comparisons"][0] != found
    assert client.get("/api/compare", params={"run": [first["id"], second["id"]], "policy": "q"}).status_code == 404


def test_one_run_cannot_be_compared(client: TestClient) -> None:
    run = finished(client, create(client, TABLE)["id"])
    assert client.get("/api/compare", params={"run": [run["id"]]}).status_code == 400
    assert client.get("/api/compare", params={"run": [run["id"], "none"]}).status_code == 404


@pytest.mark.parametrize(
    "body", [[], {}, {"policy": {}, "results": []}, {"policy": {"version": 99}, "results": []}, {"results": [1]}]
)
def test_what_is_no_policy_or_no_result_is_400_in_words(client: TestClient, body: Any) -> None:
    assert client.post("/api/gate", json=body).status_code == 400


def test_after_a_restart_the_page_shows_the_numbers_that_were_kept(
    client: TestClient, client_of: Client, server: SystemOne, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = finished(client, create(client, TABLE)["id"])
    paths = [f"/runs/{run['id']}/{part}" for part in ("gates", "gates?gate=review-0.3", "slices", "charts")]
    paths += [f"{path}{'&' if '?' in path else '?'}labels=table" for path in paths]
    first = [client.get(path) for path in paths]
    assert [response.status_code for response in first] == [200] * len(paths)

    async def read(self: Store, run_id: str, work: Any) -> Any:
        pytest.fail("the outcomes were read again")

    client.__exit__(None, None, None)
    again = client_of(UpstreamEngine(server.address))
    monkeypatch.setattr(Store, "over", read)
    assert [again.get(path).text for path in paths] == [response.text for response in first]


def test_parts_that_are_asked_for_at_once_are_measured_once(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = finished(client, create(client, TABLE)["id"])
    read, over = [], Store.over

    async def counted(self: Store, run_id: str, work: Any) -> Any:
        read.append(run_id)
        return await over(self, run_id, work)

    monkeypatch.setattr(Store, "over", counted)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(client.get, [f"/runs/{run['id']}/slices"] * 4))
    assert {response.status_code for response in found} == {200}
    assert len(read) == 1
