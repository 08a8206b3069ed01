"""Turns many requests into replies, so many at a time: in order, or as they come. An error stays with its item."""

import asyncio
from collections.abc import AsyncGenerator, Iterable

from clef.decisions.examples import Reply, Request
from clef.engines.engine import Engine
from clef.errors import ClefError, EngineError, InputError, Unavailable
from clef.runs.execute import decide_one


async def many(
    requests: Iterable[Request | InputError], engine: Engine, concurrency: int, *, ordered: bool
) -> AsyncGenerator[tuple[int, Reply | ClefError], None]:
    """Each request's place with its reply, or with why it has none. Requests are taken as there is room for them.

    Raises Unavailable when the engine stays away: then no request would be answered.
    """

    async def one(place: int, request: Request | InputError) -> tuple[int, Reply | ClefError]:
        if isinstance(request, InputError):
            return place, request
        try:
            return place, await decide_one(request, engine)
        except Unavailable:
            raise
        except (EngineError, InputError) as error:
            return place, error

    source = enumerate(requests)
    under_way: list[asyncio.Task[tuple[int, Reply | ClefError]]] = []
    try:
        while True:
            while len(under_way) < concurrency and (following := next(source, None)) is not None:
                under_way.append(asyncio.create_task(one(*following)))
            if not under_way:
                return
            if not ordered:
                await asyncio.wait(under_way, return_when=asyncio.FIRST_COMPLETED)
                under_way.sort(key=lambda task: not task.done())
            yield await under_way.pop(0)
    finally:
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)
