"""What eight questions on one state cost asked together, against each alone: the same requests through clef."""

import asyncio
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import aiohttp

from bench.servers import clef, llama

ROUNDS = 30
STATE = " ".join(["I was charged twice for my order last week, and the second payment has not come back."] * 16)
"""About 1,400 characters, a longer mail; the tiny model reads a byte as a token, so it is long for it."""
QUESTIONS: dict[str, Any] = {
    f"q{number}": {
        "type": "choice",
        "instructions": f"Which team should handle part {number} of this?",
        "criteria": {"billing": "payments", "technical": "bugs"},
    }
    for number in range(1, 9)
}


async def ask(session: aiohttp.ClientSession, page: str, shape: str) -> tuple[float, int]:
    """Seconds and tokens of one request in a shape."""
    body = {"model": "jev-latest", "state": STATE, "questions": QUESTIONS, "x_questions": shape}
    started = time.perf_counter()
    async with session.post(f"{page}/v1/systemone", json=body) as response:
        found = await response.json()
        assert response.status == 200, found
        assert found["x_questions"] == shape
        return time.perf_counter() - started, found["usage"]["input_tokens"]


async def compare(page: str) -> list[tuple[str, str, str]]:
    """Rows of the table; the shapes take turns."""
    async with aiohttp.ClientSession() as session:
        pairs = [(await ask(session, page, "joint"), await ask(session, page, "isolated")) for _ in range(ROUNDS)]
    tokens = pairs[0][0][1] / pairs[0][1][1]
    seconds = statistics.median(joint[0] / isolated[0] for joint, isolated in pairs)
    return [
        ("eight questions on one state, together against alone: tokens", f"{tokens:.2f} x", "<= 0.35 x"),
        ("  time, through clef on the tiny model", f"{seconds:.2f} x", ""),
    ]


def measure() -> list[tuple[str, str, str]]:
    """Rows of the table: what, measured, budget."""
    with tempfile.TemporaryDirectory() as folder, llama(Path(folder), 16_384) as server, clef(upstream=server) as page:
        return asyncio.run(compare(page))
