"""Turns requests of a browser into the Engine page and its fragments: the status, the models, the doctor's findings."""

import asyncio
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse
from starlette.responses import Response

from clef.web import engine_view
from clef.web.engine_api import engine_of
from clef.web.render import fragment, page

PATIENCE_S = 0.7
"""The page waits this long for a first look at the machine; later the models come by themselves."""
LINES = 200


def engine_pages() -> APIRouter:
    """The Engine page, as a router; handlers reach the engine through `app.state`. What changes it is in the API."""
    router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)

    @router.get("/engine")
    async def engine(request: Request) -> Response:
        """Who answers, how well, and what else could."""
        chosen = engine_of(request)
        models = await _models(request, PATIENCE_S)
        view = await engine_view.view_of(chosen)
        lines = chosen.log_tail(LINES)
        return await page(
            request, "engine.html", view=view, say=engine_view, models=models, lines=lines, **_limits(request)
        )

    @router.get("/engine/status")
    async def status(request: Request) -> Response:
        """The part that is about the engine now, as a fragment."""
        view = await engine_view.view_of(engine_of(request))
        return fragment(request, "engine_status.html", view=view, say=engine_view, **_limits(request))

    @router.get("/engine/models")
    async def models(request: Request) -> Response:
        """The models there are, as a fragment."""
        return fragment(request, "engine_models.html", models=await _models(request, None), say=engine_view)

    @router.get("/engine/doctor")
    async def doctor(request: Request) -> Response:
        """What is well and what is not on this machine, as a fragment."""
        from clef.engines.doctor.examine import examine_all

        findings = await examine_all(engine_of(request).settings, engine_of(request))
        return fragment(request, "engine_doctor.html", findings=engine_view.in_order(findings), say=engine_view)

    return router


def _limits(request: Request) -> dict[str, Any]:
    return {"at_a_time": request.app.state.settings.eval_concurrency}


async def _models(request: Request, patience_s: float | None) -> engine_view.ModelsView | None:
    """The models there are; None where the look at the machine takes longer than that."""
    state, chosen = request.app.state, engine_of(request)
    if not hasattr(state, "look_at_machine"):
        state.look_at_machine = asyncio.create_task(chosen.models.memory())
    done, _ = await asyncio.wait({state.look_at_machine}, timeout=patience_s)
    return await engine_view.models_of(chosen) if done else None
