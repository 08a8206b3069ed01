"""Turns the pieces of an HTTP response into one write to the socket.

uvicorn writes head and body apart. A client then wakes twice for one small answer, and on a machine whose cores are
busy with the model that costs more than all of our own work on it: with eight clients, half of the throughput
(`bench/hop.py`).
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

AT_ONCE = 65_536
"""Bytes that are written without waiting for more, so that a long answer is not gathered in memory."""


class OneWrite(asyncio.Transport):
    """A transport that writes what it was given within one turn of the event loop as one piece."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._transport = transport
        self._loop = loop
        self._pieces: list[bytes | bytearray | memoryview[Any]] = []
        self._size = 0

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        """Keep `data` until the turn ends."""
        if not data:
            return
        if not self._pieces:
            self._loop.call_soon(self.flush)
        self._pieces.append(data)
        self._size += len(data)
        if self._size >= AT_ONCE:
            self.flush()

    def flush(self) -> None:
        """Write what was kept."""
        if self._pieces:
            data = b"".join(self._pieces)
            self._pieces.clear()
            self._size = 0
            self._transport.write(data)

    def close(self) -> None:
        """Close once all is written."""
        self.flush()
        self._transport.close()

    def abort(self) -> None:
        """Close at once; what is not written is lost."""
        self._transport.abort()

    def is_closing(self) -> bool:
        """Whether it was closed."""
        return self._transport.is_closing()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """What the transport underneath knows of its socket."""
        return self._transport.get_extra_info(name, default)

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Hand what arrives to another protocol."""
        self._transport.set_protocol(protocol)

    def pause_reading(self) -> None:
        """Take no more from the socket."""
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Take from the socket again."""
        self._transport.resume_reading()


class OneWriteProtocol(H11Protocol):
    """uvicorn's HTTP/1.1 on such a transport. With httptools instead of h11 nothing was gained here."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin with a connection."""
        super().connection_made(OneWrite(transport, self.loop))
