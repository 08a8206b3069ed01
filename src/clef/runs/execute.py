"""Turns examples into outcomes through an engine: so many at a time, each as it finishes.

Invariants: never more tasks alive than `concurrency`; leaving the iteration, however, cancels what is in flight
and sends nothing more. A permanent error costs one call and becomes a failed outcome. What is transient is tried
again; an engine that stays away ends the run with its error, since going on would fail every row for a reason that
has nothing to do with the row.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Iterable

from clef.decisions.examples import Example, Failure, Outcome, Reply
from clef.engines.engine import Engine
from clef.errors import ClefError, Crashed, EngineError, InputError, Unavailable

ATTEMPTS = 5
"""Tries of one request while the engine is away or busy."""
PAUSE_S = 0.25
"""Pause before the second try; each further one is twice as long."""
CRASHES = 2
"""An input that kills the engine this often is marked and skipped."""
WAITING_PHASES = ("starting", "loading")


async def execute(examples: Iterable[Example], engine: Engine, concurrency: int) -> AsyncGenerator[Outcome, None]:
    """Outcomes in the order they finish. Raises Unavailable when the engine stays away."""
    source = iter(examples)
    pending: set[asyncio.Task[Outcome]] = set()
    try:
        while True:
            while len(pending) < concurrency and (example := next(source, None)) is not None:
                pending.add(asyncio.create_task(answer(example, engine)))
            if not pending:
                return
            done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                yield task.result()
    finally:
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)


async def answer(example: Example, engine: Engine) -> Outcome:
    """The outcome of one example asked alone. Raises Unavailable when the engine stays away."""
    started = time.perf_counter()
    try:
        reply = await _decide(example, engine)
    except (Unavailable, asyncio.CancelledError):
        raise
    except (EngineError, InputError) as error:
        return Outcome(example, None, failure_of(error), time.perf_counter() - started)
    return Outcome(example, reply.answers[0], None, time.perf_counter() - started, "isolated", reply.model)


def failure_of(error: ClefError) -> Failure:
    """The failure that an outcome keeps of an error."""
    return Failure(error.code, f"{error.message} ({error.hint})" if error.hint else error.message)


async def _decide(example: Example, engine: Engine) -> Reply:
    """Ask until answered; waits as long as the engine says it is coming up, and briefly when it is gone or busy."""
    away = crashes = 0
    while True:
        try:
            return await engine.decide(example.request)
        except Crashed:
            crashes += 1
            if crashes == CRASHES:
                raise
        except Unavailable as error:
            away += error.phase not in WAITING_PHASES
            if away == ATTEMPTS or error.phase == "failed":
                raise
            pause_s = error.retry_after_s if error.phase in WAITING_PHASES else PAUSE_S * 2 ** (away - 1)
            await asyncio.sleep(pause_s)
