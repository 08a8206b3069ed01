"""Policies over HTTP: made of runs and files, applied to rows, exports and counts; runs seen through their maps."""

import csv
import io
import json
from typing import Any

import pytest
from aiohttp import web
from starlette.testclient import TestClient

from clef.engines.upstream import UpstreamEngine
from tests.fakes.system_one import SystemOne
from tests.http.conftest import Client
from tests.http.test_measures import sure
from tests.http.test_runs import create, finished

HEAD = "context,question,answer,options"


def table(rows: range, *, questions: int = 1, label: bool = True) -> str:
    lines = [f"m{n} {'ab'[n % 2]},Which {n % questions}?,{'ab'[n % 2] if label else ''},a|b" for n in rows]
    return "\n".join([HEAD, *lines, ""])


@pytest.fixture
def client(client_of: Client, server: SystemOne) -> TestClient:
    """The app with an engine that is right as often as `sure` says, and says it more surely than that."""

    async def handler(server: SystemOne, body: dict[str, Any]) -> web.StreamResponse:
        if body["state"] == "ping":
            return web.json_response({"model": "m", "answers": {"q1": {"type": "noul", "noul": 0.5}}})
        p, right = sure(body["state"], 1), str(body["state"])[-1]
        p = p**3 / (p**3 + (1 - p) ** 3)
        probabilities = {name: p if name == right else 1 - p for name in "ab"}
        choice = max(probabilities, key=probabilities.__getitem__)
        return web.json_response(
            {"model": "m", "answers": {"q1": {"type": "choice", "choice": choice, "probabilities": probabilities}}}
        )

    server.handler = handler
    return client_of(UpstreamEngine(server.address))


@pytest.fixture
def run(client: TestClient) -> str:
    return str(finished(client, create(client, table(range(240)))["id"])["id"])


def keep(client: TestClient, run: str, name: str = "p", **rule: Any) -> dict[str, Any]:
    response = client.post("/api/policies", json={"name": name, "run": run} | (rule or {"accuracy": 0.9}))
    assert response.status_code == 201, response.text
    found: dict[str, Any] = response.json()
    return found


def test_a_policy_of_a_run_is_kept_listed_downloaded_taken_in_and_deleted(client: TestClient, run: str) -> None:
    made = keep(client, run, "teams, May", accuracy=0.9)
    assert (made["name"], made["run"]) == ("teams, May", run)
    assert made["policy"]["questions"]["Which 0?"]["thresholds"]["all"] > 0.5
    assert [one["name"] for one in client.get("/api/policies").json()["policies"]] == ["teams, May"]
    file = client.get("/api/policies/teams, May/file")
    assert "attachment" in file.headers["content-disposition"]
    assert client.post("/api/policies", params={"name": "copy"}, content=file.content).status_code == 201
    assert client.get("/api/policies/copy").json()["policy"] == made["policy"]
    assert client.get("/api/policies/copy").json()["run"] is None
    assert client.delete("/api/policies/copy").json() == {"deleted": "copy"}
    assert client.get("/api/policies/copy").status_code == 404


def test_a_name_in_use_is_409_unless_it_may_be_replaced(client: TestClient, run: str) -> None:
    first = keep(client, run)
    again = client.post("/api/policies", json={"name": "p", "run": run, "review": 0.5})
    assert (again.status_code, again.json()["error"]["code"]) == (409, "taken")
    assert client.get("/api/policies/p").json()["policy"] == first["policy"]
    assert keep(client, run, review=0.5, replace=True)["policy"]["rule"]["rule"] == "review budget"


def test_every_problem_of_a_policy_to_be_is_named_at_once(client: TestClient) -> None:
    body = {"accuracy": "high", "pooled": 1, "recalibrate": 5, "colour": "red"}
    error = client.post("/api/policies", json=body).json()["error"]
    assert {problem["column"] for problem in error["problems"]} == {
        "name", "accuracy", "pooled", "recalibrate", "colour", None,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ([], 400),
        ({"name": "p", "run": "none", "accuracy": 0.9}, 404),
        ({"name": "p", "policy": {"version": 99}}, 400),
        ({"name": "a/b", "policy": {"version": 1, "measure": "top_probability", "questions": {}}}, 400),
        ({"version": 1, "method": "beta", "pooled": {}}, 400),
    ],
)
def test_what_is_no_policy_is_refused_in_words(client: TestClient, body: Any, status: int) -> None:
    response = client.post("/api/policies", json=body)
    assert response.status_code == status
    assert response.json()["error"]["message"]


def test_rows_exports_and_counts_say_act_or_review_and_why(client: TestClient, run: str) -> None:
    threshold = keep(client, run, review=0.4)["policy"]["questions"]["Which 0?"]["thresholds"]["all"]
    new = finished(client, create(client, table(range(500, 560), questions=2, label=False), labels="optional")["id"])
    rows = client.get(f"/api/runs/{new['id']}/rows", params={"policy": "p", "limit": 500}).json()["rows"]
    assert len(rows) == 60
    for row in rows:
        known = row["question"] == "Which 0?"
        acts = known and row["probability"] >= threshold
        reason = None if acts else "below the threshold" if known else "the policy does not know this question"
        assert (row["gate"]["decision"], row["gate"]["reason"]) == ("act" if acts else "review", reason)
    counts = client.get(f"/api/runs/{new['id']}", params={"policy": "p"}).json()["gate"]
    acted = sum(row["gate"]["decision"] == "act" for row in rows)
    assert 0 < acted < 30
    assert (counts["policy"], counts["act"], counts["review"]) == ("p", acted, 60 - acted)
    assert counts["reasons"]["the policy does not know this question"] == 30
    text = client.get(f"/api/runs/{new['id']}/export", params={"policy": "p"}).content.decode("utf-8-sig")
    lines = list(csv.DictReader(io.StringIO(text)))
    assert sum(line["gate"] == "act" for line in lines) == acted
    assert {line["gate_reason"] for line in lines if line["gate"] == "act"} == {""}
    line = client.get(f"/api/runs/{new['id']}/export", params={"policy": "p", "format": "jsonl"}).text.splitlines()[0]
    assert json.loads(line)["result"]["gate"]["decision"] in ("act", "review")
    place = rows[0]["position"]
    assert client.get(f"/api/runs/{new['id']}/rows/{place}", params={"policy": "p"}).json()["gate"] == rows[0]["gate"]
    assert client.get(f"/api/runs/{new['id']}/rows", params={"policy": "other"}).status_code == 404


def test_a_replaced_policy_is_counted_anew(client: TestClient, run: str) -> None:
    keep(client, run, review=0.9)
    few = client.get(f"/api/runs/{run}", params={"policy": "p"}).json()["gate"]["act"]
    keep(client, run, review=0.1, replace=True)
    assert client.get(f"/api/runs/{run}", params={"policy": "p"}).json()["gate"]["act"] > few


def test_a_run_is_seen_recalibrated_by_its_own_cross_validated_map(client: TestClient, run: str) -> None:
    raw = client.get(f"/api/runs/{run}/measures/calibration").json()
    own = client.get(f"/api/runs/{run}/measures/calibration", params={"recalibrate": "temperature"}).json()
    assert raw["about"] == {"probabilities": "raw"}
    assert (own["about"]["by"], own["about"]["method"]) == ("cross-validation", "temperature")
    change = client.get(f"/api/runs/{run}/measures/change", params={"recalibrate": "temperature"}).json()["measured"]
    for name, measure in (("before", raw), ("after", own)):
        for number in ("brier", "log_loss"):
            kept = measure["measured"]["all"][number]
            assert change[name][number]["value"] == pytest.approx(kept["value"])
            assert change[name][number]["low"] <= kept["value"] <= change[name][number]["high"]
    assert change["after"]["log_loss"]["value"] != change["before"]["log_loss"]["value"]


def test_a_later_run_is_seen_by_a_saved_map_without_the_rows_it_was_fitted_on(client: TestClient, run: str) -> None:
    made = keep(client, run, accuracy=0.9, recalibrate="beta")
    assert made["policy"]["recalibration"]["method"] == "beta"
    later = finished(client, create(client, table(range(200, 300)))["id"])["id"]
    seen = client.get(f"/api/runs/{later}/measures/change", params={"policy": "p"}).json()
    assert (seen["about"]["by"], seen["about"]["policy"], seen["about"]["left_out"]) == ("policy", "p", 40)
    assert seen["measured"]["after"]["brier"]["count"] == 60
    own = client.get(f"/api/runs/{run}/measures/change", params={"policy": "p"}).json()
    assert (own["about"]["by"], own["about"]["method"]) == ("cross-validation", "beta")
    assert "without it" in own["about"]["note"]
    part = finished(client, create(client, table(range(50)))["id"])["id"]
    refused = client.get(f"/api/runs/{part}/measures/risk", params={"policy": "p"})
    assert refused.status_code == 400
    assert "fitted on the rows of this run" in refused.json()["error"]["message"]


def test_a_map_is_a_file_of_its_own_that_later_runs_can_be_seen_by(client: TestClient, run: str) -> None:
    file = client.get(f"/api/runs/{run}/recalibration", params={"method": "isotonic"})
    assert "attachment" in file.headers["content-disposition"]
    assert client.post("/api/policies", params={"name": "map"}, content=file.content).status_code == 201
    assert client.get("/api/policies/map/recalibration").json() == file.json()
    later = finished(client, create(client, table(range(300, 380)))["id"])["id"]
    seen = client.get(f"/api/runs/{later}/measures/risk", params={"policy": "map"}).json()
    assert seen["about"]["method"] == "isotonic"
    assert "not known here" in seen["about"]["note"]


@pytest.mark.parametrize(
    "query",
    [
        "change",
        "slices?recalibrate=beta",
        "suspects?policy=p",
        "risk?policy=p",
        "risk?policy=p&recalibrate=beta",
        "risk?recalibrate=magic",
    ],
)
def test_a_view_that_makes_no_sense_is_400_in_words(client: TestClient, run: str, query: str) -> None:
    keep(client, run)
    response = client.get(f"/api/runs/{run}/measures/{query}")
    assert response.status_code == 400
    assert response.json()["error"]["message"]


def test_a_saved_policy_decides_by_its_name(client: TestClient, run: str) -> None:
    keep(client, run, review=0.5)
    asked = {"state": "m7 b", "questions": [{"question": "Which 0?", "answers": ["a", "b"]}]}
    results = client.post("/api/predict", json=asked).json()["results"]
    found = client.post("/api/gate", json={"policy": "p", "results": results}).json()
    assert found["decisions"] == [found["rulings"][0]["decision"]]
    assert found["rulings"][0]["threshold"] > 0.5
    assert client.post("/api/gate", json={"policy": "none", "results": results}).status_code == 404


def test_a_table_in_which_each_row_is_its_own_question_gets_a_pooled_gate(client: TestClient) -> None:
    run = finished(client, create(client, table(range(240), questions=120))["id"])["id"]
    alone = keep(client, run, "alone", accuracy=0.9)["policy"]
    assert not any(one["thresholds"] for one in alone["questions"].values())
    pooled = keep(client, run, "pooled", accuracy=0.9, pooled=True)["policy"]
    assert (pooled["questions"], list(pooled["pooled"])) == ({}, ["choice"])
    assert pooled["pooled"]["choice"]["measured"]["pooled"] == 120
    counts = client.get(f"/api/runs/{run}", params={"policy": "pooled"}).json()["gate"]
    assert counts["act"] > 100


def test_numbers_are_measured_once(client: TestClient, run: str, monkeypatch: pytest.MonkeyPatch) -> None:
    address = f"/api/runs/{run}/measures/risk"
    first = client.get(address).json()
    monkeypatch.setattr("clef.statistics.risk.risk_coverage", lambda _: pytest.fail("measured twice"))
    assert client.get(address).json() == first
