"""Turns settings and an engine into the web application: page, API and their guard."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI
from fastapi.staticfiles import StaticFiles

from clef import __version__
from clef.engines.engine import OwnedEngine
from clef.engines.opening import ChosenEngine
from clef.runs.recent import RecentRuns
from clef.settings import Settings
from clef.web import api, dropin, errors
from clef.web.pages import pages
from clef.web.security import Guard

STATIC = Path(__file__).parent / "static"


def create_app(settings: Settings, engine: OwnedEngine | None = None) -> FastAPI:
    """The application. Without an `engine` it takes the one the settings lead to; it closes either when it ends."""
    answering = engine or ChosenEngine(settings)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None, None]:
        if isinstance(answering, ChosenEngine):
            answering.start()
        yield
        await asyncio.shield(answering.close())

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
    app.state.runs = RecentRuns()
    errors.install(app)
    app.include_router(api.router)
    app.include_router(dropin.router)
    app.include_router(pages())
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    app.add_middleware(Guard, render=errors.respond, max_body=settings.max_body)
    return app
