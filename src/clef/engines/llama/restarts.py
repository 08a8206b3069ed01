"""Turns deaths into what happens next: start again after a pause, or give up.

Two rules, because they are two troubles. While starting, only a crash (a signal) is worth another try, a few times:
a server that ends by itself has said why and will say it again. While serving, deaths are counted over a window, so
that a server which answers once and dies does not start for ever; a good start wipes nothing off the count.
"""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast things go; tests go faster."""

    poll_s: float = 0.05
    """Between two looks at a server that is starting."""
    grace_s: float = 5.0
    """From SIGTERM to SIGKILL."""
    pauses_s: tuple[float, ...] = (0.5, 2.0, 8.0)
    """Before the first, second, … start after a death; the last one stands for all further ones."""
    deaths: int = 3
    """Deaths while serving, within the window, that are followed by a restart."""
    window_s: float = 600.0
    """How long a death while serving counts."""
    strikes: int = 3
    """Decisions in a row that get no proper reply before the server itself is put to the test."""

    def pause(self, earlier: int) -> float:
        """The pause before a start that follows `earlier` deaths, at least one."""
        return self.pauses_s[min(earlier, len(self.pauses_s)) - 1]


class Budget:
    """Deaths while serving, over a sliding window."""

    def __init__(self, pace: Pace, clock: Callable[[], float] = time.monotonic) -> None:
        self._pace = pace
        self._clock = clock
        self._deaths: deque[float] = deque()
        self._forgiven = 0

    def spend(self) -> float | None:
        """Count a death; the pause before the restart, or None when there have been too many."""
        now = self._clock()
        while self._deaths and now - self._deaths[0] > self._pace.window_s:
            self._deaths.popleft()
        self._deaths.append(now)
        self._settle()
        spent = len(self._deaths)
        return None if spent > self._pace.deaths else self._pace.pause(max(1, spent))

    def forgive(self, deaths: int) -> None:
        """Take the last deaths off the count, one that is about to be counted included: an input was to blame."""
        self._forgiven += deaths
        self._settle()

    def _settle(self) -> None:
        while self._deaths and self._forgiven:
            self._deaths.pop()
            self._forgiven -= 1

    @property
    def spent(self) -> int:
        """Deaths that count now."""
        return len(self._deaths)
