"""Rows a second: clef, jev-eval, and a plain loop of one request a row, against the same engine in one run."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

import aiohttp
import httpx2

from bench.servers import clef, free_port, llama, running, wait_for

CONCURRENCY = 4
PAUSE_S = 0.04
ROWS = 800
ROUNDS = 3
BUILTIN_ROWS = 10_000
QUESTION = {"type": "choice", "instructions": "Which team?", "criteria": {"billing": None, "technical": None}}


def state(n: int) -> str:
    """What every way of asking sends as the state of row `n`, so that all give the engine the same to do."""
    return f"message number {n} about my order"


def table(rows: int) -> bytes:
    """A labelled CSV whose states all differ."""
    lines = [f"{state(n)},Which team?,billing,billing|technical" for n in range(rows)]
    return "\n".join(["context,question,answer,options", *lines, ""]).encode()


def through_clef(page: str, rows: int) -> float:
    """Seconds from sending a table to the last row being stored and summarised."""
    started = time.perf_counter()
    request = urllib.request.Request(f"{page}/api/runs?cache=false", data=table(rows), method="POST")
    with urllib.request.urlopen(request) as response:
        run = json.load(response)["id"]
    with urllib.request.urlopen(f"{page}/api/runs/{run}/events") as events:
        last = events.read().splitlines()[-1]
    assert json.loads(last)["state"] == "finished", last
    with urllib.request.urlopen(f"{page}/api/runs/{run}") as response:
        assert json.load(response)["summary"]["answered"] == rows
    return time.perf_counter() - started


def through_loop(server: str, rows: int) -> float:
    """Seconds of the loop a person would write: httpx, one request a row, four at a time."""

    async def loop() -> None:
        line = iter(range(rows))
        async with httpx2.AsyncClient(timeout=60) as client:

            async def worker() -> None:
                for n in line:
                    body = {"model": "jev-latest", "state": state(n), "questions": {"q1": QUESTION}}
                    (await client.post(f"{server}/v1/systemone", json=body)).raise_for_status()

            await asyncio.gather(*(worker() for _ in range(CONCURRENCY)))

    started = time.perf_counter()
    asyncio.run(loop())
    return time.perf_counter() - started


def bare(server: str, rows: int) -> float:
    """Seconds of the cheapest client, which does nothing with what it gets: the engine's own limit on this machine."""

    async def loop() -> None:
        line = iter(range(rows))
        async with aiohttp.ClientSession() as client:

            async def worker() -> None:
                for n in line:
                    body = {"model": "jev-latest", "state": state(n), "questions": {"q1": QUESTION}}
                    async with client.post(f"{server}/v1/systemone", json=body) as response:
                        await response.read()

            await asyncio.gather(*(worker() for _ in range(CONCURRENCY)))

    started = time.perf_counter()
    asyncio.run(loop())
    return time.perf_counter() - started


def through_jev_eval(server: str, rows: int, folder: Path) -> float | None:
    """Seconds of `jev-eval run`, or None where it is not installed."""
    program = shutil.which("jev-eval", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    if program is None:
        return None
    data = folder / f"{time.time_ns()}.jsonl"
    lines = [json.dumps({"state": state(n), "labels": {"team": "billing"}}) for n in range(rows)]
    data.write_text("\n".join(lines))
    environment = {**os.environ, "JEV_API_KEY": "none", "TYPESAFE_AI_BASE_URL": f"{server}/v1"}
    command = [program, "run", "--data", str(data), "-q", "team:choice(billing,technical)"]
    started = time.perf_counter()
    subprocess.run([*command, "--cache", f"{data}.cache"], env=environment, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def compare(server: str, folder: Path, name: str, budget: str) -> list[tuple[str, str, str]]:
    """Rows of the table for one engine. The ways take turns, so that what else the machine does hits all of them."""
    with clef(upstream=server, engine="upstream", data_dir=str(folder / name.replace(" ", "-"))) as page:
        through_clef(page, 50)
        ways: dict[str, Callable[[], float | None]] = {
            "clef": lambda: through_clef(page, ROWS),
            "plain httpx loop": lambda: through_loop(server, ROWS),
            "jev-eval": lambda: through_jev_eval(server, ROWS, folder),
            "bare": lambda: bare(server, ROWS),
        }
        rounds = [{way: measure() for way, measure in ways.items()} for _ in range(ROUNDS)]
    best = {way: min(filter(None, (one[way] for one in rounds)), default=None) for way in ways}
    ours = best["clef"]
    assert ours is not None
    rows = [(f"{name}: clef", f"{ROWS / ours:.0f} rows/s", "the fastest")]
    for way, seconds in best.items():
        if way not in ("clef", "bare") and seconds:
            rows.append((f"  against {way} ({ROWS / seconds:.0f} rows/s)", f"{seconds / ours:.2f} x", ">= 1 x"))
    limit = best["bare"]
    if limit:
        what = f"  against the engine's own limit ({ROWS / limit:.0f} rows/s, a client that keeps nothing)"
        rows.append((what, f"{limit / ours:.3f}", budget))
    return rows


def measure() -> list[tuple[str, str, str]]:
    """Rows of the table: what, measured, budget."""
    with tempfile.TemporaryDirectory() as temporary:
        folder, port = Path(temporary), free_port()
        with clef(engine="builtin", data_dir=str(folder / "builtin")) as page:
            seconds = through_clef(page, BUILTIN_ROWS)
        found = [(f"{BUILTIN_ROWS:,} rows, built-in engine, stored and summarised", f"{seconds:.1f} s", "6 s")]
        with running([sys.executable, "-m", "bench.slow_server", str(port), str(PAUSE_S)]):
            wait_for(f"http://127.0.0.1:{port}/health")
            found += compare(f"http://127.0.0.1:{port}", folder, "40 ms engine", ">= 0.97")
        with llama(folder) as server:
            found += compare(server, folder, "tiny model on llama.cpp", "")
    return found
