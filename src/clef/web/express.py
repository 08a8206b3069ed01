"""Turns requests of the few routes that every decision takes into answers, past the framework's routing.

Its layers, its dependency machinery and its look at every route cost each decision more than clef's own work.
"""

from collections.abc import Awaitable, Callable, Mapping

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

Handlers = Mapping[tuple[str, str], Callable[[Request], Awaitable[Response]]]


class Express:
    """ASGI middleware: answers some routes itself and passes on all others."""

    def __init__(self, app: ASGIApp, handlers: Handlers) -> None:
        """`handlers` by method and path."""
        self._app = app
        self._handlers = handlers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or pass on."""
        handler = self._handlers.get((scope["method"], scope["path"])) if scope["type"] == "http" else None
        if handler is None:
            await self._app(scope, receive, send)
            return
        try:
            response = await handler(Request(scope, receive, send))
        except ClientDisconnect:
            return
        await response(scope, receive, send)
