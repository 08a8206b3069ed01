"""Turns every error into the one JSON body that all endpoints answer with: `{"error": {code, message, hint, …}}`."""

import json
import logging
from collections.abc import Callable, Mapping
from typing import Any

import orjson
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from clef.errors import ClefError, InputError, Problem

log = logging.getLogger("clef")
IN_PLACE = {"HX-Reselect": ".problems", "HX-Reswap": "innerHTML"}
"""The words of an error go into what was to be replaced, which stays, so that another try finds it."""


class Json(Response):
    """A JSON response; refuses NaN and infinity by writing them as null."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """Bytes of the content."""
        try:
            return orjson.dumps(content)
        except TypeError:  # half a character, which only an escape can carry
            return json.dumps(content, allow_nan=False).encode()


class HttpError(ClefError):
    """An error that the HTTP layer found: no such page, a method that is not there."""

    code = "http"
    fault = "input"

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class Bug(ClefError):
    """A fault of clef itself; the traceback is in the terminal."""

    code = "bug"
    status = 500


def respond(error: ClefError) -> Json:
    """The response for an error, with Retry-After where another try may help."""
    return Json({"error": error.to_dict()}, status_code=error.status, headers=headers_of(error))


def headers_of(error: ClefError) -> dict[str, str]:
    """What an error says in headers: when another try may help, and how to name oneself."""
    if error.status == 401:
        return {"WWW-Authenticate": "Bearer"}
    after = getattr(error, "retry_after_s", None)
    return {} if after is None else {"Retry-After": str(after)}


def install(app: FastAPI, fragment: Callable[[Request, ClefError], Response]) -> None:
    """Make every error of an app come out in the one shape; as a fragment where htmx will put it into a page."""

    def shown(request: Request, error: ClefError) -> Response:
        if "hx-request" not in request.headers:
            return respond(error)
        response = fragment(request, error)
        response.headers.update(headers_of(error) | IN_PLACE)
        return response

    async def clef_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, ClefError)
        return shown(request, error)

    async def invalid(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        return shown(request, InputError.of([_problem(item) for item in error.errors()], "the request"))

    async def http_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        if isinstance(error.__cause__, ClefError):  # raised while the framework was reading the body
            return shown(request, error.__cause__)
        messages = {404: f"no page {request.url.path}", 405: f"{request.method} is not possible here"}
        return shown(request, HttpError(messages.get(error.status_code, str(error.detail)), error.status_code))

    async def bug(request: Request, error: Exception) -> Response:
        return shown(request, Bug("clef itself failed; the terminal it runs in shows where", hint="please report it"))

    app.add_exception_handler(ClefError, clef_error)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, http_error)
    app.add_exception_handler(Exception, bug)


def _problem(item: Mapping[str, Any]) -> Problem:
    path = ".".join(str(part) for part in item["loc"][1:])
    return Problem(str(item["msg"]), str(item["type"]), column=path or None)
