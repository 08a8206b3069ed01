"""`clef serve` as a whole with a llama.cpp child: Ctrl+C, a closed terminal, a kill."""

import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.process.waiting import is_alive, pids_in, wait_for

Serve = Callable[..., Any]


@pytest.fixture
def serve(fake_server: Path, model: Path, starts: Path, tmp_path: Path) -> Serve:
    """Runs the program with faults of the child."""

    @contextmanager
    def run(*faults: str) -> "Iterator[tuple[subprocess.Popen[str], str]]":
        environment = os.environ | {
            "CLEF_MODEL": str(model),
            "CLEF_LLAMA_SERVER": str(fake_server),
            "CLEF_LLAMA_ARGS": shlex.join(["--starts", str(starts), *faults]),
            "CLEF_UPSTREAM": "http://127.0.0.1:9",
            "CLEF_PORT": "0",
            "CLEF_DATA_DIR": str(tmp_path / "data"),
            "HF_HOME": str(tmp_path / "hf"),
        }
        command = [sys.executable, "-m", "clef", "serve"]
        with subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            try:
                assert process.stdout is not None
                address = re.search(r"http://\S+", process.stdout.readline())
                assert address is not None, process.stderr and process.stderr.read()
                yield process, address[0]
            finally:
                if process.poll() is None:
                    process.kill()

    return run


def phase(address: str) -> str:
    with urllib.request.urlopen(f"{address}/api/health", timeout=10) as answer:
        return str(json.load(answer)["phase"])


def listens(address: str) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", int(address.rpartition(":")[2]))) == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_while_the_model_loads_ends_both_without_a_traceback(
    serve: Serve, starts: Path, number: signal.Signals
) -> None:
    with serve("--load-s", "60") as (process, address):
        wait_for(lambda: phase(address) == "loading")
        began = time.monotonic()
        process.send_signal(number)
        _, errors = process.communicate(timeout=10)
        assert time.monotonic() - began < 5
        assert process.returncode == 128 + number
        assert errors == ""
    assert not is_alive(pids_in(starts)[0])


def test_a_second_interrupt_does_not_wait_for_a_child_that_will_not_end(serve: Serve, starts: Path) -> None:
    with serve("--ignore-term") as (process, address):
        wait_for(lambda: phase(address) == "ready")
        process.send_signal(signal.SIGINT)
        wait_for(lambda: not listens(address))  # it is being obeyed: the child has five seconds to end
        assert process.poll() is None
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=10)
        assert time.monotonic() - began < 2
        assert (process.returncode, errors) == (130, "")
    wait_for(lambda: not is_alive(pids_in(starts)[0]), within_s=2)


def test_two_interrupts_at_once_leave_neither_a_word_nor_a_child(serve: Serve, starts: Path) -> None:
    with serve("--ignore-term", "--load-s", "60") as (process, address):
        wait_for(lambda: phase(address) == "loading")
        process.send_signal(signal.SIGINT)
        time.sleep(0.03)  # two presses of one moment; signals of the same kind that wait together are one
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=10)
        assert (process.returncode, errors) == (130, "")
    wait_for(lambda: not is_alive(pids_in(starts)[0]), within_s=2)


def test_an_interrupt_while_clef_itself_is_loaded_ends_it_without_a_word(tmp_path: Path) -> None:
    """At whatever it is: each time a little later, until it serves."""
    environment = os.environ | {"CLEF_DATA_DIR": str(tmp_path), "CLEF_PORT": "0", "CLEF_ENGINE": "builtin"}
    for name in ("typer", "clef.cli.main", "pydantic", "clef.settings", "uvicorn", "fastapi", "clef.web.app"):
        with subprocess.Popen(
            [sys.executable, "-X", "importtime", "-m", "clef"], env=environment, stderr=subprocess.PIPE, text=True
        ) as process:
            assert process.stderr is not None
            for line in process.stderr:
                if line.rstrip().endswith(f" {name}"):
                    break
            process.send_signal(signal.SIGINT)
            said = [line for line in process.stderr if not line.startswith("import time:")]
        assert process.returncode in (130, -signal.SIGINT)
        assert said == []


def test_a_kill_of_clef_leaves_no_child_for_longer_than_two_seconds(serve: Serve, starts: Path) -> None:
    with serve("--ignore-term") as (process, address):
        wait_for(lambda: phase(address) == "ready")
        child = pids_in(starts)[0]
        process.kill()
        wait_for(lambda: not is_alive(child), within_s=2)


def test_the_page_is_there_while_the_model_loads_and_after_the_child_has_failed(serve: Serve) -> None:
    with serve("--exit-at-start", "error: something only it knows") as (_, address):
        wait_for(lambda: phase(address) == "failed")
        with urllib.request.urlopen(f"{address}/engine", timeout=10) as page:
            assert "something only it knows" in page.read().decode()
