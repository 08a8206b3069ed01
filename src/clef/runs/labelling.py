"""Turns records into records with answers: so many requests at a time, in the table's order, in constant memory."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass

from clef.decisions.answers import Answer
from clef.decisions.examples import Failure, Reply, Request, Shape
from clef.decisions.questions import Question, state_problems
from clef.errors import EngineError, InputError, Unavailable
from clef.runs.execute import failure_of
from clef.tables.stream import Record

AHEAD = 8
"""Records that are under way, times the requests at a time: a slow one does not hold the others up."""

Decide = Callable[[Request], Awaitable[Reply]]


@dataclass(frozen=True, slots=True)
class Labelled:
    """A record with what came back for each question, by its id."""

    record: Record
    answers: Mapping[str, Answer | Failure]


async def label(
    records: AsyncIterable[Record], questions: Mapping[str, Question], decide: Decide, concurrency: int, shape: Shape
) -> AsyncGenerator[Labelled, None]:
    """Each record with its answers, in order, as soon as it and those before it have them.

    Raises Unavailable when the engine stays away, and what `records` raises.
    """
    gate = asyncio.Semaphore(concurrency)
    waiting: asyncio.Queue[asyncio.Task[Labelled] | None] = asyncio.Queue(AHEAD * concurrency)

    async def ask(request: Request) -> tuple[Answer | Failure, ...]:
        async with gate:
            try:
                return (await decide(request)).answers
            except Unavailable:
                raise
            except (EngineError, InputError) as error:
                return (failure_of(error),) * len(request.questions)

    async def one(record: Record) -> Labelled:
        wrong = record.problem or next(
            (problem.message for problem in state_problems(record.state, has_images=bool(record.images))), None
        )
        if wrong is not None:
            return Labelled(record, dict.fromkeys(questions, Failure("bad_record", wrong)))
        asked = tuple(questions.values())
        together = [asked] if shape == "joint" else [(question,) for question in asked]
        found = [await ask(Request(record.state, some, record.images)) for some in together]
        return Labelled(record, dict(zip(questions, (answer for part in found for answer in part), strict=True)))

    async def read() -> None:
        try:
            async for record in records:
                await waiting.put(asyncio.create_task(one(record)))
        finally:
            await waiting.put(None)

    reading = asyncio.create_task(read())
    try:
        while (task := await waiting.get()) is not None:
            yield await task
        await reading
    finally:
        reading.cancel()
        left = [task for _ in range(waiting.qsize()) if (task := waiting.get_nowait()) is not None]
        for task in left:
            task.cancel()
        await asyncio.gather(reading, *left, return_exceptions=True)


async def each(records: Iterator[Record], *, may_block: bool) -> AsyncGenerator[Record, None]:
    """The records; those that `may_block`, since they come through a pipe, are waited for beside everything else."""
    while True:
        record = await asyncio.to_thread(next, records, None) if may_block else next(records, None)
        if record is None:
            return
        yield record
