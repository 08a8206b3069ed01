"""Turns settings and an engine into the web application: page, API and their guard."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial

from fastapi import APIRouter, FastAPI
from starlette.types import ASGIApp, Scope

from clef import __version__
from clef.engines.engine import OwnedEngine
from clef.engines.line import Line
from clef.engines.opening import ChosenEngine
from clef.errors import ClefError
from clef.runs.database import Database
from clef.runs.queue import RunQueue
from clef.runs.store import Store
from clef.settings import Settings
from clef.web import (
    api,
    asks_api,
    corrections_api,
    dropin,
    engine_api,
    errors,
    measures_api,
    policies_api,
    run_files,
    runs_api,
    schema_files,
)
from clef.web.assets import Assets
from clef.web.description import describe
from clef.web.express import Express
from clef.web.gatekeeping import gate_of_file
from clef.web.keys import Unauthorized
from clef.web.measured import Measured
from clef.web.metrics import Requests, metrics_router
from clef.web.pages import pages
from clef.web.reach import reach_of
from clef.web.render import problems
from clef.web.security import FOR_PROGRAMS, OPEN, Guard
from clef.web.signing_in import refused_page, sign_in_pages


def open_store(settings: Settings) -> Store:
    """The store of these settings. Raises StoreError where runs cannot be kept."""
    return Store(Database(settings.data_dir / "clef.db"))


def create_app(
    settings: Settings,
    engine: OwnedEngine | None = None,
    store: Store | None = None,
    *,
    local_token: str | None = None,
) -> FastAPI:
    """The application. Without an `engine` or a `store` it opens those the settings lead to when it starts, and closes
    both when it ends. `local_token` is the access key of this machine's own programs, accepted where
    keys are asked for; see `clef.running`.

    Raises SettingsError where an access key is needed and cannot be kept, and for a policy file that is none.
    """
    answering = engine if isinstance(engine, ChosenEngine) else ChosenEngine(settings, engine)
    reach = reach_of(settings, local_token)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None, None]:
        answering.start()
        app.state.store = kept = store or open_store(settings)
        app.state.measured = Measured(kept)
        app.state.queue = RunQueue(kept, app.state.line.background, settings.eval_concurrency)
        await app.state.queue.start()
        watch = asyncio.create_task(_end_with_engine(app, answering)) if settings.exit_with_engine else None
        yield
        if watch is not None:
            watch.cancel()
        await app.state.queue.close()
        await answering.close()
        await kept.close()

    app = FastAPI(
        title="clef",
        version=__version__,
        summary="Ask a decision model, and measure it on your own labelled table.",
        lifespan=lifespan,
        docs_url=None,  # its page loads scripts from elsewhere; /openapi.json is the documentation's source
        redoc_url=None,
    )
    app.openapi = partial(describe, app)  # type: ignore[method-assign]  # the framework's own way to replace it
    app.state.settings = settings
    app.state.engine = answering
    app.state.line = Line(answering, settings.concurrency, settings.max_waiting, settings.max_wait)
    app.state.reach = reach
    app.state.gate = gate_of_file(settings.policy)
    app.state.requests = Requests()
    app.state.lost = None
    app.state.end = None
    errors.install(app, problems)
    for router in _routers():
        app.include_router(router)
    app.mount("/static", Assets(), name="static")
    app.add_middleware(Express, handlers=dropin.EXPRESS)
    app.add_middleware(Guard, render=_refusal, reach=reach, max_body=settings.max_body, requests=app.state.requests)
    return app


def _routers() -> list[APIRouter]:
    """Every route, in the order of the API's description."""
    return [
        dropin.documented(),
        api.router,
        run_files.router,
        runs_api.router,
        asks_api.router,
        corrections_api.router,
        measures_api.router,
        policies_api.router,
        engine_api.router,
        schema_files.router,
        metrics_router(),
        pages(),
        sign_in_pages(),
    ]


def _refusal(scope: Scope, error: ClefError) -> ASGIApp:
    """An error of the guard, as whoever asked expects it."""
    if scope["path"].startswith("/v1/"):
        return dropin.refusal(scope["path"], error)
    is_page = isinstance(error, Unauthorized) and not scope["path"].startswith((*FOR_PROGRAMS, *OPEN))
    return refused_page(scope, error) if is_page else errors.respond(error)


async def _end_with_engine(app: FastAPI, engine: ChosenEngine) -> None:
    """Once the engine is lost for good: keep its last words in `app.state.lost`, and call `app.state.end`."""
    app.state.lost = await engine.until_lost()
    if app.state.end is not None:
        app.state.end()
