"""Turns requests of a browser into the Ask page and its fragments: answers, checks, notes, code to copy."""

import asyncio
from functools import lru_cache
from pathlib import Path
from typing import Any

import orjson
from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, PlainTextResponse
from starlette.responses import Response

from clef.decisions.examples import Request as Asked
from clef.decisions.images import MAX_IMAGE_BYTES, MAX_IMAGES
from clef.decisions.questions import MAX_LEVELS, MAX_OPTIONS, MIN_LEVELS
from clef.engines.engine import Engine
from clef.errors import ClefError
from clef.web.advice import advice
from clef.web.drafts import as_draft, as_json, how_asked, json_problem, read_draft, read_finished
from clef.web.errors import Json
from clef.web.history_pages import keep_ask
from clef.web.interference import ask as ask_in
from clef.web.leaving import GONE, while_connected
from clef.web.render import fragment, page, problems
from clef.web.snippets import Language, snippet

EXAMPLES = Path(__file__).parent / "templates" / "examples.json"


def ask_pages() -> APIRouter:
    """The Ask page, as a router; handlers reach the engine through `app.state`. A draft is a body of its own."""
    router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)

    @router.get("/")
    async def ask(request: Request) -> Response:
        """The form: a state, questions, and room for the answers."""
        limits = {"max_options": MAX_OPTIONS, "min_levels": MIN_LEVELS, "max_levels": MAX_LEVELS}
        limits |= {"images": MAX_IMAGES, "image_bytes": MAX_IMAGE_BYTES}
        return await page(request, "ask.html", limits=limits, examples=_examples())

    @router.post("/ask")
    async def answers(request: Request) -> Response:
        """The answers to a draft, as a fragment; an error is a fragment as well, with the error's own status."""
        try:
            text = await _text(request)
            asked = read_draft(text)
            reply = await while_connected(request, ask_in(asked, request.app.state.line, how_asked(text)))
        except ClefError as error:
            return problems(request, error)
        if reply is None:
            return Response(status_code=GONE)
        kept = await keep_ask(request, text, asked, reply)
        return fragment(request, "answers.html", reply=reply, kept=kept, at=None)

    @router.post("/ask/json")
    async def check_json(request: Request) -> Response:
        """Where a text stops being JSON, as a fragment; empty where it is JSON."""
        problem = await asyncio.to_thread(json_problem, await _text(request))
        return fragment(request, "json_check.html", problem=problem)

    @router.post("/ask/notes")
    async def notes(request: Request) -> Response:
        """What a draft takes of the tokens, and advice on its questions, as a fragment; the unfinished is left out."""
        asked, places = read_finished(await _text(request))
        if asked is None:
            return fragment(request, "notes.html", tokens=None, limit=None, advice=[])
        engine: Engine = request.app.state.engine
        limit = (await engine.facts()).max_tokens
        tokens = await while_connected(request, _tokens(asked, engine))
        said = advice(asked.questions, places)
        return fragment(request, "notes.html", tokens=tokens, limit=limit, advice=said)

    @router.post("/ask/view")
    async def view(request: Request, to: str) -> Response:
        """A draft as the JSON of its request, or that JSON as a draft."""
        text = await _text(request)
        try:
            if to == "json":
                return PlainTextResponse(as_json(text))
            return Json(as_draft(text))
        except ClefError as error:
            return problems(request, error)

    @router.post("/ask/code")
    async def code(request: Request, language: Language) -> Response:
        """Code that asks what a draft asks, of this clef."""
        try:
            asked = read_draft(await _text(request))
        except ClefError as error:
            return problems(request, error)
        address, keyed = str(request.base_url).rstrip("/"), bool(request.app.state.reach.keys)
        return PlainTextResponse(snippet(asked, language, address, keyed=keyed))

    return router


async def _text(request: Request) -> str:
    return (await request.body()).decode("utf-8", "replace")


async def _tokens(asked: Asked, engine: Engine) -> int | None:
    """Tokens of a request; None where nobody can count them now."""
    try:
        return await engine.count_tokens(asked)
    except ClefError:
        return None


@lru_cache(maxsize=1)
def _examples() -> Any:
    """The ready requests of the Ask page, each a title, a line about it, and a draft."""
    return orjson.loads(EXAMPLES.read_bytes())
