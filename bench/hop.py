"""What asking through clef costs against asking the same llama.cpp directly, in one run."""

import asyncio
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp

from bench.servers import clef, llama

REQUESTS = 400
ROUNDS = 5
CLIENTS = 8
STATE = "I was charged twice for my order last week"
BODY = {
    "model": "jev-latest",
    "state": STATE,
    "questions": {
        "q1": {"type": "choice", "instructions": "Which team?", "criteria": {"billing": None, "other": None}}
    },
}

Ask = Callable[[], Awaitable[None]]


async def latencies(ask: Ask, count: int) -> list[float]:
    """Seconds of each of `count` requests, one after the other."""
    found = []
    for _ in range(count):
        started = time.perf_counter()
        await ask()
        found.append(time.perf_counter() - started)
    return found


async def throughput(ask: Ask, count: int) -> float:
    """Requests a second with CLIENTS clients."""
    started = time.perf_counter()
    await asyncio.gather(*(latencies(ask, count // CLIENTS) for _ in range(CLIENTS)))
    return count / (time.perf_counter() - started)


def asker(session: aiohttp.ClientSession, url: str, body: dict[str, Any]) -> Ask:
    """A function that asks once and reads the whole answer."""

    async def ask() -> None:
        async with session.post(url, json=body) as response:
            assert response.status == 200, await response.text()
            await response.read()

    return ask


async def compare(server: str, page: str) -> list[tuple[str, str, str]]:
    """Rows of the table; direct and through take turns, so that a noisy machine is noisy for both."""
    async with aiohttp.ClientSession() as session:
        direct, through = (asker(session, f"{root}/v1/systemone", BODY) for root in (server, page))
        await latencies(direct, 50)
        await latencies(through, 50)
        extra, ratios, rates = [], [], []
        for _ in range(ROUNDS):
            ours, theirs = await latencies(through, REQUESTS), await latencies(direct, REQUESTS)
            extra.append(statistics.median(ours) - statistics.median(theirs))
            ratios.append(statistics.median(ours) / statistics.median(theirs))
            rates.append(await throughput(through, REQUESTS) / await throughput(direct, REQUESTS))
    return [
        ("/v1/systemone through clef, p50, one client", f"+ {statistics.median(extra) * 1000:.2f} ms", "+ 0.6 ms"),
        ("  against straight to the same llama.cpp", f"{statistics.median(ratios):.2f} x", ""),
        (f"  its throughput with {CLIENTS} clients", f"{statistics.median(rates):.2f} x", ">= 0.9 x"),
    ]


def measure() -> list[tuple[str, str, str]]:
    """Rows of the table: what, measured, budget."""
    with tempfile.TemporaryDirectory() as folder, llama(Path(folder)) as server, clef(upstream=server) as page:
        return asyncio.run(compare(server, page))
