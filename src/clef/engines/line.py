"""Turns decisions that many ask for at once into a bounded number inside the engine, live ones first.

lane         may enter the engine                                     what cannot
live         while fewer than `at_once` live ones are inside          waits, up to `waiting` requests for `patience_s`;
                                                                      beyond either it is Overloaded at once
background   while no live one is about; one at a time while they are  waits as long as it takes

So a run takes what is left, and goes on, slowly, beside a crowd. Whoever is cancelled leaves the line or the engine.
"""

import asyncio
import contextlib
import time
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Literal

from clef.decisions.examples import Reply, Request
from clef.engines.engine import Engine, EngineFacts
from clef.errors import ClefError, Overloaded, Unavailable

Lane = Literal["live", "background"]
PARTS = 4
"""Decisions of one request that are under way together, so that one of many questions does not crowd out the rest."""
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
"""Upper ends of the ranges that durations are counted in."""
LONGEST_RETRY_S = 60


@dataclass(slots=True)
class Durations:
    """How many took how long, and how long all took."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(SECONDS) + 1))
    total_s: float = 0.0

    def add(self, seconds: float) -> None:
        """Count one."""
        self.counts[bisect_left(SECONDS, seconds)] += 1
        self.total_s += seconds


class Line:
    """The line in front of one engine. Its own `decide` is the live lane; `background` is the other one."""

    def __init__(self, engine: Engine, at_once: int = 8, waiting: int = 64, patience_s: float = 30) -> None:
        self._engine = engine
        self._at_once = at_once
        self._most = at_once + waiting
        self._patience_s = patience_s
        self._closed = False
        self._requests = 0
        self._idle = asyncio.Event()
        self._waiting: dict[Lane, deque[asyncio.Future[None]]] = {"live": deque(), "background": deque()}
        self.inside: Counter[Lane] = Counter()
        self.ended: Counter[tuple[Lane, str]] = Counter()
        """How decisions ended: by lane and by "answered" or the code of the error."""
        self.durations = Durations()
        """Of the decisions that were answered, inside the engine."""
        self.tokens = 0
        self.background: Engine = _Background(self)

    async def facts(self) -> EngineFacts:
        """As the engine says."""
        return await self._engine.facts()

    async def count_tokens(self, request: Request) -> int | None:
        """As the engine counts."""
        return await self._engine.count_tokens(request)

    async def decide(self, request: Request) -> Reply:
        """Answer a live request. Raises Overloaded where too many wait, and what the engine raises."""
        with self._admitted():
            return await self.ask("live", request)

    async def decide_each(self, requests: Sequence[Request]) -> list[Reply]:
        """Answer the parts of one live request, each a decision of its own. The first error ends all."""
        parts = asyncio.Semaphore(PARTS)

        async def one(request: Request) -> Reply:
            async with parts:
                return await self.ask("live", request)

        with self._admitted():
            try:
                async with asyncio.TaskGroup() as group:
                    tasks = [group.create_task(one(request)) for request in requests]
            except ExceptionGroup as errors:
                raise errors.exceptions[0] from None
        return [task.result() for task in tasks]

    async def ask(self, lane: Lane, request: Request) -> Reply:
        """Answer in a lane, for whoever was admitted."""
        try:
            async with self._place(lane):
                started = time.perf_counter()
                reply = await self._engine.decide(request)
        except ClefError as error:
            self.ended[lane, error.code] += 1
            raise
        self.durations.add(time.perf_counter() - started)
        self.tokens += reply.input_tokens or 0
        self.ended[lane, "answered"] += 1
        return reply

    def waiting(self, lane: Lane) -> int:
        """Decisions that wait for a place."""
        return len(self._waiting[lane])

    async def drain(self, limit_s: float) -> None:
        """Take no more live requests, and return once those that are here are answered, or after the limit."""
        self._closed = True
        if self._requests:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(limit_s):
                    await self._idle.wait()

    @contextmanager
    def _admitted(self) -> Iterator[None]:
        if self._closed:
            raise Unavailable("clef is ending", phase="off")
        if self._requests >= self._most:
            self.ended["live", Overloaded.code] += 1
            raise self._overloaded(f"{self._requests} requests are here already")
        self._requests += 1
        self._idle.clear()
        try:
            yield
        finally:
            self._requests -= 1
            if not self._requests:
                self._idle.set()

    @asynccontextmanager
    async def _place(self, lane: Lane) -> AsyncGenerator[None, None]:
        if self._waiting[lane] or not self._may_enter(lane):
            await self._wait(lane)
        else:
            self.inside[lane] += 1
        try:
            yield
        finally:
            self.inside[lane] -= 1
            self._let_in()

    async def _wait(self, lane: Lane) -> None:
        """Return once there is a place, which is then taken."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        line = self._waiting[lane]
        line.append(turn)
        try:
            async with asyncio.timeout(self._patience_s if lane == "live" else None):
                await turn
        except BaseException as error:
            if turn.done() and not turn.cancelled():  # the place came in the same moment
                self.inside[lane] -= 1
            else:
                line.remove(turn)
            self._let_in()
            if isinstance(error, TimeoutError):
                raise self._overloaded(f"no place in the engine within {self._patience_s:g} s") from None
            raise

    def _let_in(self) -> None:
        lanes: tuple[Lane, ...] = ("live", "background")
        for lane in lanes:
            line = self._waiting[lane]
            while line and self._may_enter(lane):
                turn = line.popleft()
                if not turn.done():
                    self.inside[lane] += 1
                    turn.set_result(None)

    def _may_enter(self, lane: Lane) -> bool:
        if lane == "live":
            return self.inside["live"] < self._at_once
        crowd = self.inside["live"] or self._waiting["live"]
        return not crowd or not self.inside["background"]

    def _overloaded(self, message: str) -> Overloaded:
        answered = sum(self.durations.counts)
        each_s = self.durations.total_s / answered if answered else 1.0
        retry_s = min(LONGEST_RETRY_S, max(1, round(self._requests * each_s / self._at_once)))
        return Overloaded(f"too much to decide at once: {message}", retry_after_s=retry_s, phase="ready")


class _Background:
    """The lane of runs."""

    def __init__(self, line: Line) -> None:
        self._line = line

    async def facts(self) -> EngineFacts:
        """As the engine says."""
        return await self._line.facts()

    async def decide(self, request: Request) -> Reply:
        """Answer when nobody is waiting for an answer; see `Line`."""
        return await self._line.ask("background", request)

    async def count_tokens(self, request: Request) -> int | None:
        """As the engine counts."""
        return await self._line.count_tokens(request)
