"""The llama.cpp of the wheel never outlives the clef that started it, on Linux and, by its other tie, elsewhere."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.process.waiting import is_alive, until

pytestmark = [pytest.mark.anyio, pytest.mark.engine]

PARENT = """
import asyncio, json, sys
from pathlib import Path
import psutil
from clef.engines.llama import child
from clef.engines.llama.supervisor import LlamaEngine
from clef.settings import Settings

async def main():
    tie, model, folder = sys.argv[1:]
    child.TIED_BY_PIPE = tie == "pipe"
    engine = LlamaEngine(Settings(model=model, llama_args=("-t", "1"), context=512), folder=Path(folder))
    await engine.start()
    await engine.wait_ready()
    pids = [engine.pid, *(process.pid for process in psutil.Process(engine.pid).children(recursive=True))]
    print(json.dumps(pids), flush=True)
    await asyncio.sleep(60)

asyncio.run(main())
"""


@pytest.mark.parametrize("tie", ["signal", "pipe"])
async def test_after_a_kill_of_clef_its_memory_is_free_within_two_seconds(
    tie: str, clef_model: Path, tmp_path: Path
) -> None:
    command = [sys.executable, "-c", PARENT, tie, str(clef_model), str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pids = json.loads(parent.stdout.readline())
        assert len(pids) == (2 if tie == "pipe" else 1)
        assert all(is_alive(pid) for pid in pids)
        parent.send_signal(signal.SIGKILL)
        await until(lambda: not any(is_alive(pid) for pid in pids), within_s=2)
