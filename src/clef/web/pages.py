"""Turns requests of a browser into pages and into the fragments that htmx puts inside them."""

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse
from starlette.responses import Response

from clef.web.ask_pages import ask_pages
from clef.web.chart_pages import chart_pages
from clef.web.compare_pages import compare_pages
from clef.web.engine_pages import engine_pages
from clef.web.history_pages import history_pages
from clef.web.list_pages import list_pages
from clef.web.measure_pages import measure_pages
from clef.web.question_pages import question_pages
from clef.web.render import fragment
from clef.web.review_pages import review_pages
from clef.web.run_pages import run_pages
from clef.web.standing import standing_of


def pages() -> APIRouter:
    """Every page, as a router; handlers reach the engine, the settings and the store through `app.state`."""
    router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)
    router.include_router(ask_pages())
    router.include_router(question_pages())
    router.include_router(history_pages())
    router.include_router(list_pages())
    router.include_router(run_pages())
    router.include_router(chart_pages())
    router.include_router(measure_pages())
    router.include_router(review_pages())
    router.include_router(compare_pages())
    router.include_router(engine_pages())

    @router.get("/engine/standing")
    async def standing(request: Request) -> Response:
        """The dot of the frame with its words, as a fragment."""
        return fragment(request, "standing.html", standing=standing_of(await request.app.state.engine.status()))

    return router
