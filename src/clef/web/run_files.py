"""Turns a stored run into a file to take away, block by block so that any size fits, and such a file into a run."""

import asyncio
from collections.abc import AsyncGenerator
from itertools import count
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Literal
from urllib.parse import quote

from fastapi import APIRouter, Query, Request
from fastapi.responses import FileResponse, HTMLResponse, StreamingResponse
from starlette.background import BackgroundTask
from starlette.responses import Response

from clef.decisions.examples import Outcome
from clef.errors import InputError, Problem
from clef.runs.store import Store, StoredRun
from clef.web.errors import Json
from clef.web.measured import policy_of
from clef.web.schemas import NOT_FOUND

if TYPE_CHECKING:
    from clef.reports.export import Writer
    from clef.runs.corrections import Changed
    from clef.statistics.policy import Policy

TYPES = {
    "csv": "text/csv; charset=utf-8",
    "jsonl": "application/x-ndjson",
    "parquet": "application/vnd.apache.parquet",
    "clef": "application/vnd.sqlite3",
}
Format = Literal["csv", "jsonl", "parquet", "clef"]

RUN_BODY = {
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}

router = APIRouter(prefix="/api/runs", responses=NOT_FOUND)


@router.post("/import", status_code=201, openapi_extra=RUN_BODY)
async def import_run(request: Request) -> Json:
    """Take in the run of a file that `GET /api/runs/{id}/export?format=clef` or `clef runs export` wrote."""
    body = await request.body()
    with TemporaryDirectory(prefix="clef-") as folder:
        path = Path(folder, "run.clef")
        await asyncio.to_thread(path.write_bytes, body)
        taken = await request.app.state.store.take_in(path)
    return Json(taken.to_dict(), status_code=201)


@router.get("/{run_id}/export", response_class=StreamingResponse)
async def export(
    request: Request,
    run_id: str,
    format: Format = "csv",
    policy: Annotated[str | None, Query(description="A saved policy: what it says of each row, as columns")] = None,
) -> Response:
    """The rows of a run in the table's order; the CSV is safe to open in a spreadsheet. `clef` is the whole run, for
    another clef to take in.
    """
    store: Store = request.app.state.store
    found = await store.get(run_id)
    headers = as_file(found, f"results.{format}")
    if format == "clef":
        if policy is not None:
            hint = "take csv, jsonl or parquet"
            raise InputError.of([Problem("a whole run has no columns of a policy", "policy", hint=hint)])
        folder = TemporaryDirectory(prefix="clef-")
        path = Path(folder.name, "run.clef")
        await store.export(run_id, path)
        gone = BackgroundTask(folder.cleanup)
        return FileResponse(path, media_type=TYPES[format], headers=headers, background=gone)
    applied = policy_of(await store.policies.get(policy)) if policy is not None else None
    writer = await _writer(store, found, format, applied)
    return StreamingResponse(written(store, run_id, writer), media_type=TYPES[format], headers=headers)


@router.get("/{run_id}/report", response_class=HTMLResponse)
async def run_report(
    request: Request, run_id: str, redact: Annotated[bool, Query(description="Leave the states out")] = False
) -> Response:
    """The run as one self-contained page, to keep or to send."""
    from clef.reports.html import About, hold, render

    found: StoredRun = await request.app.state.store.get(run_id)
    held = await request.app.state.store.over(run_id, hold)
    about = About(found.name, found.engine.model or "", found.shape, found.created, found.note)
    text = await asyncio.to_thread(render, held, about, redact=redact)
    return HTMLResponse(text, headers=as_file(found, "report.html"))


def as_file(run: StoredRun, ending: str) -> dict[str, str]:
    """The headers that make a browser keep an answer as a file, named after the run's table."""
    name = quote(f"{PurePath(run.name).stem or 'table'}-{ending}")
    return {"Content-Disposition": f"attachment; filename*=UTF-8''{name}"}


async def _writer(store: Store, run: StoredRun, format: Format, policy: "Policy | None") -> "Writer":
    """Raises InputError where what it needs is not installed."""
    from clef.reports.files import writer_of

    return writer_of(format, [] if format == "jsonl" else await store.extra_names(run.id), policy)


async def written(
    store: Store, run_id: str, writer: "Writer", changed: "Changed | None" = None
) -> AsyncGenerator[bytes, None]:
    """The bytes of the file as they come to be, of the outcomes as they are or as they are `changed`."""
    waiting: list[Outcome] = []
    places = count()
    yield writer.head()
    async for rows in store.blocks(run_id):
        outcomes = [row.outcome for row in rows]
        waiting += outcomes if changed is None else map(changed, places, outcomes)
        if len(waiting) >= writer.held:
            block, waiting = waiting, []
            yield await asyncio.to_thread(writer.block, block)
    if waiting:
        yield await asyncio.to_thread(writer.block, waiting)
    yield writer.tail()
