"""Turns runs in the store into outcomes in the store: one line an engine, jobs that outlive requests and processes.

    state      meaning                                              leaves it
    queued     waits for the run before it                          its turn: running; stop: stopped
    running    rows are being asked                                 last row: finished; engine gone: paused;
                                                                    stop: stopped
    paused     no engine answers; it goes on by itself              engine ready: running; stop: stopped
    stopped    someone stopped it, or another model answers now     resume, retry: queued
    failed     it cannot go on: the engine stayed away, or a bug    resume, retry: queued
    finished   every row has an outcome                             retry: queued, with its failed rows

The process may be killed at any moment: a batch of outcomes is in the store whole or not at all, and what was queued,
running or paused then goes on at the next start with the rows that have no outcome.
"""

import asyncio
import math
import time
from collections import deque
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from clef.decisions.examples import Example, Outcome
from clef.engines.engine import Engine
from clef.errors import ClefError, InputError, Unavailable
from clef.runs.job import Job
from clef.runs.store import NewRun, RunState, Store, StoredRun

WAIT_S = 1.0
"""How often a paused run looks whether its engine is back."""
RECENT = 200
"""Rows that the time left is reckoned from."""
ENDS: tuple[RunState, ...] = ("stopped", "finished", "failed")
UNREAD = 32
"""Events that are held for someone who does not read them."""
TICK_S = 0.1
"""How often at most someone who wants to know how a run stands is told of rows: it costs as much as asking one."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to a run: rows came back, or its state changed."""

    state: RunState
    done: int
    rows: int
    failed: int
    cached: int
    reason: str | None = None
    rate: float | None = None
    """Rows a second, lately."""
    left_s: float | None = None
    """Seconds that the rest will take at this rate."""
    outcomes: Sequence[Outcome] = ()
    """Those that came back since the last event."""

    @property
    def ended(self) -> bool:
        """Whether nothing more will come of this run by itself."""
        return self.state in ENDS

    def to_dict(self) -> dict[str, Any]:
        """The event as JSON, without its outcomes."""
        names = ("state", "done", "rows", "failed", "cached", "reason", "rate", "left_s")
        return {name: getattr(self, name) for name in names}


@dataclass(slots=True)
class _Progress:
    """Counts of a run that is under way."""

    run: StoredRun
    state: RunState
    reason: str | None = None
    done: int = 0
    failed: int = 0
    cached: int = 0
    recent: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=RECENT))

    def event(self, outcomes: Sequence[Outcome] = ()) -> Event:
        rate = left_s = None
        if len(self.recent) > 1:
            (first, before), (last, after) = self.recent[0], self.recent[-1]
            rate = (after - before) / (last - first) if last > first else None
            left_s = (self.run.rows - self.done) / rate if rate else None
        counts = (self.done, self.run.rows, self.failed, self.cached)
        return Event(self.state, *counts, self.reason, rate, left_s, outcomes)


class _Latest(asyncio.Queue[Event]):
    """How a run stands, for someone who may read slowly or not at all: only the last event of a state is held, without
    its outcomes, and of states that came and went the last ones. The end is always among them. A change of state comes
    at once; of rows, however fast they are, the newest count every TICK_S.
    """

    def _init(self, maxsize: int) -> None:
        self._queue: deque[Event] = deque(maxlen=UNREAD)
        self._last: Event | None = None
        self._passed = -math.inf
        self._timer: asyncio.TimerHandle | None = None

    def put_nowait(self, item: Event) -> None:
        """Pass on an event now or, where it only counts rows, when it is time."""
        goes_on = self._last is not None and (self._last.state, self._last.reason) == (item.state, item.reason)
        self._last = item
        if not goes_on or time.monotonic() - self._passed >= TICK_S:
            self._pass_on()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(TICK_S, self._pass_on)

    def _pass_on(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._passed = time.monotonic()
        if self._last is not None:
            super().put_nowait(self._last)

    def _put(self, item: Event) -> None:
        last = self._queue[-1] if self._queue else None
        if last is not None and (last.state, last.reason) == (item.state, item.reason):
            self._queue.pop()
        self._queue.append(replace(item, outcomes=()))


class RunQueue:
    """The line in front of one engine."""

    def __init__(self, store: Store, engine: Engine, concurrency: int) -> None:
        self._store = store
        self._engine = engine
        self._concurrency = concurrency
        self._line: deque[str] = deque()
        self._arrived = asyncio.Event()
        self._progress: dict[str, _Progress] = {}
        self._listeners: dict[str, list[asyncio.Queue[Event]]] = {}
        self._impatient: set[str] = set()
        self._current: tuple[str, asyncio.Task[None]] | None = None
        self._worker: asyncio.Task[None] | None = None

    async def start(self, *, take_up: bool = True) -> None:
        """Begin to work; with `take_up` on what an earlier process left as well."""
        await self._store.purge()
        for run in await self._store.live() if take_up else ():
            await self.enqueue(run.id)
        self._worker = asyncio.create_task(self._work())

    async def close(self) -> None:
        """Stop working; what is under way stays live in the store and goes on at the next start."""
        tasks = [self._worker] if self._worker else []
        tasks += [self._current[1]] if self._current else []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def submit(self, new: NewRun, examples: Sequence[Example]) -> StoredRun:
        """Make a run and put it in line."""
        run = await self._store.create(new, examples)
        await self.enqueue(run.id)
        return run

    async def enqueue(self, run_id: str, *, patient: bool = True) -> None:
        """Put a run in line. One that is not patient fails, rather than waits, when its engine goes away."""
        run = await self._store.get(run_id)
        if not patient:
            self._impatient.add(run_id)
        self._progress[run_id] = _Progress(run, "queued", None, run.done, run.failed, run.cached)
        await self._move(run_id, "queued")
        self._line.append(run_id)
        self._arrived.set()

    async def stop(self, run_id: str, reason: str = "stopped by a person") -> None:
        """End a run that is in line or under way; what came back stays. No effect on one that has ended."""
        if run_id in self._line:
            self._line.remove(run_id)
        if self._current and self._current[0] == run_id:
            task = self._current[1]
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        if run_id in self._progress:
            await self._move(run_id, "stopped", reason)

    async def resume(self, run_id: str, *, patient: bool = True) -> None:
        """Put a stopped or failed run in line again; it asks the rows that have no outcome."""
        run = await self._store.get(run_id)
        if run_id in self._progress:
            return
        if run.done == run.rows:
            raise InputError(
                f'the run "{run.name}" has an outcome for each of its {run.rows} rows', hint="retry asks failed rows"
            )
        await self.enqueue(run_id, patient=patient)

    async def retry(self, run_id: str, *, patient: bool = True) -> int:
        """Ask the failed rows of a run again; how many there are."""
        if run_id in self._progress:
            raise InputError("the run is under way", hint="wait for its end, or stop it first")
        count = await self._store.forget_failures(run_id)
        await self.enqueue(run_id, patient=patient)
        return count

    @contextmanager
    def follow(self, run_id: str, *, latest: bool = False) -> Iterator[asyncio.Queue[Event]]:
        """A queue that gets every event of a run from now on, whether or not the run is in line yet; with `latest` one
        that holds few of them, and no outcomes, however long nobody reads it.
        """
        listener: asyncio.Queue[Event] = _Latest() if latest else asyncio.Queue()
        listeners = self._listeners.setdefault(run_id, [])
        listeners.append(listener)
        try:
            yield listener
        finally:
            listeners.remove(listener)
            if not listeners:
                self._listeners.pop(run_id, None)

    async def events(self, run_id: str) -> AsyncGenerator[Event, None]:
        """What happens to a run, from how it stands now to its end."""
        with self.follow(run_id, latest=True) as listener:
            progress = self._progress.get(run_id)
            if progress is None:
                run = await self._store.get(run_id)
                yield Event(run.state, run.done, run.rows, run.failed, run.cached, run.reason)
                return
            event = progress.event()
            while True:
                yield event
                if event.ended:
                    return
                event = await listener.get()

    async def _move(self, run_id: str, state: RunState, reason: str | None = None) -> None:
        """Change a run's state, here and in the store, and tell whoever listens."""
        progress = self._progress[run_id]
        progress.state, progress.reason = state, reason
        await self._store.set_state(run_id, state, reason)
        self._tell(run_id, progress.event())
        if state in ENDS:
            del self._progress[run_id]
            self._impatient.discard(run_id)

    def _took(self, run_id: str, outcomes: Sequence[Outcome], cached: int = 0) -> None:
        """Count what came back and tell whoever listens."""
        progress = self._progress[run_id]
        progress.done += len(outcomes)
        progress.failed += sum(outcome.failure is not None for outcome in outcomes)
        progress.cached += cached
        progress.recent.append((time.monotonic(), progress.done))
        if run_id in self._listeners:
            self._tell(run_id, progress.event(outcomes))

    def _tell(self, run_id: str, event: Event) -> None:
        for listener in self._listeners.get(run_id, ()):
            listener.put_nowait(event)

    async def _work(self) -> None:
        """Take one run after the other; an error ends its run, never the line."""
        while True:
            while not self._line:
                self._arrived.clear()
                await self._arrived.wait()
            run_id = self._line.popleft()
            task = asyncio.create_task(self._run(run_id))
            self._current = (run_id, task)
            await asyncio.wait({task})  # never raises what the task raises; a stopped run is cancelled, not the line
            self._current = None

    async def _run(self, run_id: str) -> None:
        try:
            while not await self._go_on(run_id):
                pass
        except ClefError as error:
            await self._move(run_id, "failed", _why(error))
        except Exception as error:
            await self._move(run_id, "failed", f"clef itself failed: {type(error).__name__}: {error}")
            raise

    async def _go_on(self, run_id: str) -> bool:
        """Ask what has no outcome yet; False where the engine went away and should be waited for."""
        run = await self._store.get(run_id)
        if not await self._ready(run):
            return False
        if not await self._same_model(run):
            return True
        job = Job(await self._store.get(run_id), self._store, self._engine, self._took)
        try:
            await job.ask(self._concurrency)
        except Unavailable as error:
            if run_id in self._impatient:
                raise
            await self._move(run_id, "paused", _why(error))
            return False
        await self._move(run_id, "finished")
        return True

    async def _ready(self, run: StoredRun) -> bool:
        """Whether the engine answers now; else wait a little, the run being paused, or fail it if it is not patient."""
        facts = await self._engine.facts()
        if facts.reachable:
            return True
        why = facts.message or f"the engine is {facts.phase}"
        if run.id in self._impatient and facts.phase not in ("starting", "loading"):
            raise Unavailable(why, hint=facts.hint, phase=facts.phase)
        if self._progress[run.id].state != "paused":
            await self._move(run.id, "paused", why)
        await asyncio.sleep(WAIT_S)
        return False

    async def _same_model(self, run: StoredRun) -> bool:
        """Whether the model is the one that answered before; if not, the run is stopped with the reason."""
        facts = await self._engine.facts()
        if run.identity and run.identity != facts.identity:
            reason = f"{run.identity} answered its first rows, and {facts.identity} is here now; one run has one model"
            await self._move(run.id, "stopped", reason)
            return False
        await self._store.begin(run.id, facts)
        progress = self._progress[run.id]
        progress.state, progress.reason = "running", None
        progress.recent.clear()
        self._tell(run.id, progress.event())
        return True


def _why(error: ClefError) -> str:
    """The reason that is kept with a run: an error, and what to do about it."""
    return f"{error.message} ({error.hint})" if error.hint else error.message
