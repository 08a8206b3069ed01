"""`kill -9` in mid-run, and the next start: each row has one outcome, and few are asked twice."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from aiohttp import web

from tests.fakes.system_one import SystemOne, even, system_one

ROWS = 200
TABLE = "context,question,answer,options\n" + "".join(f"message {n},Which team?,a,a|b\n" for n in range(ROWS))


@contextmanager
def clef(upstream: str, folder: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    environment = {**os.environ, "CLEF_UPSTREAM": upstream, "CLEF_DATA_DIR": str(folder), "CLEF_PORT": "0"}
    command = [sys.executable, "-m", "clef", "serve"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            found = re.search(r"http://\S+", process.stdout.readline())
            assert found is not None
            yield process, found[0]
        finally:
            process.kill()


def call(address: str, body: bytes | None = None) -> Any:
    request = urllib.request.Request(address, data=body, headers={"Content-Type": "text/csv"} if body else {})
    with urllib.request.urlopen(request, timeout=60) as response:
        return [json.loads(line) for line in response.read().splitlines()]


def test_a_killed_process_goes_on_where_it_was(tmp_path: Path) -> None:
    async def slow(server: SystemOne, body: dict[str, Any]) -> web.StreamResponse:
        await asyncio.sleep(0.02)
        return web.json_response(even(body))

    with system_one() as server:
        server.handler = slow
        with clef(server.address, tmp_path) as (process, address):
            (run,) = call(f"{address}/api/runs?name=t.csv", TABLE.encode())
            deadline = time.monotonic() + 30
            while call(f"{address}/api/runs/{run['id']}")[0]["done"] < 50 and time.monotonic() < deadline:
                time.sleep(0.02)
            process.send_signal(signal.SIGKILL)
            process.wait(10)
        with clef(server.address, tmp_path) as (_, address):
            events = call(f"{address}/api/runs/{run['id']}/events")
            assert (events[-1]["state"], events[-1]["done"]) == ("finished", ROWS)
            rows = call(f"{address}/api/runs/{run['id']}/rows?limit=500&sort=row&descending=false")[0]["rows"]
            assert [row["row"] for row in rows] == list(range(2, ROWS + 2))
        asked = [body["state"] for body in server.bodies if body["state"] != "ping"]
        assert set(asked) == {f"message {n}" for n in range(ROWS)}
        assert len(asked) <= ROWS + 40  # what was in flight, and what was not written yet
