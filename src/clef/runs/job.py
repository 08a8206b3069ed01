"""Turns what a run has left to ask into outcomes in the store: known answers first, the rest through the engine.

Outcomes are told as they come and written in batches; whatever ends the work, the batch under way is written.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence

from clef.decisions.answers import Answer
from clef.decisions.examples import Example, Outcome, Reply
from clef.engines.engine import Engine
from clef.runs.budget import too_long
from clef.runs.execute import Answered, execute, failure_of
from clef.runs.plan import Ask, plan
from clef.runs.store import Numbered, Store, StoredRun

BATCH = 200
"""Outcomes that are written together at most."""
FLUSH_S = 0.25
"""How long an outcome may wait for others to be written with."""
PART = 2000
"""Rows that are read, and whose answers are looked up, together."""

Took = Callable[[str, Sequence[Outcome], int], None]
"""Told of a run's id, outcomes that came back, and how many of them were known."""


class Job:
    """One pass over the rows of a run that have no outcome."""

    def __init__(self, run: StoredRun, store: Store, engine: Engine, took: Took) -> None:
        self._run, self._store, self._engine, self._took = run, store, engine, took
        self._waiting: list[Numbered] = []
        self._replies: dict[bytes, Reply] = {}
        self._flushed = time.monotonic()
        self._timer: asyncio.TimerHandle | None = None
        self._late: asyncio.Future[None] | None = None
        self._examples: dict[int, Example] = {}
        self._keys: dict[int, bytes] = {}

    async def ask(self, concurrency: int) -> None:
        """Ask every row that has no outcome. Raises Unavailable where the engine stays away."""
        try:
            async with (
                contextlib.aclosing(self._asks()) as asks,
                contextlib.aclosing(execute(asks, self._engine, concurrency)) as answers,
            ):
                async for answered in answers:
                    await self._take(answered)
        finally:
            await asyncio.shield(self._end())

    async def _asks(self) -> AsyncGenerator[Ask, None]:
        """What is to be asked; while one part is, the next is made ready, so that the engine never waits for it."""
        parts = _parts(await self._store.unanswered(self._run.id))
        following: asyncio.Task[list[Ask]] | None = None
        try:
            for part in parts:
                ready = following
                following = asyncio.create_task(self._prepare(part))
                for ask in await ready if ready else ():
                    yield ask
            for ask in await following if following else ():
                yield ask
        finally:
            if following is not None:
                following.cancel()
                await asyncio.gather(following, return_exceptions=True)

    async def _prepare(self, positions: Sequence[int]) -> list[Ask]:
        """The requests for some rows; those that need none, being known or too long, get their outcome at once."""
        examples = await self._store.examples(self._run.id, positions)
        asks = await asyncio.to_thread(plan, examples.items(), self._run.shape)
        keys = {id(ask): ask.key(self._run.identity, self._run.shape) for ask in asks}
        unknown = await self._take_known(asks, keys, examples) if self._run.use_cache else asks
        unknown = await self._drop_too_long(unknown, examples)
        for ask in unknown:
            self._keys[id(ask)] = keys[id(ask)]
            for place in ask.places:
                self._examples[place] = examples[place]
        return unknown

    async def _take_known(
        self, asks: Sequence[Ask], keys: Mapping[int, bytes], examples: Mapping[int, Example]
    ) -> list[Ask]:
        """Take the answers that earlier runs got; the requests that are left."""
        known = await self._store.known([keys[id(ask)] for ask in asks])
        left = []
        for ask in asks:
            kept = known.get(keys[id(ask)])
            if kept is None:
                left.append(ask)
                continue
            probabilities, model = kept
            pairs = zip(ask.request.questions, probabilities, strict=True)
            answers = tuple(Answer(question.type, question.answers, tuple(values)) for question, values in pairs)
            outcomes = Answered(ask, Reply(answers, model), None, 0.0).outcomes(examples, self._run.shape)
            await self._keep(outcomes, cached=True)
        return left

    async def _drop_too_long(self, asks: Sequence[Ask], examples: Mapping[int, Example]) -> list[Ask]:
        """Fail the rows that are known to be too long, without a call; the requests that are left."""
        dropped = set()
        async for ask, error in too_long(asks, self._engine):
            dropped.add(id(ask))
            failed = Answered(ask, None, failure_of(error), 0.0)
            await self._keep(failed.outcomes(examples, self._run.shape))
        return [ask for ask in asks if id(ask) not in dropped]

    async def _take(self, answered: Answered) -> None:
        key = self._keys.pop(id(answered.ask))
        if answered.reply is not None:
            self._replies[key] = answered.reply
        examples = {place: self._examples.pop(place) for place in answered.ask.places}
        await self._keep(answered.outcomes(examples, self._run.shape))

    async def _keep(self, outcomes: Sequence[tuple[int, Outcome]], *, cached: bool = False) -> None:
        self._waiting += [Numbered(position, outcome, cached) for position, outcome in outcomes]
        self._took(self._run.id, [outcome for _, outcome in outcomes], len(outcomes) if cached else 0)
        if len(self._waiting) >= BATCH or time.monotonic() - self._flushed > FLUSH_S:
            await asyncio.shield(self._flush())
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(FLUSH_S, self._flush_late)
        if self._late is not None and self._late.done():
            late, self._late = self._late, None
            late.result()

    def _flush_late(self) -> None:
        """Write what waits though no outcome comes that would have it written."""
        self._timer, self._late = None, asyncio.ensure_future(self._flush_after(self._late))

    async def _flush_after(self, late: asyncio.Future[None] | None) -> None:
        """Write once a write that is on its way is through; one that failed is not forgotten."""
        if late is not None:
            await late
        await self._flush()

    async def _end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        try:
            if self._late is not None:
                await self._late
        finally:
            await self._flush()

    async def _flush(self) -> None:
        batch, self._waiting = self._waiting, []
        replies, self._replies = self._replies, {}
        self._flushed = time.monotonic()
        if batch:
            await self._store.add(self._run.id, batch, replies)


def _parts(groups: Iterable[int | list[int]]) -> Iterator[list[int]]:
    """The places of so many rows at a time, those of one state never parted."""
    part: list[int] = []
    for group in groups:
        part += group if isinstance(group, list) else [group]
        if len(part) >= PART:
            yield part
            part = []
    if part:
        yield part
