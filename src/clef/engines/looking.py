"""Turns the upstream address into the decision server that is there, or into words about what is.

The HTTP client costs 0.15 s of start-up, so it is imported only where something listens.
"""

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clef.engines import holders
from clef.engines.reaching import listens
from clef.settings import Settings

if TYPE_CHECKING:
    from clef.engines.upstream import UpstreamEngine

LOOK_TIMEOUT_S = 10.0
"""A server that is there gets this long for its first decision before the next choice is taken."""


@dataclass(frozen=True, slots=True)
class Found:
    """What is at the upstream address."""

    server: "UpstreamEngine | None" = None
    """One that answers decisions, or is loading its model; whoever gets it closes it."""
    note: str | None = None
    """What a person should know who set the address, or whose program is there."""


def upstream_of(settings: Settings) -> "UpstreamEngine":
    """The server at the upstream address, whatever it is."""
    from clef.engines.upstream import UpstreamEngine

    key = settings.upstream_key
    return UpstreamEngine(
        settings.upstream,
        key=key.get_secret_value() if key else None,
        model=settings.upstream_model,
        timeout_s=settings.upstream_timeout,
    )


async def look(settings: Settings) -> Found:
    """See what is at the upstream address. A stranger is named with its process, and left alone."""
    address = settings.upstream
    if not await listens(address):
        was_set = "upstream" in settings.model_fields_set
        return Found(note=f"Nothing answers at {address} (CLEF_UPSTREAM)." if was_set else None)
    server, is_used = upstream_of(settings), False
    try:
        facts = await server.probe(LOOK_TIMEOUT_S)
        is_used = facts.phase in ("ready", "loading")
    finally:
        if not is_used:
            await server.close()
    if is_used:
        return Found(server)
    whose = await asyncio.to_thread(holders.at, address)
    return Found(note=f"What listens at {address}{whose} is not used, and left alone: {facts.message}.")
