"""A System One server that takes a set time for each answer: `python -m bench.slow_server PORT SECONDS`."""

import asyncio
import sys
from typing import Any

from aiohttp import web

from tests.fakes.system_one import SystemOne, even


def main() -> None:
    """Serve until terminated."""
    port, pause_s = int(sys.argv[1]), float(sys.argv[2])
    server = SystemOne()

    async def handler(server: SystemOne, body: dict[str, Any]) -> web.StreamResponse:
        await asyncio.sleep(pause_s)
        return web.json_response(even(body))

    server.handler = handler
    web.run_app(server.app(), host="127.0.0.1", port=port, print=None)


if __name__ == "__main__":
    main()
