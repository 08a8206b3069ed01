"""Turns settings and an engine into the web application: page, API and their guard."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from fastapi import FastAPI

from clef import __version__
from clef.engines.engine import OwnedEngine
from clef.engines.opening import ChosenEngine
from clef.runs.database import Database
from clef.runs.queue import RunQueue
from clef.runs.store import Store
from clef.settings import Settings
from clef.web import api, dropin, errors, runs_api
from clef.web.assets import Assets
from clef.web.pages import pages
from clef.web.security import Guard


def create_app(settings: Settings, engine: OwnedEngine | None = None) -> FastAPI:
    """The application. Without an `engine` it takes the one the settings lead to; it closes either when it ends.

    Raises StoreError where runs cannot be kept.
    """
    answering = engine or ChosenEngine(settings)
    store = Store(Database(settings.data_dir / "clef.db"))

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None, None]:
        if isinstance(answering, ChosenEngine):
            answering.start()
        app.state.queue = RunQueue(store, answering, settings.eval_concurrency)
        await app.state.queue.start()
        yield
        await app.state.queue.close()
        await answering.close()
        await store.close()

    app = FastAPI(
        title="clef",
        version=__version__,
        summary="Ask a decision model, and measure it on your own labelled table.",
        lifespan=lifespan,
        docs_url=None,  # its page loads scripts from elsewhere; /openapi.json is the documentation's source
        redoc_url=None,
    )
    app.state.settings = settings
    app.state.engine = answering
    app.state.store = store
    errors.install(app)
    app.include_router(dropin.router)  # first: each router before it costs every decision a look at its routes
    app.include_router(api.router)
    app.include_router(runs_api.router)
    app.include_router(pages())
    app.mount("/static", Assets(), name="static")
    app.add_middleware(Guard, render=errors.respond, max_body=settings.max_body)
    return app
