"""The upstream's access key: it goes to the upstream, and whatever else clef says or writes does not have it."""

import asyncio
import logging
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from clef.engines.doctor.examine import examine
from clef.engines.opening import ChosenEngine
from clef.errors import SettingsError
from clef.settings import load_settings
from tests.fakes.system_one import SystemOne, even
from tests.http.conftest import Client

KEY = "sk-the-upstreams-own-key"
PAGES = ("/", "/engine", "/evaluate", "/runs", "/api/health", "/api/engine", "/api/engine/log", "/api/models",
         "/api/doctor", "/api/runs", "/v1/models", "/metrics", "/openapi.json")  # fmt: skip
TABLE = b"state,question,label,options\nhi,Which?,a,a|b\nho,Which?,b,a|b\n"
ASKED = {"context": "sky", "questions": [{"type": "noul", "instructions": "Blue?"}]}


@pytest.mark.parametrize("ill", ["well", "repeats it in an error", "repeats it in its reply", "sends it elsewhere"])
def test_the_key_is_on_no_surface(
    client_of: Client, server: SystemOne, ill: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    async def handler(server: SystemOne, body: dict[str, Any]) -> web.StreamResponse:
        if ill == "repeats it in an error":
            return web.json_response({"error": {"message": f"no such key: {KEY}"}}, status=401)
        if ill == "sends it elsewhere":
            return web.Response(status=302, headers={"Location": f"https://x.example/?key={KEY}"})
        return web.json_response(even(body) | ({"model": f"model of {KEY}"} if ill != "well" else {}))

    server.handler = handler
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("CLEF_UPSTREAM_KEY", KEY)
    options: dict[str, Any] = {"upstream": server.address, "engine": "upstream", "data_dir": tmp_path / "data"}
    settings = load_settings(**options)
    del options["engine"]
    client = client_of(ChosenEngine(settings), **options)
    shown = [repr(settings), str(settings.model_dump()), settings.model_dump_json(), repr(examine(settings))]
    shown += [client.post("/api/predict", json=ASKED).text, client.post("/api/evaluate", content=TABLE).text]
    body = {"model": "jev-latest", "state": "s", "questions": {"a": {"type": "noul", "instructions": "?"}}}
    asked = client.post("/v1/systemone", json=body)
    shown += [asked.text, str(asked.headers)]
    run = client.post("/api/runs", content=TABLE, params={"name": "a.csv"}).json()["id"]
    if ill not in ("well", "repeats it in its reply"):  # a run waits for an engine that is away
        shown.append(client.post(f"/api/runs/{run}/cancel").text)
    shown.append(client.get(f"/api/runs/{run}/events").text)
    for suffix in ("", "/rows", "/export?format=csv", "/export?format=jsonl", "/report"):
        shown.append(client.get(f"/api/runs/{run}{suffix}").text)
    shown += [client.get(f"/runs/{run}").text, *(client.get(page).text for page in PAGES)]
    out = capfd.readouterr()
    shown += [out.out, out.err, caplog.text]
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"
    assert not [text for text in shown if KEY in text]
    stored = [path for path in tmp_path.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]
    assert stored == []


@pytest.mark.parametrize("key", ["two words", "line\nbreak", "schlüssel-für-alle"])
def test_a_key_that_cannot_be_sent_is_refused_and_not_told(monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    monkeypatch.setenv("CLEF_UPSTREAM_KEY", key)
    with pytest.raises(SettingsError, match="CLEF_UPSTREAM_KEY: ") as caught:
        load_settings()
    assert key not in str(caught.value) + repr(caught.value.__cause__)


@pytest.mark.parametrize("address", [f"http://me:{KEY}@h", f"http://h/?key={KEY}", f"http://{KEY}@h/v1"])
def test_an_address_with_a_key_in_it_is_refused_and_not_told(address: str) -> None:
    with pytest.raises(SettingsError, match="the access key goes into CLEF_UPSTREAM_KEY") as caught:
        load_settings(upstream=address)
    assert KEY not in str(caught.value)


def test_the_command_line_does_not_have_it(server: SystemOne, tmp_path: Path) -> None:
    async def repeats(server: SystemOne, body: dict[str, Any]) -> web.StreamResponse:
        return web.json_response({"error": f"bad key {KEY}"}, status=401)

    server.handler = repeats
    env = {"CLEF_UPSTREAM_KEY": KEY, "CLEF_UPSTREAM": server.address, "CLEF_ENGINE": "upstream"}
    everything = os.environ | env | {"CLEF_DATA_DIR": str(tmp_path)}
    line = [str(Path(sys.executable).with_name("clef")), "doctor", "--json"]
    done = subprocess.run(
        line, env=everything, capture_output=True, text=True, timeout=120, check=False, stdin=subprocess.DEVNULL
    )
    assert done.stdout + done.stderr
    assert KEY not in done.stdout + done.stderr


def test_a_key_that_is_revoked_in_mid_run_pauses_it_and_the_run_goes_on_when_it_is_good_again(
    client_of: Client, server: SystemOne, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = True

    async def handler(server: SystemOne, body: dict[str, Any]) -> web.StreamResponse:
        await asyncio.sleep(0.005)
        if not good:
            return web.json_response({"error": {"message": "key revoked"}}, status=401)
        return web.json_response(even(body))

    server.handler = handler
    monkeypatch.setenv("CLEF_UPSTREAM_KEY", KEY)
    options: dict[str, Any] = {"upstream": server.address, "data_dir": tmp_path / "data"}
    client = client_of(ChosenEngine(load_settings(engine="upstream", **options)), **options)
    rows = b"".join(b"text %d,Which?,a,a|b\n" % n for n in range(300))
    content = b"state,question,label,options\n" + rows
    run = client.post("/api/runs", content=content, params={"name": "a.csv"}).json()["id"]

    def until(condition: Callable[[Any], object]) -> Any:
        end = time.monotonic() + 20
        while not condition(body := client.get(f"/api/runs/{run}").json()):
            assert time.monotonic() < end, body
            time.sleep(0.02)
        return body

    until(lambda body: body["done"] > 20)
    good = False
    found = until(lambda body: body["state"] == "paused" and body["reason"])
    assert "does not accept the access key: key revoked" in found["reason"]
    assert (found["failed"], found["done"] < 300) == (0, True)
    assert client.get("/api/health").json()["phase"] == "failed"
    good = True
    found = until(lambda body: body["state"] == "finished")
    assert (found["done"], found["failed"]) == (300, 0)
