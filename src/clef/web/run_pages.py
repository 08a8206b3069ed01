"""Turns requests of a browser into the pages of runs: the table that goes in, and what a run measured."""

import asyncio
import base64
import json
from typing import Any

import orjson
from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse
from starlette.responses import Response

from clef.decisions.examples import Example
from clef.decisions.images import url_fault
from clef.engines.engine import Engine
from clef.errors import ClefError, NotFound
from clef.runs.browse import Row
from clef.runs.store import Store
from clef.web.drafts import question_draft
from clef.web.predict import question_json
from clef.web.render import fragment, page, problems
from clef.web.run_filter import Filter
from clef.web.run_view import FEW, RunView, Summaries, rows_of, summary_by

TOKENS_S = 0.5
"""How long a row waits to have its tokens counted."""
LONGEST_LINK = 30_000
"""Characters of a request that a link to Ask may carry."""
MOST_POLICIES = 10
"""Policies that the export menu lists."""


def run_pages() -> APIRouter:
    """The pages of runs, as a router; handlers reach the store and the settings through `app.state`."""
    router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)
    summaries = Summaries()

    @router.get("/evaluate")
    async def evaluate(request: Request) -> Response:
        """Give a table, see how it is read, and run it."""
        return await page(request, "evaluate.html", settings=request.app.state.settings)

    @router.get("/runs/{run_id}")
    async def run(request: Request, run_id: str) -> Response:
        """What a run measured, and its rows; an address with a filter that makes no sense shows all of them."""
        store: Store = request.app.state.store
        try:
            found = await store.get(run_id)
        except NotFound as error:
            return await page(request, "missing.html", error.status, error=error)
        chosen = Filter.read(request.query_params)
        rows, summary, reviewed, policies = await asyncio.gather(
            rows_of(store, found, chosen),
            summary_by(summaries, request.app.state.measured, store, found, chosen.labels),
            store.corrections.counts(run_id),
            store.policies.names(MOST_POLICIES),
        )
        opened = {} if rows.opened is None else await row_context(request, rows.opened)
        context = {"view": RunView(found, summary, *reviewed), "rows": rows, "chosen": chosen, "few": FEW}
        return as_it_is(await page(request, "run.html", policies=policies, **context, **opened))

    @router.get("/runs/{run_id}/rows/{position}")
    async def row(request: Request, run_id: str, position: int) -> Response:
        """Everything about one row, as a fragment."""
        store: Store = request.app.state.store
        try:
            found = await store.row(run_id, position, Filter.read(request.query_params).labels)
        except NotFound as error:
            return problems(request, error)
        return fragment(request, "row.html", path=f"/runs/{run_id}", **await row_context(request, found))

    @router.get("/runs/{run_id}/rows/{position}/images/{number}")
    async def image(request: Request, run_id: str, position: int, number: int) -> Response:
        """One image of a row; the first has the number 1."""
        store: Store = request.app.state.store
        try:
            images = (await store.row(run_id, position)).outcome.example.images
        except NotFound:
            images = ()
        url = dict(enumerate(images, 1)).get(number, "")
        if url_fault(url):
            return Response("There is no such image.\n", 404, media_type="text/plain")
        head, _, encoded = url.partition(";base64,")
        kept = {"cache-control": "private, max-age=86400, immutable"}
        return Response(base64.b64decode(encoded), media_type=head.removeprefix("data:"), headers=kept)

    return router


async def row_context(request: Request, row: Row) -> dict[str, Any]:
    """What a template needs to show everything about a row."""
    example = row.outcome.example
    said = await request.app.state.store.corrections.one(request.path_params["run_id"], row.position)
    tokens = await tokens_of(request.app.state.engine, example)
    link = ask_link(example)
    return {"outcome": row.outcome, "position": row.position, "cached": row.cached} | {
        "link": link,
        "tokens": tokens,
        "said": said,
    }


async def tokens_of(engine: Engine, example: Example) -> int | None:
    """Tokens of a row's request; None where nobody counts them just now."""
    try:
        async with asyncio.timeout(TOKENS_S):
            return await engine.count_tokens(example.request)
    except (ClefError, TimeoutError):
        return None


def as_it_is(response: Response) -> Response:
    """The response, never shown again from memory: a browser that goes back would show a run as it was."""
    response.headers["cache-control"] = "no-store"
    return response


def ask_link(example: Example) -> str | None:
    """The address of Ask with what a row asked in the form; None where that is too much for an address."""
    state, question = example.state, question_draft(example.question)
    if question is None:  # only the JSON view can hold it
        body = {"state": state, "questions": [question_json(example.question)]}
        draft: dict[str, Any] = {"json": json.dumps(body, ensure_ascii=False, indent=2)}
    elif isinstance(state, str):
        draft = {"state": state, "as": "text", "questions": [question]}
    else:
        draft = {"state": json.dumps(state, ensure_ascii=False, indent=2), "as": "json", "questions": [question]}
    try:
        packed = base64.urlsafe_b64encode(orjson.dumps(draft)).decode().rstrip("=")
    except TypeError:  # half a character, which no address can carry
        return None
    return f"/#ask={packed}" if len(packed) <= LONGEST_LINK and not example.images else None
