"""Turns a wait for something into a wait that a stop ends."""

import asyncio
import contextlib
from typing import Any


async def first_of(stop: asyncio.Event, tasks: "set[asyncio.Task[Any]]", timeout_s: float | None = None) -> None:
    """Wait for one of the tasks, the stop, or the time-out."""
    stopping = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({stopping, *tasks}, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopping.cancel()


async def stopped_within(stop: asyncio.Event, pause_s: float) -> bool:
    """Pause, unless the stop comes first; whether it came."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(pause_s):
            await stop.wait()
    return stop.is_set()
