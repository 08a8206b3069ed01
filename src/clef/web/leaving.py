"""Turns the going away of a client into the end of the work that was done for it."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from starlette.requests import Request

T = TypeVar("T")
GONE = 499
"""Status for the log of a request whose client went away; nobody reads the answer."""


async def while_connected(request: Request, work: Coroutine[Any, Any, T]) -> T | None:
    """What the work returns; None when the client went away, and then the work is cancelled."""
    current = asyncio.current_task()
    assert current is not None
    gone = False

    async def watch() -> None:
        nonlocal gone
        await _left(request)
        gone = True
        current.cancel()

    watcher = asyncio.create_task(watch())
    try:
        return await work
    except asyncio.CancelledError:
        if not gone:
            raise
        current.uncancel()
        return None
    finally:
        watcher.cancel()


async def _left(request: Request) -> None:
    """Returns once the browser has gone away; the body must have been read."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
