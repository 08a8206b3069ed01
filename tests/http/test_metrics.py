"""GET /metrics: what a person who runs clef for others watches."""

import subprocess
import sys

import pytest
from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient

from tests.http.conftest import Client

ASK = {"model": "clef", "state": "s", "questions": {"a": {"type": "noul", "instructions": "?"}}}


def samples(client: TestClient) -> dict[tuple[str, ...], float]:
    """Every sample by its name and the values of its labels."""
    response = client.get("/metrics")
    assert response.status_code == 200
    families = text_string_to_metric_families(response.text)
    return {(sample.name, *sample.labels.values()): sample.value for family in families for sample in family.samples}


def test_requests_decisions_tokens_and_the_engine_are_counted(client: TestClient) -> None:
    for _ in range(3):
        client.post("/v1/systemone", json=ASK)
    client.post("/v1/systemone", json={})
    client.get("/api/runs/none")
    client.get("/some/stranger's/path")
    found = samples(client)
    assert found["clef_requests_total", "POST", "/v1/systemone", "200"] == 3
    assert found["clef_requests_total", "POST", "/v1/systemone", "422"] == 1
    assert found["clef_requests_total", "GET", "/api/runs/{run_id}", "404"] == 1
    assert found["clef_requests_total", "other", "other", "404"] == 1
    assert found["clef_request_seconds_count", "/v1/systemone"] == 4
    assert found["clef_decisions_total", "live", "answered"] == 3
    assert found["clef_decision_seconds_count",] == 3
    assert found["clef_input_tokens_total",] > 0
    assert found["clef_line_waiting", "live"] == found["clef_line_inside", "live"] == 0
    assert found["clef_engine_phase", "builtin", "ready"] == 1
    assert found["clef_engine_restarts_total",] == 0


def test_they_are_behind_the_key(client_of: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEF_API_KEY", "a-key-of-some-length")
    client = client_of()
    assert client.get("/metrics").status_code == 401
    assert client.get("/metrics", headers={"x-api-key": "a-key-of-some-length"}).status_code == 200


def test_the_library_costs_nothing_before_somebody_looks() -> None:
    code = "import sys, clef.web.app; sys.exit('prometheus_client' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0
