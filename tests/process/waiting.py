"""Turns a condition into a bounded wait for it."""

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path

PATIENCE_S = 10.0
"""Far more than anything here takes; only a failing test waits so long."""


async def until(condition: Callable[[], object], within_s: float = PATIENCE_S) -> None:
    """Return when the condition holds; fail when it does not in time."""
    end = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < end, "what was waited for did not come"
        await asyncio.sleep(0.005)


def wait_for(condition: Callable[[], object], within_s: float = 15) -> None:
    """As `until`, where nothing else is to go on meanwhile."""
    end = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < end, "what was waited for did not come"
        time.sleep(0.02)


def is_alive(pid: int) -> bool:
    """Whether the process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def pids_in(file: Path) -> list[int]:
    """The pids that were written to a file."""
    return [int(pid) for pid in file.read_text().split()]


def signal_process(pid: int, number: int) -> None:
    """Send a signal to one process that the test started."""
    os.kill(pid, number)
