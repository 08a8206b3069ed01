"""Turns requests that must not get in into refusals, and marks every answer for the browser.

    host       a name that clef answers to                                against DNS rebinding
    origin     a change comes from this page, or from no page at all      against cross-site requests
    key        a bearer token, x-api-key, or a session of the page        where keys are asked for
    length     by what is announced, or where a body passes the limit

A page on the internet can make the person's own browser talk to 127.0.0.1, so the first two hold without keys too.
"""

import time
from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from clef.errors import ClefError, TooLarge
from clef.web.keys import Unauthorized
from clef.web.metrics import Requests
from clef.web.reach import Reach

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # with no-referrer a form of our own page has no origin
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
RAW_HEADERS = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
FOR_PROGRAMS = ("/api/", "/v1/", "/metrics", "/openapi.json")
"""Paths that programs use; all others are pages and what belongs to them."""
OPEN = ("/static/", "/sign-in")
"""Paths that need no key: what the page that asks for one is made of."""
CORS_HEADERS = {
    "Access-Control-Allow-Methods": "GET, POST, PATCH, DELETE, OPTIONS",
    "Access-Control-Allow-Headers": "authorization, content-type, content-encoding, x-api-key",
    "Access-Control-Expose-Headers": "x-typesafe-request-id, retry-after",
    "Access-Control-Max-Age": "600",
}
SESSION = "clef.session"
"""Where a request that came with a session has the session's cookie in its scope."""

Render = Callable[[Scope, ClefError], ASGIApp]


class Forbidden(ClefError):
    """The request does not come from this page or this machine's programs."""

    code = "forbidden"
    status = 403
    fault = "input"


class Guard:
    """ASGI middleware: refuses foreign hosts and origins, missing keys and large bodies, and marks every answer."""

    def __init__(self, app: ASGIApp, render: Render, reach: Reach, max_body: int, requests: Requests) -> None:
        """`render` makes the response of an error for a request; `max_body` is in bytes; `requests` counts them."""
        self._app = app
        self._render = render
        self._reach = reach
        self._max_body = max_body
        self._requests = requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on what is allowed."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        origin = headers.get("origin")
        shared = origin if origin in self._reach.origins and scope["path"].startswith(FOR_PROGRAMS) else None
        received, started, status = 0, time.perf_counter(), 0

        async def send_marked(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                _mark(message, shared)
            await send(message)

        async def receive_bounded() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > self._max_body:
                raise too_large(self._max_body)
            return message

        app = self._app
        try:
            self._let_in(scope, headers, shared)
            if scope["method"] == "OPTIONS" and shared:
                app = _preflight
        except ClefError as error:
            app = self._render(scope, error)
        try:
            await app(scope, receive_bounded, send_marked)
        finally:
            self._requests.add(scope, status, time.perf_counter() - started)

    def _let_in(self, scope: Scope, headers: Headers, shared: str | None) -> None:
        """Raise the error that a request is refused with; a session that lets it in is noted in the scope."""
        host = headers.get("host", "")
        if not self._reach.answers_to(host):
            hint = "open it as http://127.0.0.1 or http://localhost, or name it in CLEF_ALLOWED_HOSTS"
            raise Forbidden(f'clef does not answer to the name "{host[:100]}"', hint=hint)
        safe = scope["method"] in SAFE_METHODS
        if not safe and shared is None:
            _check_origin(headers, host)
        if self._reach.keys and not (scope["method"] == "OPTIONS" and shared):
            self._check_key(scope, headers, safe)
        announced = headers.get("content-length", "")
        if announced.isdecimal() and int(announced) > self._max_body:
            raise too_large(self._max_body)

    def _check_key(self, scope: Scope, headers: Headers, safe: bool) -> None:
        keys = self._reach.keys
        given = given_key(headers)
        if given is not None:
            keys.name_of(given, address_of(scope))
            return
        if key_in_link(scope) is not None:
            raise Unauthorized("a key in the address becomes a session, and the address clean")
        session = cookie_parser(headers.get("cookie", "")).get(keys.cookie, "")
        if session and keys.session_name(session) is not None:
            # The cookie comes from a browser, and a browser says where a change comes from.
            if not safe and "origin" not in headers and "sec-fetch-site" not in headers:
                raise Forbidden("a change by a signed-in page has to say its origin", hint="send the key instead")
            scope[SESSION] = session
            return
        if not scope["path"].startswith(OPEN):
            hint = "send it as `Authorization: Bearer KEY` or `x-api-key: KEY`; a browser signs in at /sign-in"
            raise Unauthorized("clef asks for an access key here", hint=hint)


def given_key(headers: Headers) -> str | None:
    """The key that a program sends: a bearer token, else x-api-key."""
    kind, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if kind.lower() == "bearer" else headers.get("x-api-key")


def key_in_link(scope: Scope) -> str | None:
    """The key in the address of a page, as in the link that clef prints."""
    if scope["method"] != "GET" or b"key=" not in scope["query_string"] or scope["path"].startswith(FOR_PROGRAMS):
        return None
    given = parse_qs(scope["query_string"].decode("latin-1")).get("key")
    return given[0] if given else None


def address_of(scope: Scope) -> str:
    """The address that a request comes from; that of the client where it comes through a trusted proxy."""
    client = scope.get("client")
    return client[0] if client else ""


def too_large(limit: int) -> TooLarge:
    """The error for a body over the limit, in bytes."""
    message = f"more than {limit / 1e6:g} MB, which is the limit of one request"
    return TooLarge(message, hint="raise CLEF_MAX_BODY, or send less")


def _check_origin(headers: Headers, host: str) -> None:
    """Raise Forbidden where a page of another origin makes the request."""
    origin = headers.get("origin")
    if origin is not None and urlsplit(origin).netloc != host:
        raise Forbidden(f"a page of {origin[:100]} may not make clef do anything", hint="see CLEF_CORS_ORIGINS")
    if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise Forbidden("a page of another site may not make clef do anything")


def _mark(message: Message, shared: str | None) -> None:
    """Add the headers of every answer to the first message of one; those that are there stay."""
    raw = message["headers"] = list(message.get("headers", ()))
    known = {name for name, _ in raw}
    raw += [pair for pair in RAW_HEADERS if pair[0] not in known]
    if shared:
        headers = MutableHeaders(scope=message)
        headers["Cross-Origin-Resource-Policy"] = "cross-origin"
        headers["Access-Control-Allow-Origin"] = shared
        headers.add_vary_header("Origin")
        for name, value in CORS_HEADERS.items():
            headers[name] = value


async def _preflight(scope: Scope, receive: Receive, send: Send) -> None:
    """The answer to a browser that asks whether a page it allows may send a request."""
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})
