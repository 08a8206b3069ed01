"""Turns requests that must not get in into refusals, and marks every answer for the browser.

A body over the limit is refused by its announced length, before a byte of it is read, or where it passes the limit.
A page on the internet can make the person's own browser talk to 127.0.0.1. So the Host must be a loopback name
(against DNS rebinding), and a change must not come from another origin (against cross-site requests).
"""

from collections.abc import Callable
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from clef.errors import ClefError, TooLarge

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
LOOPBACK_HOSTS = frozenset({"127.0.0.1", "localhost", "::1"})
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})

Render = Callable[[ClefError], ASGIApp]


class Forbidden(ClefError):
    """The request does not come from this page or this machine's programs."""

    code = "forbidden"
    status = 403
    fault = "input"


class Guard:
    """ASGI middleware: refuses foreign hosts, foreign origins and large bodies, and sets the security headers."""

    def __init__(self, app: ASGIApp, render: Render, max_body: int) -> None:
        """`render` makes the response of an error; `max_body` is in bytes."""
        self._app = app
        self._render = render
        self._max_body = max_body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on what is allowed."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        received = 0

        async def receive_bounded() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > self._max_body:
                raise too_large(self._max_body)
            return message

        headers = Headers(scope=scope)
        announced = headers.get("content-length", "")
        refusal: ClefError | None = refuse(scope["method"], headers)
        if announced.isdecimal() and int(announced) > self._max_body:
            refusal = refusal or too_large(self._max_body)
        app = self._render(refusal) if refusal else self._app
        await app(scope, receive_bounded, send_marked)


def too_large(limit: int) -> TooLarge:
    """The error for a body over the limit, in bytes."""
    message = f"more than {limit / 1e6:g} MB, which is the limit of one request"
    return TooLarge(message, hint="raise CLEF_MAX_BODY, or send less")


def refuse(method: str, headers: Headers) -> Forbidden | None:
    """Why a request is not let in, or None where it is."""
    host = headers.get("host", "")
    name = urlsplit(f"//{host}").hostname or ""
    if name not in LOOPBACK_HOSTS:
        return Forbidden(
            f'clef does not answer to the name "{name}"', hint="open it as http://127.0.0.1 or http://localhost"
        )
    if method in SAFE_METHODS:
        return None
    origin = headers.get("origin")
    if origin is not None and urlsplit(origin).netloc != host:
        return Forbidden(f"a page of {origin} may not make clef do anything")
    if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return Forbidden("a page of another site may not make clef do anything")
    return None
