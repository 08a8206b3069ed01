"""Turns an app and a listening socket into a clef that serves until it is told to end.

The first SIGINT or SIGTERM ends it in order: open requests get their grace, the engine is stopped, the store closed.
The second ends the process at once. What is kept is written in transactions, so a row is lost at most; and the child
of an engine is ended first, and by its tie to this process if that fails.
"""

import contextlib
import os
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager
from types import FrameType

import uvicorn

HANDLED = (signal.SIGINT, signal.SIGTERM)


class Server(uvicorn.Server):
    """A uvicorn server with our own way of ending. `serving` is entered while it answers."""

    def __init__(
        self, config: uvicorn.Config, serving: Callable[[], AbstractContextManager[None]], hurry: Callable[[], None]
    ) -> None:
        """`hurry` ends at once what would outlive this process; it must not wait."""
        super().__init__(config)
        self._serving = serving
        self._hurry = hurry
        self.ended_by: int | None = None
        """The signal that asked for the end; None where nobody did."""
        self.drain: Callable[[], Awaitable[None]] | None = None
        """Waits for the decisions under way, before anything is closed."""

    async def main_loop(self) -> None:
        """Serve."""
        with self._serving():
            await super().main_loop()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Answer what is under way, then close."""
        if self.drain is not None:
            await self.drain()
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle signals while the block runs. uvicorn's own way raises them again, inside of the event loop, which
        shows a traceback of whatever was being closed."""
        before = {number: signal.signal(number, self._asked) for number in HANDLED}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _asked(self, number: int, _: FrameType | None) -> None:
        if self.ended_by is None:
            self.ended_by = number
            self.should_exit = True
            return
        self._hurry()
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
        os._exit(128 + number)
