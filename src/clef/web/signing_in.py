"""Turns a person's key into a session of the page: the sign-in page, the printed link, and the way out.

A browser keeps a strict cookie back when a link on another site leads here. So a page asked for that way, without a
session, asks the browser to come again, now from a page of clef's own, before the key is asked for.
"""

from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Scope

from clef.errors import ClefError
from clef.web.errors import respond
from clef.web.keys import SESSION_S, Keys, Throttled, Unauthorized
from clef.web.render import fragment
from clef.web.security import SESSION, address_of, key_in_link

CLEAN = {"cache-control": "no-store"}
AGAIN = '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0"><title>clef</title>'
MAX_FORM = 4096


def _location(text: str, headers: dict[str, str]) -> dict[str, Any]:
    """A reply that leads on, for the API's description."""
    described = {name: {"schema": {"type": "string"}, "example": example} for name, example in headers.items()}
    return {"description": text, "headers": described}


COOKIE = "clef-1a2b3c4d=…; HttpOnly; Max-Age=2592000; Path=/; SameSite=strict"
ELSEWHERE = _location("Clef asks for no key; on to its page", {"Location": "/"})
SIGNED_OUT = _location("The session is over", {"Location": "/sign-in"})
FOREIGN: dict[str, Any] = {"description": "The Host or the Origin is none that clef answers to"}
SIGN_IN_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/x-www-form-urlencoded": {
                "schema": {
                    "type": "object",
                    "required": ["key"],
                    "properties": {
                        "key": {"type": "string"},
                        "then": {"type": "string", "description": "Path that is wanted afterwards"},
                    },
                },
                "example": {"key": "KEY", "then": "/runs"},
            }
        },
    }
}
SIGN_IN_REPLIES: dict[int | str, dict[str, Any]] = {
    303: _location("A session, and on to the page that was wanted", {"Location": "/runs", "Set-Cookie": COOKIE}),
    401: {"description": "The key is wrong; the page asks again"},
    403: FOREIGN,
    413: {"description": "Larger than a limit"},
    429: {"description": "Too many wrong keys from this address; see Retry-After"},
}


def sign_in_pages() -> APIRouter:
    """GET and POST /sign-in, POST /sign-out."""
    router = APIRouter(tags=["Signing in"], default_response_class=HTMLResponse)

    @router.get("/sign-in", responses={303: ELSEWHERE})
    async def ask(request: Request, then: str = "/") -> Response:
        """The page that asks for a key."""
        return _page(request, then) if _keys(request) else RedirectResponse("/", 303)

    @router.post("/sign-in", status_code=303, openapi_extra=SIGN_IN_BODY, responses=SIGN_IN_REPLIES)
    async def sign_in(request: Request) -> Response:
        """A session for a right key, and on to the page that was wanted."""
        form = dict(parse_qsl((await request.body())[:MAX_FORM].decode("utf-8", "replace")))
        keys, then = _keys(request), form.get("then", "/")
        if not keys:
            return RedirectResponse("/", 303)
        try:
            name = keys.name_of(form.get("key", "").strip(), address_of(request.scope))
        except (Unauthorized, Throttled) as error:
            return _page(request, then, error)
        return _begin(request, keys, name, _local(then))

    @router.post("/sign-out", status_code=303, responses={303: SIGNED_OUT, 403: FOREIGN})
    async def sign_out(request: Request) -> Response:
        """The end of the session."""
        keys = _keys(request)
        if SESSION in request.scope:
            keys.end(request.scope[SESSION])
        response = RedirectResponse("/sign-in", 303, CLEAN)
        response.delete_cookie(keys.cookie, path="/", httponly=True, samesite="strict")
        return response

    return router


def refused_page(scope: Scope, error: ClefError) -> ASGIApp:
    """What a browser gets that has no session: a session where the link holds a key, else the way to sign in."""
    request, headers = Request(scope), Headers(scope=scope)
    then = request.url.path
    if headers.get("hx-request"):
        return Response(status_code=401, headers=CLEAN | {"HX-Redirect": "/sign-in"})
    if scope["method"] != "GET":
        return respond(error)
    given = key_in_link(scope)
    if given is not None:
        rest = [pair for pair in parse_qsl(request.url.query) if pair[0] != "key"]
        clean = then + (f"?{urlencode(rest)}" if rest else "")
        keys = _keys(request)
        try:
            return _begin(request, keys, keys.name_of(given, address_of(scope)), _local(clean))
        except (Unauthorized, Throttled) as wrong:
            return _page(request, clean, wrong)
    if headers.get("sec-fetch-site") == "cross-site" and headers.get("sec-fetch-mode") == "navigate":
        return HTMLResponse(AGAIN, headers=CLEAN)
    wanted = then + (f"?{request.url.query}" if request.url.query else "")
    return RedirectResponse("/sign-in" + ("" if wanted == "/" else f"?{urlencode({'then': wanted})}"), 303, CLEAN)


def _begin(request: Request, keys: Keys, name: str, then: str) -> Response:
    """A new session, and on to a page."""
    response = RedirectResponse(then, 303, CLEAN)
    response.set_cookie(
        keys.cookie,
        keys.session(name),
        max_age=SESSION_S,
        path="/",
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
    return response


def _page(request: Request, then: str, error: ClefError | None = None) -> Response:
    response = fragment(request, "sign_in.html", error.status if error else 200, then=_local(then), error=error)
    response.headers["cache-control"] = "no-store"
    if isinstance(error, Throttled):
        response.headers["retry-after"] = str(error.retry_after_s)
    return response


def _local(then: str) -> str:
    """A path of clef's own; "/" for anything that would lead elsewhere."""
    parts = urlsplit(then)
    is_path = then.startswith("/") and not then.startswith(("//", "/\\")) and not (parts.scheme or parts.netloc)
    return then if is_path and then.isprintable() and "\\" not in then else "/"


def _keys(request: Request) -> Keys:
    keys: Keys = request.app.state.reach.keys
    return keys
