"""Turns asks into what came back through an engine: so many at a time, each as it finishes.

Invariants: never more tasks alive than `concurrency`; leaving the iteration, however, cancels what is in flight
and sends nothing more. A permanent error costs one call and becomes a failure. What is transient is tried again; an
engine that stays away ends the iteration with its error, since going on would fail every row for a reason that has
nothing to do with the row.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass

from clef.decisions.examples import PROBE, Example, Failure, Outcome, Reply, Request, Shape
from clef.engines.engine import Engine
from clef.errors import Barred, ClefError, Crashed, EngineError, InputError, Unavailable
from clef.runs.plan import Ask, plan

ATTEMPTS = 5
"""Tries of one request while the engine is away or busy."""
PAUSE_S = 0.25
"""Pause before the second try; each further one is twice as long."""
CRASHES = 2
"""An input that kills the engine this often is marked and skipped."""
AHEAD = 64
"""Answers that may wait for whoever iterates before the engine is kept waiting."""
WAITING_PHASES = ("starting", "loading")


@dataclass(frozen=True, slots=True)
class Answered:
    """What came back for one request: a reply or a failure."""

    ask: Ask
    reply: Reply | None
    failure: Failure | None
    elapsed_s: float

    def outcomes(self, examples: Mapping[int, Example] | Sequence[Example], shape: Shape) -> list[tuple[int, Outcome]]:
        """The outcome of every example that the request stands for, with its place."""
        model = self.reply.model if self.reply else ""
        return [
            (
                position,
                Outcome(
                    examples[position],
                    self.reply.answers[number] if self.reply else None,
                    self.failure,
                    self.elapsed_s,
                    shape,
                    model,
                ),
            )
            for number, positions in enumerate(self.ask.positions)
            for position in positions
        ]


async def execute(
    asks: Iterable[Ask] | AsyncIterator[Ask], engine: Engine, concurrency: int
) -> AsyncGenerator[Answered, None]:
    """What came back, in the order it finished. Raises Unavailable when the engine stays away.

    The engine is kept busy while whoever iterates writes down what came: up to AHEAD answers wait for them.
    """
    source = asks if isinstance(asks, AsyncIterator) else _each(asks)
    turn = asyncio.Lock()
    results: asyncio.Queue[Answered | Exception | None] = asyncio.Queue(AHEAD)

    async def following() -> Ask | None:
        async with turn:
            return await anext(source, None)

    async def work() -> None:
        try:
            while (ask := await following()) is not None:
                await results.put(await answer(ask, engine))
        except Exception as error:
            await results.put(error)
        await results.put(None)

    workers = [asyncio.create_task(work()) for _ in range(concurrency)]
    try:
        working = concurrency
        while working:
            result = await results.get()
            if isinstance(result, Exception):
                raise result
            if result is None:
                working -= 1
            else:
                yield result
    finally:
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)


async def _each(asks: Iterable[Ask]) -> AsyncGenerator[Ask, None]:
    for ask in asks:
        yield ask


async def outcomes(
    examples: Sequence[Example], engine: Engine, concurrency: int, shape: Shape = "isolated"
) -> AsyncGenerator[tuple[int, Outcome], None]:
    """The outcome of each example with its place, in the order they finished; identical requests are sent once."""
    source = execute(plan(enumerate(examples), shape), engine, concurrency)
    try:
        async for answered in source:
            for placed in answered.outcomes(examples, shape):
                yield placed
    finally:
        await source.aclose()


async def answer(ask: Ask, engine: Engine) -> Answered:
    """What comes back for one request. Raises Unavailable when the engine stays away."""
    started = time.perf_counter()
    try:
        reply = await decide_one(ask.request, engine)
    except Unavailable:
        raise
    except (EngineError, InputError) as error:
        return Answered(ask, None, failure_of(error), time.perf_counter() - started)
    return Answered(ask, reply, None, time.perf_counter() - started)


async def decide_one(request: Request, engine: Engine) -> Reply:
    """As `decide`, for one request of many. What bars every request is Unavailable, for good: going on is of no use.

    What a server says of its key, model or address may be about this request after all, as where a firewall answers
    403 to a text it does not like; so the smallest decision is asked too.
    """
    try:
        return await decide(request, engine)
    except Barred as error:
        try:
            await decide(PROBE, engine)
        except Barred:
            raise Unavailable(error.message, hint=error.hint, phase="failed") from error
        raise


def failure_of(error: ClefError) -> Failure:
    """The failure that is kept of an error."""
    return Failure(error.code, f"{error.message} ({error.hint})" if error.hint else error.message)


async def decide(request: Request, engine: Engine) -> Reply:
    """Ask until answered; waits as long as the engine says it is coming up, and briefly when it is gone or busy.

    Raises EngineError or InputError where it cannot be answered.
    """
    away = crashes = 0
    while True:
        try:
            return await engine.decide(request)
        except Crashed:
            crashes += 1
            if crashes == CRASHES:
                raise
        except Unavailable as error:
            away += error.phase not in WAITING_PHASES
            if away == ATTEMPTS or error.phase == "failed":
                raise
            told = error.phase in WAITING_PHASES or error.is_asked_for
            pause_s = error.retry_after_s if told else PAUSE_S * 2 ** (away - 1)
            await asyncio.sleep(pause_s)
