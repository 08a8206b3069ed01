"""A policy on the live route: act or review for each question, and the recalibrated probabilities beside the wire's."""

import json
from pathlib import Path
from typing import Any

import anyio.from_thread
import pytest
from starlette.testclient import TestClient

from clef.decisions.answers import Answer
from clef.decisions.examples import Example, Outcome
from clef.decisions.questions import Noul
from clef.engines.upstream import UpstreamEngine
from clef.errors import SettingsError
from clef.statistics.recalibration import fit
from clef.web.gatekeeping import gate_of_file
from tests.fakes.system_one import SystemOne
from tests.http.conftest import Client

ASK: dict[str, Any] = {
    "model": "clef",
    "state": "s",
    "questions": {
        "sure": {"type": "noul", "instructions": "Sure?"},
        "by its text": {"type": "noul", "instructions": "Unsure?"},
        "unknown": {"type": "noul", "instructions": "?"},
    },
}


def policy(**more: Any) -> dict[str, Any]:
    def one(threshold: float) -> dict[str, Any]:
        return {"type": "noul", "answers": None, "thresholds": {"yes": threshold}, "measured": {}}

    questions = {"sure": one(0.55), "Unsure?": one(0.9)}
    return {"version": 1, "measure": "top_probability", "rule": {}, "questions": questions, **more}


def recalibration() -> Any:
    """A map that was fitted on answers which say 0.6 and are right nine times in ten."""
    question, answer = Noul("Sure?"), Answer("noul", ("yes", "no"), (0.6, 0.4))
    outcomes = [
        Outcome(Example(f"row {n}", question, 0 if n % 10 else 1, question_name="Sure?"), answer) for n in range(200)
    ]
    fitted = fit(outcomes, "temperature")
    assert fitted is not None
    return fitted.to_dict()


@pytest.fixture
def written(tmp_path: Path) -> Path:
    path = tmp_path / "policy.json"
    path.write_text(json.dumps(policy()))
    return path


def test_each_answer_is_ruled_on_by_id_or_by_text(client_of: Client, server: SystemOne, written: Path) -> None:
    client = client_of(UpstreamEngine(server.address), policy=str(written))
    reply = client.post("/v1/systemone", json=ASK).json()
    assert reply["x_policy"] == "policy.json"
    rulings = reply["x_gate"]
    assert rulings["sure"] == {"decision": "act", "reason": None, "probability": 0.6, "threshold": 0.55}
    assert rulings["by its text"]["reason"] == "below the threshold"
    assert rulings["unknown"]["decision"] == "review"
    assert "x_recalibrated" not in reply


def test_recalibrated_probabilities_stand_beside_the_wires_own_unless_asked_for(
    client_of: Client, server: SystemOne, written: Path
) -> None:
    written.write_text(json.dumps(policy(recalibration=recalibration())))
    client = client_of(UpstreamEngine(server.address), policy=str(written))
    reply = client.post("/v1/systemone", json=ASK).json()
    assert reply["answers"]["sure"] == {"type": "noul", "noul": 0.6}
    assert reply["x_probabilities"] == "engine"
    better = reply["x_recalibrated"]["sure"]["noul"]
    assert better == pytest.approx(0.9, abs=0.05)
    assert reply["x_gate"]["sure"]["probability"] == better
    instead = client.post("/v1/systemone", json=ASK | {"x_probabilities": "recalibrated"}).json()
    assert instead["answers"]["sure"]["noul"] == better
    assert instead["x_probabilities"] == "recalibrated"


def test_a_saved_policy_is_named_by_the_setting_or_the_request(client_of: Client, server: SystemOne) -> None:
    client = client_of(UpstreamEngine(server.address))
    save(client, "careful")
    assert client.post("/v1/systemone", json=ASK).json().get("x_gate") is None
    reply = client.post("/v1/systemone", json=ASK | {"x_policy": "careful"}).json()
    assert reply["x_gate"]["sure"]["decision"] == "act"
    assert client.post("/v1/systemone", json=ASK | {"x_policy": "nobody saved this"}).status_code == 404
    assert client.post("/v1/systemone", json=ASK | {"x_policy": 3}).status_code == 422
    assert client.post("/v1/systemone", json=ASK | {"x_policy": "/etc/passwd"}).status_code == 404


def test_a_gate_that_is_set_is_never_missing_in_silence(client_of: Client, server: SystemOne) -> None:
    client = client_of(UpstreamEngine(server.address), policy="careful")
    response = client.post("/v1/systemone", json=ASK)
    assert response.status_code == 503
    assert "CLEF_POLICY" in response.json()["detail"]["message"]
    save(client, "careful")
    assert client.post("/v1/systemone", json=ASK).json()["x_gate"]["sure"]["decision"] == "act"


@pytest.mark.parametrize("text", [None, "no json", "{}", '{"version": 9}'])
def test_a_file_that_is_no_policy_is_told_at_the_start(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "policy.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(SettingsError, match="CLEF_POLICY"):
        gate_of_file(str(path))


def save(client: TestClient, name: str) -> None:
    assert isinstance(client.portal, anyio.from_thread.BlockingPortal)
    store = client.app.state.store  # type: ignore[attr-defined] # the app behind the client
    client.portal.call(store.policies.save, name, policy())
