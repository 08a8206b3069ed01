"""Turns deaths of the server into inputs that are not sent again.

request      what happens to it
new          is sent together with others
suspect      was in flight at a death; its next try runs alone, so that its guilt or innocence shows
convicted    ran alone, and the server died again: refused from then on

Kept are digests, no text.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import orjson

from clef.decisions.examples import Request
from clef.decisions.wire import encode
from clef.errors import Refused


class Turns:
    """Lets requests through, together or alone."""

    def __init__(self) -> None:
        self._suspects: dict[bytes, int] = {}
        """By digest: the death it was in flight at."""
        self._convicted: set[bytes] = set()
        self._together = 0
        self._alone = 0
        """Suspects that run or wait for the others to finish."""
        self._running_alone = False
        self._changed = asyncio.Event()

    @asynccontextmanager
    async def take(self, request: Request) -> AsyncIterator[None]:
        """The request's turn, for as long as it is in flight. Raises Refused for a convicted one."""
        if not self._suspects and not self._convicted:
            self._together += 1
            try:
                yield
            finally:
                self._together -= 1
                self._tell()
            return
        key = digest(request)
        if key in self._convicted:
            raise Refused("this input ended llama.cpp twice, so it is not sent again", hint="report it to llama.cpp")
        async with self._by_itself() if key in self._suspects else self._with_others():
            yield

    def blame(self, request: Request, death: int) -> bool:
        """The server died its `death` with this request in flight; whether that convicts it."""
        key = digest(request)
        if self._suspects.setdefault(key, death) == death:  # the same input may be in flight several times
            return False
        del self._suspects[key]
        self._convicted.add(key)
        return True

    def clear(self, request: Request) -> None:
        """The request was answered."""
        if self._suspects:
            self._suspects.pop(digest(request), None)

    @asynccontextmanager
    async def _with_others(self) -> AsyncIterator[None]:
        while self._alone:
            await self._changed.wait()
        self._together += 1
        try:
            yield
        finally:
            self._together -= 1
            self._tell()

    @asynccontextmanager
    async def _by_itself(self) -> AsyncIterator[None]:
        self._alone += 1
        mine = False
        try:
            while self._together or self._running_alone:
                await self._changed.wait()
            self._running_alone = mine = True
            yield
        finally:
            self._alone -= 1
            if mine:
                self._running_alone = False
            self._tell()

    def _tell(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()


def digest(request: Request) -> bytes:
    """What tells requests apart by what the model reads."""
    return hashlib.blake2b(orjson.dumps(encode(request)), digest_size=16).digest()
