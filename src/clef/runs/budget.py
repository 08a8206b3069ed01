"""Turns asks into those that fit the engine's context and those that are known not to, before any is sent.

A text never has more tokens than bytes, so only a request whose bytes could pass the limit is counted.
"""

from collections.abc import AsyncGenerator, Iterable

import orjson

from clef.decisions.wire import encode
from clef.engines.engine import Engine
from clef.errors import ClefError, TooLong
from clef.runs.plan import Ask


async def too_long(asks: Iterable[Ask], engine: Engine) -> AsyncGenerator[tuple[Ask, TooLong], None]:
    """The asks that the engine cannot read in one pass, with how long they are. Never more than it can count."""
    limit = (await engine.facts()).max_tokens
    if limit is None:
        return
    for ask in asks:
        if len(orjson.dumps(encode(ask.request))) <= limit:
            continue
        try:
            tokens = await engine.count_tokens(ask.request)
        except ClefError:
            continue  # it will be asked, and says itself what is wrong
        if tokens is not None and tokens > limit:
            yield ask, TooLong(tokens, limit)
