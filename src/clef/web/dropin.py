"""Turns the requests of System One clients into decisions: POST /v1/systemone and GET /v1/models.

question ids    neutral upstream, the client's own in the reply
together?       joint or isolated by CLEF_QUESTIONS, or by `x_questions` in the body; the reply says which ran
errors          422 with `detail: [{loc, msg, type}]`, else `detail: {error_type, message}`, as TypeSafe's server
model           `jev-latest` and our aliases are accepted; the reply names the model that answered
"""

import asyncio
import secrets
from collections.abc import Awaitable, Callable

from fastapi import APIRouter, Request
from fastapi.routing import APIRoute
from starlette.responses import Response

from clef.decisions.examples import Reply
from clef.decisions.examples import Request as Asked
from clef.decisions.served import Served, WireError, read_served, served_body
from clef.engines.engine import Engine
from clef.errors import ClefError, InputError, TooLong
from clef.web.api import read_json
from clef.web.bodies import read_body
from clef.web.errors import Json, headers_of
from clef.web.leaving import GONE, while_connected

ALIASES = ("jev-latest", "jev-preview", "clef-latest", "clef", "clef-flash")
"""Names that always mean the model which answers here."""
RELEASED = "2026-09-30"
"""Date of Clef's release; the model list of the protocol wants a date."""
ERROR_TYPES = {401: "authentication_error", 403: "authentication_error", 413: "max_tokens_exceeded", 504: "timeout"}


class Route(APIRoute):
    """A route whose errors come in the protocol's shapes, and whose every reply carries a request id."""

    def get_route_handler(self) -> Callable[[Request], Awaitable[Response]]:  # type: ignore[override]
        """The handler with the protocol around it."""
        handler = super().get_route_handler()

        async def handle(request: Request) -> Response:
            try:
                response: Response = await handler(request)
            except ClefError as error:
                response = respond(error)
            response.headers["x-typesafe-request-id"] = request_id()
            return response

        return handle


def request_id() -> str:
    """An id by which a reply can be named."""
    return f"req_{secrets.token_hex(12)}"


router = APIRouter(prefix="/v1", route_class=Route)


@router.post("/systemone")
async def systemone(request: Request) -> Json:
    """Answer the questions of a System One request."""
    state = request.app.state
    body = read_json(await read_body(request, state.settings.max_body))
    served = read_served(body)
    engine: Engine = state.engine
    await _check_model(served.model, engine)
    shape = body.get("x_questions", state.settings.questions)
    if shape not in ("joint", "isolated"):
        loc = ["body", "x_questions"]
        raise WireError([{"loc": loc, "msg": "Input should be 'joint' or 'isolated'", "type": "literal_error"}])
    work = engine.decide(served.request) if shape == "joint" else _one_by_one(served, engine)
    reply = await while_connected(request, work)
    if reply is None:
        return Json(None, status_code=GONE)
    return Json(served_body(served, reply, reply.model or served.model) | {"x_questions": shape})


@router.get("/models")
async def models(request: Request) -> Json:
    """The names that `model` may have."""
    facts = await request.app.state.engine.facts()
    named = dict.fromkeys(ALIASES, f"alias of {facts.model or 'the model that answers here'}")
    if facts.model:
        named[facts.model] = f"answered by the {facts.kind} engine"
    listed = [{"name": name, "description": text, "release_date": RELEASED} for name, text in named.items()]
    return Json({"models": listed})


async def _check_model(name: str, engine: Engine) -> None:
    """Raise UnknownModel unless `name` is an alias or what the engine calls its model."""
    if name not in ALIASES and name != (model := (await engine.facts()).model):
        known = ", ".join(filter(None, (*ALIASES, model)))
        raise UnknownModel(f"Unknown model: {name}", hint=f"use one of: {known}")


async def _one_by_one(served: Served, engine: Engine) -> Reply:
    """Each question in a request of its own, so that none is in another's prompt."""
    state, images = served.request.state, served.request.images
    requests = [Asked(state, (question,), images) for question in served.request.questions]
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(engine.decide(request)) for request in requests]
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None
    replies = [task.result() for task in tasks]
    tokens = sum(reply.input_tokens or 0 for reply in replies)
    return Reply(tuple(reply.answers[0] for reply in replies), replies[0].model, tokens)


class UnknownModel(InputError):
    """The client asked for a model that is not here."""

    code = "api_usage_error"
    status = 400


def refusal(error: ClefError) -> Json:
    """An error that was found before the request was read."""
    response = respond(error)
    response.headers["x-typesafe-request-id"] = request_id()
    return response


def respond(error: ClefError) -> Json:
    """An error in the protocol's shapes."""
    headers = headers_of(error)
    if isinstance(error, WireError):
        return Json({"detail": list(error.details)}, status_code=error.status)
    if isinstance(error, TooLong):
        detail = {"error_type": "max_tokens_exceeded", "message": error.message}
        return Json({"detail": detail}, status_code=400)
    said = f"{error.message} ({error.hint})" if error.hint else error.message
    if isinstance(error, InputError) and error.code == InputError.code:
        detail_list = [{"loc": ["body"], "msg": said, "type": "json_invalid"}]
        return Json({"detail": detail_list}, status_code=422)
    kind = error.code if error.code == UnknownModel.code else ERROR_TYPES.get(error.status, "unknown")
    return Json({"detail": {"error_type": kind, "message": said}}, status_code=error.status, headers=headers)
