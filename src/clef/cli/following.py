"""Turns a run that is under way into its end, with how far it is on a terminal meanwhile."""

import asyncio
import sys
from typing import Any

from clef.cli.service import Service
from clef.cli.terminal import say
from clef.errors import EngineError, Unavailable


async def follow(work: Service, run_id: str) -> dict[str, Any]:
    """Wait for the end of a run, its last event. Ctrl+C stops the run and says how to go on with it.

    Raises EngineError where it ended before its last row.
    """
    event: dict[str, Any] = {}
    try:
        async for event in work.events(run_id):
            _progress(event)
    except asyncio.CancelledError:
        await work.stop(run_id)
        _clear()
        done = f"{event['done']} of {event['rows']} rows are done; " if event else ""
        say(f"stopped: {done}clef runs resume {run_id} goes on", err=True)
        raise
    _clear()
    if event.get("state") != "finished":
        hint = f"clef runs resume {run_id} goes on with the rows that are left"
        message = event.get("reason") or f"the run is {event.get('state')}"
        raise (Unavailable if event.get("state") == "failed" else EngineError)(message, hint=hint)
    return event


def _progress(event: dict[str, Any]) -> None:
    """One line that is written over and over; nothing where nobody looks."""
    if not sys.stderr.isatty():
        return
    left = f", {event['left_s']:.0f} s left" if event.get("left_s") else ""
    failed = f", {event['failed']} failed" if event["failed"] else ""
    why = f": {event['reason']}" if event["state"] == "paused" and event.get("reason") else ""
    text = f"{event['done']} of {event['rows']} rows, {event['state']}{why}{failed}{left}"
    print(f"\r\x1b[K{text[:110]}", end="", file=sys.stderr, flush=True)


def _clear() -> None:
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)
