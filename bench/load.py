"""What a crowd gets: 500 clients for a minute against a tiny model, and what it leaves in memory."""

import asyncio
import tempfile
import time
from collections import Counter
from pathlib import Path

import aiohttp
import psutil

from bench.hop import BODY
from bench.servers import clef, llama

CLIENTS = 500
SECONDS = 60.0
PAUSE_S = 0.25
"""Pause of a client that was refused; a real one waits as long as Retry-After says."""


async def crowd(page: str, process: psutil.Process) -> tuple[Counter[str], list[float], list[int]]:
    """How requests ended, the seconds of those that were answered, and clef's memory once a second, in bytes."""
    ended: Counter[str] = Counter()
    seconds: list[float] = []
    memory: list[int] = []
    until = time.monotonic() + SECONDS

    async def client(session: aiohttp.ClientSession) -> None:
        while time.monotonic() < until:
            started = time.perf_counter()
            try:
                async with session.post(f"{page}/v1/systemone", json=BODY) as response:
                    await response.read()
                    stated = response.status == 200 or "retry-after" in response.headers
                    ended[str(response.status) if stated else "unstated"] += 1
                    if response.status == 200:
                        seconds.append(time.perf_counter() - started)
                        continue
            except aiohttp.ClientError as error:
                ended[type(error).__name__] += 1
            await asyncio.sleep(PAUSE_S)

    async def watch() -> None:
        while time.monotonic() < until:
            memory.append(process.memory_info().rss)
            await asyncio.sleep(1)

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        await asyncio.gather(watch(), *(client(session) for _ in range(CLIENTS)))
    return ended, seconds, memory


def measure() -> list[tuple[str, str, str]]:
    """Rows of the table: what, measured, budget."""
    with tempfile.TemporaryDirectory() as folder, llama(Path(folder)) as server, clef(upstream=server) as page:
        port = int(page.rpartition(":")[2])
        listeners = (one for one in psutil.net_connections("tcp") if one.laddr and one.laddr.port == port)
        process = psutil.Process(next(one.pid for one in listeners if one.status == "LISTEN" and one.pid))
        ended, seconds, memory = asyncio.run(crowd(page, process))
    faults = sum(count for name, count in ended.items() if name not in ("200", "529"))
    third = memory[len(memory) // 3]
    said = ", ".join(f"{name}: {count:,}" for name, count in sorted(ended.items()))
    return [
        (f"{CLIENTS} clients for {SECONDS:g} s", said, ""),
        ("  neither a decision nor a stated refusal", str(faults), "0"),
        ("  p50 of the answered", f"{sorted(seconds)[len(seconds) // 2] * 1000:.0f} ms", ""),
        ("  memory at the end against a third of the way", f"{(memory[-1] - third) / 1e6:+.1f} MB", "flat"),
    ]
