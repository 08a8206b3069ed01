"""`clef` as a person starts and stops it."""

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from aiohttp import web

from clef.cli.serve import greet
from clef.settings import SECRETS, Settings
from tests.fakes.machine import WSL_VERSION
from tests.fakes.system_one import SystemOne, even, system_one

COMMAND = [sys.executable, "-m", "clef"]


@contextmanager
def started(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    command = [*COMMAND, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            address = re.search(r"http://\S+", process.stdout.readline())
            assert address is not None
            yield process, address[0]
        finally:
            if process.poll() is None:
                process.kill()


def wait_answers(address: str) -> None:
    """Return once anything is answered."""
    with suppress(urllib.error.HTTPError):
        urllib.request.urlopen(f"{address}/api/health", timeout=10).close()


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [*COMMAND, *arguments]
    return subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=30, check=False
    )


@pytest.mark.parametrize("arguments", [("serve",), ()])
def test_it_says_where_it_is_and_serves_the_page(arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEF_PORT", "0")
    monkeypatch.setenv("CLEF_ENGINE", "builtin")
    with started(*arguments) as (_, address), urllib.request.urlopen(address, timeout=10) as page:
        text = page.read().decode()
        assert "<title>" in text
        assert "2 MB" in text


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_and_term_end_it_without_a_traceback(number: signal.Signals) -> None:
    with started("serve", "--port", "0", "--engine", "builtin") as (process, address):
        urllib.request.urlopen(f"{address}/api/health", timeout=10).close()
        process.send_signal(number)
        _, errors = process.communicate(timeout=10)
        assert process.returncode == 128 + number
        assert errors == ""


def test_a_decision_that_is_under_way_is_answered_before_it_ends() -> None:
    asked, going = threading.Event(), threading.Event()

    async def slow(server: SystemOne, body: dict[str, Any]) -> web.StreamResponse:
        if "hold on" in str(body):
            asked.set()
            await asyncio.to_thread(going.wait, 5)
        return web.json_response(even(body))

    body = b'{"model": "clef", "state": "hold on", "questions": {"a": {"type": "noul", "instructions": "?"}}}'
    with system_one() as server, ThreadPoolExecutor() as pool:
        server.handler = slow
        arguments = ("serve", "--port", "0", "--engine", "upstream", "--upstream", server.address)
        with started(*arguments) as (process, address):
            request = urllib.request.Request(f"{address}/v1/systemone", body, {"Content-Type": "application/json"})
            answer = pool.submit(urllib.request.urlopen, request, timeout=20)
            assert asked.wait(10)
            process.send_signal(signal.SIGTERM)
            late = urllib.request.Request(f"{address}/v1/systemone", body, {"Content-Type": "application/json"})
            said = (0, b"")
            while said == (0, b""):  # until the signal is taken, new ones are taken too
                try:
                    urllib.request.urlopen(late, timeout=0.2).close()
                except TimeoutError:
                    continue
                except urllib.error.HTTPError as refused:
                    said = (refused.code, refused.read())
            assert said[0] == 503
            assert b"ending" in said[1]
            going.set()
            with answer.result() as response:
                assert response.status == 200
            assert process.wait(10) == 128 + signal.SIGTERM


def test_a_port_that_is_taken_is_named_with_who_has_it_and_the_way_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = run("serve", "--port", str(port))
    assert result.returncode == 2
    assert re.search(rf"port {port} cannot be used: it is taken by .+ \(process {os.getpid()}\)", result.stderr)
    assert "--port" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("key", [(), ("--allowed-hosts", "clef.example")])
def test_a_clef_that_runs_there_already_is_told_with_its_address(key: tuple[str, ...]) -> None:
    with started("serve", "--port", "0", "--engine", "builtin", *key) as (first, address):
        wait_answers(address)
        result = run("serve", "--port", address.rpartition(":")[2])
    assert result.returncode == 2
    assert f"clef is running already at {address} by " in result.stderr
    assert f"(process {first.pid})" in result.stderr


def test_under_wsl_the_address_for_a_browser_of_windows_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("clef.engines.machine.ThisMachine.read", lambda self, path: WSL_VERSION)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        greet(Settings(), listener, None)
        port = listener.getsockname()[1]
    assert f"In a browser of Windows: http://localhost:{port} " in capsys.readouterr().out


def test_reachable_by_others_it_makes_a_key_and_prints_a_link_that_signs_in() -> None:
    arguments = ("serve", "--port", "0", "--engine", "builtin", "--allowed-hosts", "clef.example")
    with started(*arguments) as (process, address):
        assert process.stdout is not None
        link = re.search(r"http://\S+key=\S+", process.stdout.readline())
        assert link is not None
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(f"{address}/api/health", timeout=10)
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        with browser.open(link[0], timeout=10) as page:
            assert page.url == f"{address}/"
            assert "Sign out" in page.read().decode()


def test_a_host_that_is_no_address_is_told() -> None:
    result = run("serve", "--host", "example.com", "--port", "0")
    assert result.returncode == 2
    assert "CLEF_HOST" in result.stderr


def test_settings_that_cannot_be_used_are_all_named() -> None:
    result = run("serve", CLEF_PORT="eighty", CLEF_CONTEXT="9")
    assert result.returncode == 2
    assert "CLEF_PORT" in result.stderr
    assert "CLEF_CONTEXT" in result.stderr
    assert "Traceback" not in result.stderr


def test_every_setting_is_an_option_with_its_help() -> None:
    text = run("serve", "--help", COLUMNS="200").stdout
    for name in Settings.model_fields:
        assert (f"--{name.replace('_', '-')}" in text) == (name not in SECRETS)


def test_version() -> None:
    assert re.fullmatch(r"clef \d+\.\d+\.\d+\n", run("--version").stdout)


def test_a_second_clef_on_the_same_folder_is_told_so_without_a_traceback() -> None:
    with started("serve", "--port", "0", "--engine", "builtin") as (_, address):
        urllib.request.urlopen(f"{address}/api/health", timeout=10).close()
        second = run("serve", "--port", "0", "--engine", "builtin")
    assert second.returncode == 2
    assert "CLEF_DATA_DIR" in second.stderr
    assert "Traceback" not in second.stderr
