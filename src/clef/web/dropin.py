"""Turns the requests of System One clients into decisions: POST /v1/systemone, GET /v1/models, POST /v1/decisions.

question ids    neutral upstream, the client's own in the reply
together?       joint or isolated by CLEF_QUESTIONS, or by `x_questions` in the body; the reply says which ran
gate            act or review by CLEF_POLICY, or by `x_policy` in the body, in `x_gate` of the reply
errors          422 with `detail: [{loc, msg, type}]`, else `detail: {error_type, message}`, as TypeSafe's server
model           `jev-latest` and our aliases are accepted; the reply names the model that answered

/v1/decisions is the same in OpenAI's shapes, its errors too.
"""

import inspect
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from fastapi import APIRouter, Request
from starlette.responses import Response

from clef.decisions.examples import Reply
from clef.decisions.examples import Request as Asked
from clef.decisions.openai import decisions_body, read_decisions
from clef.decisions.served import Served, WireError, read_served, served_body
from clef.engines.engine import Engine
from clef.engines.line import Line
from clef.errors import ClefError, InputError, Overloaded, TooLong, Unavailable
from clef.web import wire_schemas as shapes
from clef.web.bodies import read_json_body, read_request_body
from clef.web.errors import Json, headers_of
from clef.web.gatekeeping import gate_for
from clef.web.leaving import GONE, while_connected

ALIASES = ("jev-latest", "jev-preview", "clef-latest", "clef", "clef-flash")
"""Names that always mean the model which answers here."""
RELEASED = "2026-09-30"
"""Date of Clef's release; the model list of the protocol wants a date."""
BODY_LIMIT = 64 * 2**20
"""Bytes of a request, unpacked, whatever CLEF_MAX_BODY allows tables: eight images, and a long state."""
ERROR_TYPES = {
    401: "authentication_error",
    403: "authentication_error",
    408: "timeout",
    413: "max_tokens_exceeded",
    415: "api_usage_error",
    504: "timeout",
}
CHOICES: dict[str, tuple[str, ...]] = {
    "x_questions": ("joint", "isolated"),
    "x_probabilities": ("engine", "recalibrated"),
}
"""What the extras of a request may say."""

Handler = Callable[[Request], Awaitable[Response]]
Respond = Callable[[ClefError], Json]


@dataclass(frozen=True, slots=True)
class Extras:
    """What a request says besides the protocol."""

    questions: Literal["joint", "isolated"]
    policy: str | None
    recalibrated: bool


async def systemone(request: Request) -> Response:
    """Answer the questions of a System One request.

    Extras of the body: `x_questions` (joint or isolated), `x_policy` (the name of a saved policy, for `x_gate` in the
    reply) and `x_probabilities` (recalibrated puts the policy's map in place of the engine's own probabilities).
    Anything else is ignored.
    """
    body, parts = await read_request_body(request, _limit(request))
    served = read_served(body, parts)
    answered = await _answer(request, served, body)
    if answered is None:
        return Json(None, status_code=GONE)
    reply, extras = answered
    return Json(served_body(served, reply, reply.model or served.model) | extras)


async def decisions(request: Request) -> Response:
    """Answer the questions of a request in the shape of OpenAI's Decisions API."""
    body = await read_json_body(request, _limit(request))
    asked = read_decisions(body)
    answered = await _answer(request, asked.served, body)
    if answered is None:
        return Json(None, status_code=GONE)
    reply, extras = answered
    return Json(decisions_body(asked, reply, reply.model or asked.served.model) | extras)


async def models(request: Request) -> Response:
    """The names that `model` may have."""
    facts = await request.app.state.engine.facts()
    named = dict.fromkeys(ALIASES, f"alias of {facts.model or 'the model that answers here'}")
    if facts.model:
        named[facts.model] = f"answered by the {facts.kind} engine"
    listed = [{"name": name, "description": text, "release_date": RELEASED} for name, text in named.items()]
    return Json({"models": listed})


async def _answer(request: Request, served: Served, body: Mapping[str, Any]) -> tuple[Reply, dict[str, Any]] | None:
    """The reply with the extras of its body; None when the client went away."""
    state = request.app.state
    extras = _extras(body, state.settings.questions)
    await _check_model(served.model, state.engine)
    gate = await gate_for(request, extras.policy)
    line: Line = state.line
    one = served.request
    if extras.questions == "joint" or len(one.questions) == 1:
        reply = await while_connected(request, line.decide(one))
    else:
        each = [Asked(one.state, (question,), one.images, one.videos) for question in one.questions]
        replies = await while_connected(request, line.decide_each(each))
        reply = None if replies is None else _together(replies)
    if reply is None:
        return None
    said: dict[str, Any] = {"x_questions": extras.questions}
    if gate is not None:
        reply, more = gate.judge(served, reply, in_place=extras.recalibrated)
        said |= more
    return reply, said


def _extras(body: Mapping[str, Any], usual: Literal["joint", "isolated"]) -> Extras:
    """The extras of a body. Raises WireError for those that say nothing clef knows."""
    details = [
        {"loc": ["body", name], "msg": f"Input should be {' or '.join(map(repr, known))}", "type": "literal_error"}
        for name, known in CHOICES.items()
        if body.get(name) is not None and body[name] not in known
    ]
    policy = body.get("x_policy")
    if policy is not None and not isinstance(policy, str):
        details.append({"loc": ["body", "x_policy"], "msg": "Input should be a string", "type": "string_type"})
    if details:
        raise WireError(details)
    return Extras(body.get("x_questions") or usual, policy, body.get("x_probabilities") == "recalibrated")


async def _check_model(name: str, engine: Engine) -> None:
    """Raise UnknownModel unless `name` is an alias or what the engine calls its model."""
    if name not in ALIASES and name != (model := (await engine.facts()).model):
        known = ", ".join(filter(None, (*ALIASES, model)))
        raise UnknownModel(f"Unknown model: {name[:100]}", hint=f"use one of: {known}")


def _together(replies: list[Reply]) -> Reply:
    """One reply of those to each question."""
    tokens = sum(reply.input_tokens or 0 for reply in replies)
    return Reply(tuple(reply.answers[0] for reply in replies), replies[0].model, tokens)


def _limit(request: Request) -> int:
    limit: int = request.app.state.settings.max_body
    return min(limit, BODY_LIMIT)


class UnknownModel(InputError):
    """The client asked for a model that is not here."""

    code = "api_usage_error"
    status = 400


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
    return Json({"detail": {"error_type": kind, "message": said}}, status_code=_status(error), headers=headers)


def _status(error: ClefError) -> int:
    """An engine that is there and busy is the protocol's overload."""
    return Overloaded.status if isinstance(error, Unavailable) and error.phase == "ready" else error.status


def respond_as_openai(error: ClefError) -> Json:
    """An error in OpenAI's shape."""
    param = None
    if isinstance(error, WireError):
        param = ".".join(map(str, error.details[0]["loc"][1:])) or None
    status = 400 if error.status == 422 or isinstance(error, TooLong) else _status(error)
    kind = "invalid_request_error" if status < 500 else "server_error"
    said = f"{error.message} ({error.hint})" if error.hint else error.message
    body = {"error": {"message": said, "type": kind, "param": param, "code": error.code}}
    return Json(body, status_code=status, headers=headers_of(error))


def refusal(path: str, error: ClefError) -> Json:
    """An error that was found before the request was read."""
    response = respond_as_openai(error) if path == "/v1/decisions" else respond(error)
    response.headers["x-typesafe-request-id"] = request_id()
    return response


def request_id() -> str:
    """An id by which a reply can be named."""
    return f"req_{secrets.token_hex(12)}"


async def in_protocol(handler: Handler, render: Respond, request: Request) -> Response:
    """What a handler answers, its errors in the protocol's shapes, with a request id."""
    try:
        response = await handler(request)
    except ClefError as error:
        response = render(error)
    response.headers["x-typesafe-request-id"] = request_id()
    return response


EXPRESS: dict[tuple[str, str], Handler] = {
    ("POST", "/v1/systemone"): partial(in_protocol, systemone, respond),
    ("POST", "/v1/decisions"): partial(in_protocol, decisions, respond_as_openai),
    ("GET", "/v1/models"): partial(in_protocol, models, respond),
}
"""What answers each route; the app reaches them without the framework's routing, which costs every decision time."""


def documented() -> APIRouter:
    """The same routes for the API's description."""
    router = APIRouter(prefix="/v1", tags=["System One"], include_in_schema=True)
    described: dict[str, tuple[Handler, dict[str, Any]]] = {
        "/v1/systemone": (systemone, shapes.SYSTEMONE),
        "/v1/decisions": (decisions, shapes.DECISIONS),
        "/v1/models": (models, shapes.MODELS),
    }
    for (method, path), handler in EXPRESS.items():
        function, shape = described[path]
        text = inspect.cleandoc(function.__doc__ or "")
        route = _bound(handler)
        router.add_api_route(path.removeprefix("/v1"), route, methods=[method], description=text, **shape)
    return router


def _bound(handler: Handler) -> Handler:
    """The handler as a function that the framework can read."""

    async def route(request: Request) -> Response:
        return await handler(request)

    return route
