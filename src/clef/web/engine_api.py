"""Turns HTTP requests into what is known about the engine, its models and its machine, and into changes of them."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Body, Query, Request
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from clef.engines.models.downloads import Progress
from clef.engines.opening import ChosenEngine
from clef.engines.status import Change
from clef.errors import InputError, SettingsError
from clef.settings import DEVICE
from clef.web.errors import Json
from clef.web.lines import STREAM_HEADERS, line
from clef.web.schemas import ErrorResponse

HEARTBEAT_S = 10.0
"""A stream says at least this often that it is alive, so that no proxy closes it."""
LOOK_S = 0.25
"""Between two looks at the log for new lines."""
ERRORS: dict[int | str, dict[str, Any]] = {
    400: {"model": ErrorResponse, "description": "It cannot be done to this engine, or with this model"},
    404: {"model": ErrorResponse, "description": "No such model; the hint lists those there are"},
    500: {"model": ErrorResponse, "description": "A setting cannot be used; the message names it"},
}

router = APIRouter(prefix="/api", responses=ERRORS)


class Restart(BaseModel):
    """What is to be different after a restart; what is left out stays."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    model: Annotated[str | None, Field(min_length=1)] = None
    """Path of a .gguf file, or the name of a model that is on this machine."""
    context: Annotated[int | None, Field(ge=256)] = None
    """Tokens that one request may have."""
    images: bool | None = None
    """Whether to load the projector for images."""
    unset: list[str] | None = None
    """Environment variables to start llama.cpp without."""
    device: Annotated[str | None, Field(pattern=DEVICE)] = None
    """auto, none for the processor, or a device by its name in `llama-server --list-devices`."""

    def as_change(self) -> Change:
        """The same for the engine."""
        unset = None if self.unset is None else tuple(self.unset)
        return Change(self.model, self.context, self.images, unset, self.device)


class Download(BaseModel):
    """What to download beside the model."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    images: bool = False
    """The projector for images as well."""


@router.get("/engine")
async def engine(request: Request) -> Json:
    """Everything there is to say about the engine now."""
    return await _status(request)


@router.post("/engine/start", status_code=202)
async def start(request: Request) -> Json:
    """Begin to start what is off or failed; does nothing while it runs."""
    await engine_of(request).turn_on()
    return await _status(request, 202)


@router.post("/engine/stop", status_code=202)
async def stop(request: Request) -> Json:
    """Begin to stop a llama.cpp that clef started, or the download it waits for."""
    await engine_of(request).turn_off()
    return await _status(request, 202)


@router.post("/engine/restart", status_code=202)
async def restart(request: Request, change: Annotated[Restart | None, Body()] = None) -> Json:
    """Begin to run again, with something changed where that is said. What is in line waits and is done afterwards.

    A change that answers holds for the next start of clef as well, where the environment does not set it.
    """
    try:
        await engine_of(request).restart(change.as_change() if change else Change())
    except SettingsError as error:  # what was asked for, not what clef was started with
        raise InputError(error.message, hint=error.hint) from error
    return await _status(request, 202)


@router.post("/engine/forget")
async def forget(request: Request) -> Json:
    """Keep nothing of what was changed for the next start of clef; what runs goes on as it is."""
    await engine_of(request).forget()
    return await _status(request)


@router.get("/engine/log", response_model=None)
async def log(
    request: Request,
    tail: Annotated[int, Query(ge=0, le=200, description="Lines to begin with")] = 200,
    follow: Annotated[bool, Query(description="Go on with new lines as NDJSON")] = False,
) -> Response:
    """The last lines of a llama.cpp that clef started; with `follow` as a stream that goes on over restarts."""
    chosen = engine_of(request)
    if not follow:
        return Json({"lines": chosen.log_tail(tail) if tail else []})
    return StreamingResponse(_following(chosen, tail), media_type="application/x-ndjson", headers=STREAM_HEADERS)


@router.get("/models")
async def models(request: Request) -> Json:
    """The decision models there are: size, licence, whether they fit here, and whether they are here."""
    shelf = engine_of(request).models
    offers, memory = await shelf.offers(), await shelf.memory()
    gpus = [
        {"name": gpu.name, "description": gpu.description, "total_bytes": gpu.total_bytes, "free_bytes": gpu.free_bytes}
        for gpu in memory.gpus
    ]
    return Json(
        {
            "models": [offer.to_dict() for offer in offers],
            "machine": {"ram_bytes": memory.ram_bytes, "gpus": gpus},
            "cache": str(shelf.cache),
        }
    )


@router.get("/models/{name}/download")
async def progress(request: Request, name: str) -> Json:
    """How the download of a model goes."""
    shelf = engine_of(request).models
    return _progress(shelf.downloads.progress(await shelf.order(name)))


@router.post("/models/{name}/download", status_code=202)
async def download(request: Request, name: str, wanted: Annotated[Download | None, Body()] = None) -> Json:
    """Begin to download a model, or go on with it."""
    shelf = engine_of(request).models
    order = await shelf.order(name, with_projector=wanted is not None and wanted.images)
    return _progress(shelf.downloads.start(order), 202)


@router.post("/models/{name}/pause")
async def pause(request: Request, name: str) -> Json:
    """Stop a download; what came stays."""
    shelf = engine_of(request).models
    return _progress(await shelf.downloads.pause(await shelf.order(name)))


@router.post("/models/{name}/remove")
async def remove(request: Request, name: str) -> Json:
    """Delete a model from this machine, or what came of it; not the one that runs."""
    chosen = engine_of(request)
    shelf = chosen.models
    order = await shelf.order(name)
    child = (await chosen.status()).child
    if child is not None and child.pid is not None and Path(child.model_path) in (shelf.downloads.paths(order) or ()):
        raise InputError(f"{order.name} is running", hint="stop the engine, or switch to another model, first")
    return Json({"name": order.name, "freed_bytes": await shelf.downloads.remove(order)})


@router.get("/doctor")
async def doctor(request: Request) -> Json:
    """What is well and what is not on this machine, each finding with what to do."""
    from clef.engines.doctor.examine import examine_all
    from clef.engines.doctor.finding import exit_code

    findings = await examine_all(engine_of(request).settings, engine_of(request))
    return Json({"findings": [finding.to_dict() for finding in findings], "exit_code": exit_code(findings)})


def engine_of(request: Request) -> ChosenEngine:
    """The engine with its actions."""
    chosen: ChosenEngine = request.app.state.engine
    return chosen


async def _status(request: Request, status: int = 200) -> Json:
    return Json((await engine_of(request).status()).to_dict(), status_code=status)


def _progress(progress: Progress, status: int = 200) -> Json:
    return Json(progress.to_dict(), status_code=status)


async def _following(engine: ChosenEngine, tail: int) -> AsyncGenerator[bytes, None]:
    life, place, _ = engine.log_since(0, 0)
    for text in engine.log_tail(tail) if tail else []:
        yield line("line", {"text": text})
    yield line("heartbeat", {})
    waited = 0.0
    while True:
        await asyncio.sleep(LOOK_S)
        waited += LOOK_S
        before = life
        life, place, lines = engine.log_since(life, place)
        if life != before:
            yield line("start", {"number": life})
        for text in lines:
            yield line("line", {"text": text})
        if waited >= HEARTBEAT_S and not lines:
            yield line("heartbeat", {})
        if lines or waited >= HEARTBEAT_S:
            waited = 0.0
