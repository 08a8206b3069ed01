"""Turns HTTP requests into labels that a person gives to rows of a run, and these into a table to take away."""

import asyncio
from typing import Literal

from fastapi import APIRouter, Request
from fastapi.responses import StreamingResponse
from starlette.responses import Response

from clef.errors import InputError, Problem
from clef.reports.export import CsvWriter
from clef.runs.corrections import COLUMNS
from clef.runs.store import Store
from clef.web.bodies import read_json_body
from clef.web.errors import Json
from clef.web.run_files import TYPES, as_file, written
from clef.web.schemas import ErrorResponse, LabelIn, Place, json_body

router = APIRouter(
    prefix="/api/runs", responses={404: {"model": ErrorResponse, "description": "No such run, or no such row"}}
)


@router.get("/{run_id}/corrections")
async def corrections(request: Request, run_id: str, format: Literal["json", "csv"] = "json") -> Response:
    """What a person said of the rows of a run; as `csv` the whole table with the labels that count now, ready to be
    run again: `review` says which were corrected or confirmed, `label_in_table` what stood there.
    """
    store: Store = request.app.state.store
    run = await store.get(run_id)
    said, (reviewed, corrected) = await asyncio.gather(store.corrections.of(run_id), store.corrections.counts(run_id))
    if format == "json":
        shown = [one.to_dict() for one in said]
        return Json({"reviewed": reviewed, "corrected": corrected, "corrections": shown})
    names = await store.extra_names(run_id)
    told = await store.corrections.told(run_id) if reviewed else None
    writer = CsvWriter(list(dict.fromkeys([*names, *COLUMNS])) if reviewed else names)
    blocks = written(store, run_id, writer, told)
    return StreamingResponse(blocks, media_type=TYPES["csv"], headers=as_file(run, "corrected.csv"))


@router.put("/{run_id}/rows/{position}/label", openapi_extra=json_body(LabelIn))
async def correct(request: Request, run_id: str, position: Place) -> Json:
    """Give a row its label: `{"label": "billing", "note": "…"}`. The numbers of the run go by it from now on."""
    store: Store = request.app.state.store
    await store.get(run_id)
    body = await read_json_body(request, request.app.state.settings.max_body)
    label = body.get("label") if isinstance(body, dict) else None
    note = body.get("note", "") if isinstance(body, dict) else ""
    if not isinstance(label, str) or not isinstance(note, str):
        hint = 'send {"label": "…"}, and "note" as text if there is one'
        raise InputError.of([Problem("expected a label as text", "label", column="label", hint=hint)], "the label")
    await store.corrections.correct(run_id, position, label, note)
    return await _standing(store, run_id, position)


@router.delete("/{run_id}/rows/{position}/label")
async def undo(request: Request, run_id: str, position: Place) -> Json:
    """Give a row the label back that it has in the table."""
    store: Store = request.app.state.store
    await store.get(run_id)
    await store.corrections.undo(run_id, position)
    return await _standing(store, run_id, position)


async def _standing(store: Store, run_id: str, position: Place) -> Json:
    """What is said of the row now, and of how many rows something is."""
    said, (reviewed, corrected) = await asyncio.gather(
        store.corrections.one(run_id, position), store.corrections.counts(run_id)
    )
    return Json({"correction": said and said.to_dict(), "reviewed": reviewed, "corrected": corrected})
