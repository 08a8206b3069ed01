"""Turns the outcomes of a run into what its page shows beside the headline, made once and kept for a while.

Several parts of a page want the same outcomes at the same moment: they are read once, and forgotten soon, since those
of a large run are large. What was made of them is small and is kept for the runs that were looked at last.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from clef.decisions.examples import Outcome
from clef.runs.store import Store, StoredRun
from clef.web.run_filter import Labels

KEPT = 64
"""Parts of runs that are kept in memory."""
HELD_S = 20.0
"""How long the outcomes of the run that was looked at last are held."""
Make = Callable[[Sequence[Outcome]], Any]


@dataclass(slots=True)
class _Held:
    """Outcomes on their way into memory, or there, and until when they will do."""

    key: tuple[Any, ...]
    reading: asyncio.Task[list[Outcome]]
    until: float


@dataclass
class RunNumbers:
    """Parts of runs, made when they are first asked for."""

    clock: Callable[[], float] = time.monotonic
    _parts: OrderedDict[tuple[Any, ...], asyncio.Task[Any]] = field(default_factory=OrderedDict)
    _held: _Held | None = None

    async def part(self, store: Store, run: StoredRun, labels: Labels, about: tuple[Any, ...], make: Make) -> Any:
        """What `make` makes of a run's outcomes; `about` names it. Raises what reading and making raise."""
        key = (*_standing(run), labels, *about)
        task = self._parts.get(key)
        if task is None:
            task = self._parts[key] = asyncio.create_task(self._make(store, run, labels, make))
        self._parts.move_to_end(key)
        while len(self._parts) > KEPT:
            self._parts.popitem(last=False)
        try:
            return await asyncio.shield(task)
        except Exception:
            self._parts.pop(key, None)
            raise

    async def outcomes(self, store: Store, run: StoredRun) -> list[Outcome]:
        """The outcomes of a run; whoever asks while they are read waits for the same ones."""
        key = _standing(run)
        held = self._held
        if held is None or held.key != key or self.clock() > held.until:
            reading = asyncio.create_task(store.outcomes(run.id))
            held = self._held = _Held(key, reading, self.clock() + HELD_S)
            asyncio.get_running_loop().call_later(HELD_S, self._let_go, held)
        return await asyncio.shield(held.reading)

    def _let_go(self, held: _Held) -> None:
        if self._held is held:
            self._held = None

    async def _make(self, store: Store, run: StoredRun, labels: Labels, make: Make) -> Any:
        outcomes = await self.outcomes(store, run)
        if labels == "table":
            outcomes = await store.corrections.of_the_table(run.id, outcomes)
        return await asyncio.to_thread(make, outcomes)


def _standing(run: StoredRun) -> tuple[Any, ...]:
    """What changes whenever the outcomes of a run do."""
    return (run.id, run.revision)
