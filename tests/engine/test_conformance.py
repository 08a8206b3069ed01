"""The conformance suite against clef over the real llama.cpp of the wheel, with a tiny joint model."""

import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from tests.http.conftest import served

pytestmark = pytest.mark.engine
KEY = "a-key-of-some-length"
READY_S = 90


def wait_ready(address: str) -> None:
    request = urllib.request.Request(f"{address}/api/health", headers={"x-api-key": KEY})
    deadline = time.monotonic() + READY_S
    while time.monotonic() < deadline:
        with urllib.request.urlopen(request, timeout=10) as response:
            if b'"reachable":true' in response.read():
                return
        time.sleep(0.05)
    raise TimeoutError("the model did not load")


@pytest.mark.parametrize(
    ("way", "key", "held"),
    [
        ("isolated", KEY, "MUST 32/32, SHOULD 15/15"),
        ("isolated", None, "MUST 32/32, SHOULD 13/13"),
        ("joint", None, "MUST 32/32"),
    ],
)
def test_every_requirement_that_applies_is_exercised_and_held(
    clef_model: Path, monkeypatch: pytest.MonkeyPatch, way: str, key: str | None, held: str
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr("clef.engines.llama.command.DEFAULT_PLACE", "/nowhere")
    if key:
        monkeypatch.setenv("CLEF_API_KEY", key)
    monkeypatch.setenv("CLEF_ENGINE", "llama")
    with served(model=str(clef_model), context=16384, llama_args="-t 1", questions=way) as address:
        wait_ready(address)
        command = [sys.executable, "-m", "jevcompat.cli", "test", address, "--timeout", "120"]
        command += ["--key", key] if key else []
        done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert held in done.stdout, done.stdout + done.stderr
    assert done.returncode == 0
