"""Starts the servers a measurement needs, on free ports of 127.0.0.1, and ends them."""

import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.tiny.models import write_clef

DEADLINE_S = 60


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


def wait_for(url: str) -> None:
    """Return once a GET of `url` is answered 200."""
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(url, timeout=2):
                return
        except OSError:
            time.sleep(0.01)
    raise TimeoutError(url)


@contextmanager
def llama(folder: Path, context: int = 4096) -> Iterator[str]:
    """The llama.cpp of the wheel with a tiny random clef model; yields its root address."""
    model, port = folder / "tiny-clef.gguf", free_port()
    write_clef(model)
    size = str(context)
    command = [sys.executable, "-m", "clef.engines.llama.host", "-m", str(model), "--host", "127.0.0.1"]
    command += ["--port", str(port), "-c", size, "-b", size, "-ub", size, "-np", "1", "--threads-http", "64", "-t", "1"]
    with running(command):
        wait_for(f"http://127.0.0.1:{port}/health")
        yield f"http://127.0.0.1:{port}"


@contextmanager
def clef(**settings: str) -> Iterator[str]:
    """`clef serve` on a free port; yields its root address."""
    environment = {**os.environ, **{f"CLEF_{name.upper()}": value for name, value in settings.items()}}
    with running([sys.executable, "-m", "clef", "serve", "--port", "0"], environment) as process:
        assert process.stdout is not None
        found = re.search(r"http://\S+", process.stdout.readline().decode())
        assert found is not None, "clef did not say where it is"
        wait_for(f"{found[0]}/api/health")
        yield found[0]


@contextmanager
def running(command: list[str], environment: dict[str, str] | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """A process for as long as the block takes."""
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
