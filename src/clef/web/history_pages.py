"""Turns what was asked on the Ask page into the drawer that lists it, and each ask back into its draft and answers."""

import logging
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse
from starlette.responses import Response

from clef.decisions.examples import Request as Asked
from clef.decisions.questions import as_text
from clef.errors import StoreError
from clef.runs.asks import MOST, SEARCHED, NewAsk
from clef.web.asks_api import asks_of
from clef.web.errors import Json
from clef.web.render import fragment, render

log = logging.getLogger("clef")


def history_pages() -> APIRouter:
    """The drawer and what is opened from it, as a router."""
    router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)

    @router.get("/ask/kept")
    async def kept_asks(request: Request, search: str = "") -> Response:
        """What was asked before, as a list to choose from."""
        asks = asks_of(request)
        listed = await asks.list(search=search[:200], limit=MOST)
        counts = {"kept": await asks.count(), "keep": await asks.keeps(), "most": MOST}
        return fragment(request, "asks.html", asks=listed, search=search, **counts)

    @router.get("/ask/kept/{ask_id}")
    async def kept_ask(request: Request, ask_id: str) -> Response:
        """One that was asked before: its draft, and its answers as a fragment."""
        found = await asks_of(request).get(ask_id)
        shown = render("answers.html", reply=found.reply, kept=ask_id, at=found.line.at)
        return Json({"draft": found.draft, "answers": shown})

    return router


async def keep_ask(request: Request, text: str, asked: Asked, reply: dict[str, Any]) -> str | None:
    """Keep what was asked and answered; its id, or None where it is not kept, which an answer never waits to be."""
    names = [name for question in asked.questions for name in question.answers]
    said = [
        as_text(asked.state)[: SEARCHED // 2],
        *(as_text(question.instructions or "") for question in asked.questions),
    ]
    identity = (await request.app.state.engine.facts()).identity
    new = NewAsk(text, reply, "\n".join([*said, *names]), len(asked.questions), identity)
    try:
        return await asks_of(request).keep(new)
    except StoreError as error:
        log.warning("what was asked is not kept: %s", error)
        return None
