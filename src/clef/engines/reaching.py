"""Turns an http address into whether anything listens there, without an HTTP client."""

import asyncio
from urllib.parse import urlsplit

CONNECT_TIMEOUT_S = 1.0


async def listens(address: str) -> bool:
    """Whether anything accepts connections at an http address."""
    parts = urlsplit(address)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            _, writer = await asyncio.open_connection(parts.hostname, port)
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True
