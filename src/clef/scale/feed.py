"""Turns an iterator that may block into one that can be asked whether it has something, by a thread with a bound."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from types import TracebackType

from clef.scale.parts import Part

LOOK_S = 0.2
"""How often a full queue looks whether anybody still takes from it."""


class Feed:
    """Parts that are read ahead, a bounded number of them. Use as a context manager."""

    def __init__(self, parts: Iterator[Part], ahead: int) -> None:
        self._parts = parts
        self._queue: queue.Queue[Part | BaseException | None] = queue.Queue(ahead)
        self._next: Part | None = None
        self._left = threading.Event()
        self._thread = threading.Thread(target=self._read, name="clef-feed", daemon=True)
        self.is_over = False
        """Whether there is nothing more to come."""

    def __enter__(self) -> Feed:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._left.set()

    def take(self) -> Part | None:
        """The next part if it is there; None otherwise. Raises what reading raised."""
        self.wait(0)
        part, self._next = self._next, None
        return part

    def wait(self, timeout_s: float) -> None:
        """Wait until there is a part to take, or none will come, or the time is over."""
        if self._next is not None or self.is_over:
            return
        try:
            got = self._queue.get(block=timeout_s > 0, timeout=timeout_s)
        except queue.Empty:
            return
        if isinstance(got, BaseException):
            raise got
        self._next, self.is_over = got, got is None

    def _read(self) -> None:
        try:
            for part in self._parts:
                if not self._put(part):
                    return
            self._put(None)
        except Exception as error:
            self._put(error)

    def _put(self, item: Part | BaseException | None) -> bool:
        """Whether it was put before whoever takes has left."""
        while not self._left.is_set():
            try:
                self._queue.put(item, timeout=LOOK_S)
                return True
            except queue.Full:
                continue
        return False
