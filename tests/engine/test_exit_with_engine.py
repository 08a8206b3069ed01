"""CLEF_EXIT_WITH_ENGINE: clef ends when its llama.cpp dies, and says why."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.engine


def get(address: str) -> Any:
    with urllib.request.urlopen(address, timeout=10) as response:
        return json.load(response)


@pytest.mark.parametrize("wanted", [True, False])
def test_clef_ends_with_its_engine_only_when_told_to(clef_model: Path, wanted: bool) -> None:
    environment = {**os.environ, "CLEF_LLAMA_ARGS": "-t 1", "CLEF_EXIT_WITH_ENGINE": str(int(wanted))}
    command = [sys.executable, "-m", "clef", "serve", "--engine", "llama", "--model", str(clef_model), "--port", "0"]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            found = re.search(r"http://\S+", process.stdout.readline())
            assert found is not None
            deadline = time.monotonic() + 60
            while (engine := get(f"{found[0]}/api/engine"))["phase"] != "ready" and time.monotonic() < deadline:
                time.sleep(0.05)
            os.kill(engine["llama"]["pid"], signal.SIGKILL)
            if wanted:
                _, errors = process.communicate(timeout=30)
                assert process.returncode == 3
                assert "Traceback" not in errors
                assert "clef:" in errors
                return
            while get(f"{found[0]}/api/engine")["llama"]["starts"] < 2 and time.monotonic() < deadline:
                time.sleep(0.05)
            assert process.poll() is None
        finally:
            process.kill()
