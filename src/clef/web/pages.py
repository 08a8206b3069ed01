"""Turns requests of a browser into pages and into the fragments that htmx puts inside them."""

import asyncio
from collections.abc import Coroutine
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import orjson
from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.responses import Response

from clef import __version__
from clef.decisions.questions import MAX_LEVELS, MAX_OPTIONS, MIN_LEVELS, as_text
from clef.errors import ClefError, InputError, NotFound
from clef.runs.recent import Run
from clef.web import words
from clef.web.assets import compress, static_url
from clef.web.drafts import json_problem, read_draft
from clef.web.predict import predict
from clef.web.run_view import FEW, Filter, RunViews

T = TypeVar("T")
EXAMPLES = Path(__file__).parent / "templates" / "examples.json"
GONE = 499
"""Status of an answer that nobody waits for any more; it never reaches a browser."""


def pages() -> APIRouter:
    """Every page, as a router; handlers reach the engine, the settings and the runs through `app.state`."""
    router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)
    _ask_routes(router)
    _run_routes(router, RunViews())
    _engine_routes(router)
    return router


def _ask_routes(router: APIRouter) -> None:
    @router.get("/")
    async def ask(request: Request) -> Response:
        """The form: a state, questions, and room for the answers."""
        limits = {"max_options": MAX_OPTIONS, "min_levels": MIN_LEVELS, "max_levels": MAX_LEVELS}
        return await _page(request, "ask.html", limits=limits, examples=_examples())

    @router.post("/ask")
    async def answers(request: Request) -> Response:
        """The answers to a draft, as a fragment; an error is a fragment as well, with the error's own status."""
        try:
            asked = read_draft((await request.body()).decode("utf-8", "replace"))
            reply = await while_connected(request, predict(asked, request.app.state.engine))
        except ClefError as error:
            return _problems(request, error)
        if reply is None:
            return Response(status_code=GONE)
        return _fragment(request, "answers.html", reply=reply)

    @router.post("/ask/json")
    async def check_json(request: Request) -> Response:
        """Where the state stops being JSON, as a fragment; empty where it is JSON."""
        text = (await request.body()).decode("utf-8", "replace")
        return _fragment(request, "json_check.html", problem=await asyncio.to_thread(json_problem, text))


def _run_routes(router: APIRouter, views: RunViews) -> None:
    @router.get("/evaluate")
    async def evaluate(request: Request) -> Response:
        """Give a table, watch it being asked."""
        return await _page(request, "evaluate.html", settings=request.app.state.settings)

    @router.get("/runs")
    async def runs(request: Request) -> Response:
        """The runs that are kept, newest first."""
        kept = [await views.of(run) for run in request.app.state.runs.newest_first()]
        return await _page(request, "runs.html", views=kept)

    @router.get("/runs/{run_id}")
    async def run(request: Request, run_id: str) -> Response:
        """What a run measured, and its rows; an address with a filter that makes no sense shows all of them."""
        try:
            view = await views.of(request.app.state.runs.get(run_id))
        except NotFound as error:
            return await _page(request, "missing.html", error.status, error=error)
        chosen = Filter.read(request.query_params, len(view.names))
        rows = await asyncio.to_thread(view.rows, chosen) if view.is_large else view.rows(chosen)
        return await _page(request, "run.html", view=view, rows=rows, chosen=chosen, few=FEW)

    @router.get("/runs/{run_id}/rows/{number}")
    async def row(request: Request, run_id: str, number: int) -> Response:
        """Everything about one row, as a fragment."""
        try:
            found: Run = request.app.state.runs.get(run_id)
            if not 0 <= number < len(found.outcomes):
                raise NotFound(f"no row {number} in this run")
        except NotFound as error:
            return _problems(request, error)
        return _fragment(request, "row.html", outcome=found.outcomes[number])


def _engine_routes(router: APIRouter) -> None:
    @router.get("/engine")
    async def engine(request: Request) -> Response:
        """Who answers, and in which phase it is."""
        return await _page(request, "engine.html", settings=request.app.state.settings)

    @router.get("/engine/standing")
    async def standing(request: Request) -> Response:
        """The dot of the frame with its words, as a fragment."""
        return _fragment(request, "standing.html", facts=await request.app.state.engine.facts())


async def while_connected(request: Request, work: Coroutine[Any, Any, T]) -> T | None:
    """What the work returns; None when the browser went away, and then the work is cancelled."""
    task = asyncio.create_task(work)
    left = asyncio.create_task(_left(request))
    try:
        await asyncio.wait({task, left}, return_when=asyncio.FIRST_COMPLETED)
        return await task if task.done() else None
    finally:
        left.cancel()
        task.cancel()
        await asyncio.gather(task, left, return_exceptions=True)


async def _left(request: Request) -> None:
    """Returns once the browser has gone away; the body must have been read."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _page(request: Request, name: str, status: int = 200, **context: Any) -> Response:
    """A whole page in its frame."""
    facts = await request.app.state.engine.facts()
    return _fragment(request, name, status, facts=facts, path=request.url.path, **context)


def _fragment(request: Request, name: str, status: int = 200, **context: Any) -> Response:
    text = _templates().get_template(name).render(context)
    response = HTMLResponse(text.encode("utf-8", "replace"), status, {"cache-control": "no-cache"})
    return compress(response, request.headers)


def _problems(request: Request, error: ClefError) -> Response:
    """An error as a fragment that names each problem and the field it is in."""
    problems = error.problems if isinstance(error, InputError) else ()
    return _fragment(request, "problems.html", error.status, error=error, problems=problems)


@lru_cache(maxsize=1)
def _templates() -> Environment:
    environment = Environment(
        loader=PackageLoader("clef.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(words=words, static_url=static_url, version=__version__)
    environment.filters.update(as_text=as_text)
    return environment


@lru_cache(maxsize=1)
def _examples() -> Any:
    """The ready requests of the Ask page, each a title, a line about it, and a draft."""
    return orjson.loads(EXAMPLES.read_bytes())
