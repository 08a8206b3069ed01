"""The engine, its models and its machine over HTTP."""

import json
import os
import signal
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from clef.engines.builtin import BuiltinEngine
from clef.engines.opening import ChosenEngine
from clef.settings import Settings
from clef.web import engine_api
from tests.fakes.hub import Hub, hub_of
from tests.http.conftest import Client, served
from tests.process.conftest import FAKE
from tests.process.waiting import is_alive, pids_in
from tests.tiny.models import write_openjev

ASKED = {"context": "sky", "questions": [{"type": "noul", "instructions": "Blue?"}]}


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An empty cache."""
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    for name in ("HF_HUB_CACHE", "HF_TOKEN", "HF_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_openjev(tmp_path / "tiny.gguf")


@pytest.fixture
def starts(tmp_path: Path) -> Path:
    path = tmp_path / "starts"
    path.touch()
    return path


@pytest.fixture
def settings_of(model: Path, starts: Path, tmp_path: Path) -> Callable[..., Settings]:
    """Settings that run the fake llama-server with faults."""
    program = tmp_path / "llama-server"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "{FAKE}" "$@"\n')
    program.chmod(0o755)

    def make(*faults: str, **other: Any) -> Settings:
        given: dict[str, Any] = {
            "model": str(model),
            "llama_server": program,
            "upstream": "http://127.0.0.1:9",
            **other,
        }
        return Settings(llama_args=("--starts", str(starts), *faults), **given)

    return make


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, model: Path) -> Iterator[Hub]:
    with hub_of("julia-1:Q8_0", model.read_bytes(), monkeypatch) as running:
        yield running


def until(client: TestClient, path: str, condition: Callable[[Any], object]) -> Any:
    """What a path answers once that meets a condition; fails when it does not in time."""
    end = time.monotonic() + 20
    while not condition(body := client.get(path).json()):
        assert time.monotonic() < end, str(body)[:900]
        time.sleep(0.02)
    return body


def is_ready(body: Any) -> bool:
    return bool(body["phase"] == "ready")


class TestEngine:
    def test_everything_about_a_llama_cpp_of_ours_is_told(
        self, client_of: Client, settings_of: Callable[..., Settings], model: Path, starts: Path
    ) -> None:
        client = client_of(ChosenEngine(settings_of("--say", "load_tensors: offloaded 33/33 layers to GPU")))
        body = until(client, "/api/engine", is_ready)
        assert (body["engine"], body["state"], body["reachable"]) == ("llama", "ready", True)
        assert (body["model"], body["max_tokens"], body["actions"]) == ("tiny.gguf", 4096, ["stop", "restart"])
        llama = body["llama"]
        assert (llama["placement"], llama["layers"], llama["pid"]) == ("gpu", 33, pids_in(starts)[0])
        assert llama["model_path"] == str(model)
        assert f"-m {model}" in llama["command_line"]
        until(client, "/api/engine", lambda body: body["llama"]["version"] == "5000 (0ld0ld0)")
        key = Path(f"/proc/{llama['pid']}/environ").read_text().partition("LLAMA_API_KEY=")[2].partition("\0")[0]
        assert key
        assert key not in client.get("/api/engine").text + client.get("/api/engine/log").text

    def test_a_run_whose_engine_was_given_up_goes_on_when_it_is_started_again(
        self, client_of: Client, settings_of: Callable[..., Settings], starts: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        client = client_of(ChosenEngine(settings_of("--exit-with-variable", "ILL", "no memory left")))
        until(client, "/api/engine", is_ready)
        rows = b"".join(b"text %d,Which?,a,a|b\n" % n for n in range(400))
        run = client.post("/api/runs", content=b"state,question,label,options\n" + rows, params={"name": "a.csv"})
        at = f"/api/runs/{run.json()['id']}"
        until(client, at, lambda body: body["done"] > 0)
        monkeypatch.setenv("ILL", "yes")
        os.kill(pids_in(starts)[0], signal.SIGKILL)
        until(client, "/api/engine", lambda body: body["phase"] == "failed")
        paused = until(client, at, lambda body: body["state"] == "paused")
        assert "no memory left" in until(client, at, lambda body: "no memory left" in (body["reason"] or ""))["reason"]
        assert (paused["failed"], paused["done"] < 400) == (0, True)
        monkeypatch.delenv("ILL")
        assert client.post("/api/engine/start").status_code == 202
        found = until(client, at, lambda body: body["state"] == "finished")
        assert (found["done"], found["failed"]) == (400, 0)

    def test_it_is_stopped_and_started(
        self, client_of: Client, settings_of: Callable[..., Settings], starts: Path
    ) -> None:
        client = client_of(ChosenEngine(settings_of()))
        until(client, "/api/engine", is_ready)
        assert client.post("/api/engine/stop").status_code == 202
        until(client, "/api/engine", lambda body: body["state"] == "stopped")
        assert not is_alive(pids_in(starts)[0])
        assert client.post("/api/engine/start").status_code == 202
        until(client, "/api/engine", is_ready)

    def test_a_restart_takes_a_model_and_a_context(
        self, client_of: Client, settings_of: Callable[..., Settings], model: Path, starts: Path
    ) -> None:
        client = client_of(ChosenEngine(settings_of()))
        until(client, "/api/engine", is_ready)
        other = model.with_name("other.gguf")
        other.write_bytes(model.read_bytes())
        response = client.post("/api/engine/restart", json={"model": str(other), "context": 8192})
        assert response.status_code == 202
        body = until(client, "/api/engine", lambda body: is_ready(body) and body["model"] == "other.gguf")
        assert (body["max_tokens"], body["llama"]["restarts"]) == (8192, 1)
        assert client.post("/api/engine/restart").status_code == 202
        assert until(client, "/api/engine", lambda body: is_ready(body) and body["llama"]["starts"] == 3)
        assert [is_alive(pid) for pid in pids_in(starts)] == [False, False, True]

    @pytest.mark.parametrize(
        ("change", "status", "said"),
        [
            ({"model": "/nowhere/x.gguf"}, 400, "there is no model file"),
            ({"model": "clef-flash:Q8_0"}, 400, "not on this machine"),
            ({"model": "clef-flash:Q9_X"}, 404, "no quantisation"),
            ({"images": True}, 400, "needs a projector"),
            ({"context": 12}, 400, "greater than or equal to 256"),
            ({"contest": 512}, 400, "Extra inputs"),
        ],
    )
    def test_a_change_that_cannot_be_is_answered_with_why(
        self, client_of: Client, settings_of: Callable[..., Settings], change: object, status: int, said: str
    ) -> None:
        client = client_of(ChosenEngine(settings_of()))
        until(client, "/api/engine", is_ready)
        response = client.post("/api/engine/restart", json=change)
        assert response.status_code == status
        assert said in json.dumps(response.json()["error"])
        assert is_ready(client.get("/api/engine").json())

    def test_too_little_memory_comes_with_one_click_that_helps(
        self, client_of: Client, settings_of: Callable[..., Settings]
    ) -> None:
        client = client_of(
            ChosenEngine(settings_of("--exit-above", "2048", "failed to allocate ROCm0 buffer of size 9"))
        )
        body = until(client, "/api/engine", lambda body: body["phase"] == "failed")
        (remedy,) = body["remedies"]
        assert remedy == {"label": "Restart with 2,048 tokens", "change": {"context": 2048}, "ready": True}
        client.post("/api/engine/restart", json=remedy["change"])
        until(client, "/api/engine", is_ready)

    def test_an_exit_with_an_error_shows_within_a_second(
        self, client_of: Client, settings_of: Callable[..., Settings], starts: Path
    ) -> None:
        client = client_of(ChosenEngine(settings_of(start_attempts=1)))
        until(client, "/api/engine", is_ready)
        os.kill(pids_in(starts)[0], signal.SIGKILL)
        began = time.monotonic()
        body = until(client, "/api/engine", lambda body: body["state"] != "ready")
        assert time.monotonic() - began < 1
        assert "SIGKILL" in body["message"]

    def test_the_built_in_model_has_a_status_and_nothing_to_stop(self, client: TestClient) -> None:
        body = client.get("/api/engine").json()
        assert (body["engine"], body["phase"], body["llama"], body["actions"]) == ("builtin", "ready", None, [])
        response = client.post("/api/engine/stop")
        assert response.status_code == 400
        assert "part of clef" in response.json()["error"]["message"]
        assert client.get("/api/engine/log").json() == {"lines": []}

    def test_no_other_page_in_the_browser_can_stop_it(self, client: TestClient) -> None:
        foreign = client.post("/api/engine/stop", headers={"Origin": "https://evil.example"})
        assert foreign.status_code == 403
        plain = client.post("/api/engine/restart", content='{"context": 512}', headers={"Content-Type": "text/plain"})
        assert 400 <= plain.status_code < 500


class TestLog:
    def test_the_last_lines_are_there(self, client_of: Client, settings_of: Callable[..., Settings]) -> None:
        client = client_of(ChosenEngine(settings_of("--say", "one", "--say", "two")))
        until(client, "/api/engine", is_ready)
        lines = client.get("/api/engine/log").json()["lines"]
        assert lines[:2] == ["one", "two"]
        assert client.get("/api/engine/log", params={"tail": 1}).json()["lines"] == lines[-1:]

    def test_it_is_followed_live_over_a_restart(self, settings_of: Callable[..., Settings]) -> None:
        settings = settings_of("--say", "first words")
        with served(ChosenEngine(settings)) as address:
            wait_ready(address)
            with urllib.request.urlopen(f"{address}/api/engine/log?follow=1&tail=200", timeout=15) as stream:
                assert json.loads(stream.readline()) == {"type": "line", "text": "first words"}
                post(f"{address}/api/engine/restart")
                seen = [json.loads(stream.readline())]
                while seen[-1] != {"type": "line", "text": "first words"}:
                    seen.append(json.loads(stream.readline()))
                assert {"type": "start", "number": 2} in seen

    def test_a_quiet_log_says_that_it_is_alive(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(engine_api, "HEARTBEAT_S", 0.3)
        with (
            served(BuiltinEngine()) as address,
            urllib.request.urlopen(f"{address}/api/engine/log?follow=1", timeout=10) as stream,
        ):
            assert [json.loads(stream.readline()) for _ in range(3)] == [{"type": "heartbeat"}] * 3


def wait_ready(address: str) -> None:
    end = time.monotonic() + 20
    while True:
        with urllib.request.urlopen(f"{address}/api/engine", timeout=10) as answer:
            if is_ready(json.load(answer)):
                return
        assert time.monotonic() < end
        time.sleep(0.02)


def post(url: str) -> None:
    urllib.request.urlopen(urllib.request.Request(url, method="POST"), timeout=10).close()


class TestModels:
    def test_each_is_told_with_size_licence_and_whether_it_fits_and_one_is_recommended(
        self, client_of: Client, settings_of: Callable[..., Settings]
    ) -> None:
        client = client_of(ChosenEngine(settings_of()))
        body = client.get("/api/models").json()
        assert [model["name"] for model in body["models"] if model["recommended"]] == ["julia-1:Q8_0"]
        flash = next(model for model in body["models"] if model["name"] == "clef-flash:Q8_0")
        assert (flash["size_bytes"], flash["licence"], flash["state"]) == (9657260192, "Apache-2.0", "absent")
        assert flash["fit"] in ("cpu", "no")
        assert body["machine"]["ram_bytes"] > 0
        assert "openjev" in {model["model"] for model in body["models"] if not model["commercial_use"]}

    def test_one_is_downloaded_paused_gone_on_with_used_and_removed(
        self, client_of: Client, settings_of: Callable[..., Settings], hub: Hub
    ) -> None:
        client = client_of(ChosenEngine(settings_of(model=None)))
        until(client, "/api/engine", is_ready)
        hub.bytes_per_s = 100_000
        assert client.post("/api/models/julia-1/download").status_code == 202
        until(client, "/api/models/julia-1/download", lambda body: body["done_bytes"] > 0)
        paused = client.post("/api/models/julia-1/pause").json()
        assert (paused["state"], paused["name"]) == ("paused", "julia-1:Q8_0")
        (listed,) = [one for one in client.get("/api/models").json()["models"] if one["model"] == "julia-1"]
        assert (listed["state"], listed["download"]["done_bytes"]) == ("paused", paused["done_bytes"])
        hub.bytes_per_s = None
        client.post("/api/models/julia-1:Q8_0/download", json={"images": False})
        until(client, "/api/models/julia-1/download", lambda body: body["state"] == "done")
        assert client.post("/api/engine/restart", json={"model": "julia-1"}).status_code == 202
        body = until(client, "/api/engine", lambda body: is_ready(body) and body["engine"] == "llama")
        assert body["model"] == "Julia-1-Q8_0.gguf"
        in_use = client.post("/api/models/julia-1/remove")
        assert in_use.status_code == 400
        assert "is running" in in_use.json()["error"]["message"]
        client.post("/api/engine/stop")
        until(client, "/api/engine", lambda body: body["state"] == "stopped")
        removed = client.post("/api/models/julia-1/remove").json()
        assert removed["freed_bytes"] > 0

    def test_a_gated_one_is_explained(self, client_of: Client, settings_of: Callable[..., Settings], hub: Hub) -> None:
        hub.gated = True
        client = client_of(ChosenEngine(settings_of()))
        client.post("/api/models/julia-1/download")
        body = until(client, "/api/models/julia-1/download", lambda body: body["state"] == "failed")
        assert body["failure"] == "gated"
        assert "HF_TOKEN" in body["hint"]

    def test_a_name_that_is_in_no_catalogue_is_answered_with_those_that_are(self, client: TestClient) -> None:
        response = client.post("/api/models/gpt-5/download")
        assert response.status_code == 404
        assert "clef-flash" in response.json()["error"]["hint"]


def test_the_doctor_answers_with_findings_and_their_worst(client: TestClient) -> None:
    body = client.get("/api/doctor").json()
    checks = {finding["check"]: finding for finding in body["findings"]}
    assert {"platform", "server", "devices", "folder", "variables", "decision"} <= set(checks)
    assert checks["decision"]["level"] == "warn"
    assert body["exit_code"] in (1, 2)
