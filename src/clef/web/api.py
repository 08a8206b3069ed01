"""Turns HTTP requests into decisions, table previews and evaluations, and these into JSON."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from anyio import CancelScope
from fastapi import APIRouter, Request
from fastapi.responses import StreamingResponse

from clef import __version__
from clef.runs.queue import RunQueue
from clef.runs.store import NewRun, Store, StoredRun
from clef.tables import Table
from clef.web.bodies import read_json_body
from clef.web.errors import Json
from clef.web.leaving import while_connected
from clef.web.lines import STREAM_HEADERS, line, row_line
from clef.web.predict import predict, read_request
from clef.web.runs_api import summary_of
from clef.web.schemas import ErrorResponse, Health, PredictRequest, PredictResponse, json_body
from clef.web.tables import TABLE_BODY, BadRows, Reading, TableBody, read_table, read_upload

ERRORS: dict[int | str, dict[str, Any]] = {
    400: {"model": ErrorResponse, "description": "The input cannot be used; every problem is listed"},
    413: {"model": ErrorResponse, "description": "Larger than a limit, which the message names"},
    502: {"model": ErrorResponse, "description": "The engine refused, or answered no distribution"},
    503: {"model": ErrorResponse, "description": "The engine is not there or not ready; see Retry-After"},
    504: {"model": ErrorResponse, "description": "The engine took too long"},
}

PREDICT_EXAMPLE = {
    "state": "I was charged twice.",
    "questions": [{"question": "Which team?", "answers": ["billing", "technical"]}],
}
PREDICT_REPLY = {
    "results": [
        {
            "question": "Which team?",
            "position": 0,
            "type": "choice",
            "prediction": "billing",
            "confidence": 0.93282,
            "probability": 0.96641,
            "margin": 0.93282,
            "entropy": 0.14702,
            "tie": False,
            "answers": [
                {"answer": "billing", "probability": 0.96641},
                {"answer": "technical", "probability": 0.03359},
            ],
            "options": ["billing", "technical"],
        }
    ],
    "model": "sparrow-nano-general-v1.1",
    "shape": "isolated",
    "input_tokens": 10,
    "engine": "builtin",
    "elapsed_ms": 5.29,
}
router = APIRouter(prefix="/api")


@router.get("/health")
async def health(request: Request) -> Health:
    """Whether the engine is reachable, which engine, which model, which phase."""
    facts = await request.app.state.engine.facts()
    return Health(
        reachable=facts.reachable,
        engine=facts.kind,
        phase=facts.phase,
        model=facts.model,
        address=facts.address,
        max_tokens=facts.max_tokens,
        images=facts.images,
        message=facts.message,
        hint=facts.hint,
        version=__version__,
    )


@router.post(
    "/predict",
    response_model=PredictResponse,
    responses=ERRORS | {200: {"content": {"application/json": {"example": PREDICT_REPLY}}}},
    openapi_extra=json_body(PredictRequest, PREDICT_EXAMPLE),
)
async def post_predict(request: Request) -> Json:
    """Decide the questions about a state, all in one request to the engine."""
    asked = read_request(await read_json_body(request, request.app.state.settings.max_body))
    return Json(await while_connected(request, predict(asked, request.app.state.line)))


@router.post("/tables/preview", responses=ERRORS, openapi_extra=TABLE_BODY)
async def preview(request: Request, body: TableBody, reading: Reading) -> Json:
    """What a table holds, as the model will see it, and all that is wrong with it; no model is asked."""
    table = await read_upload(request, body, reading)
    return Json(await asyncio.to_thread(table.preview))


@router.post("/evaluate", responses=ERRORS, openapi_extra=TABLE_BODY, response_class=StreamingResponse)
async def evaluate(
    request: Request, body: TableBody, reading: Reading, bad_rows: BadRows = "refuse"
) -> StreamingResponse:
    """Ask every row of a labelled table alone, and stream NDJSON: `start`, a `row` as each finishes, `summary`.

    The last line is `summary`, or `cut` with the reason. Nothing is sent to the engine before the table is known to
    be good. A client that goes away stops the work; a run made by POST /api/runs goes on without one.
    """
    state = request.app.state
    table, examples = await read_table(request, body, reading, bad_rows)
    facts = await state.engine.facts()
    made = NewRun(reading.name or body.name or "table", facts, facts=table.facts.to_dict())
    run = await state.store.create(made, examples)
    lines = _lines(run, table, state.queue, state.store)
    return StreamingResponse(lines, media_type="application/x-ndjson", headers=STREAM_HEADERS)


async def _lines(run: StoredRun, table: Table, queue: RunQueue, store: Store) -> AsyncGenerator[bytes, None]:
    """The lines of a run that lives as long as someone reads them."""
    ended = False
    try:
        with queue.follow(run.id) as events:
            yield line("start", _start(run, table))
            await queue.enqueue(run.id, patient=False)
            done = 0
            while not ended:
                event = await events.get()
                for outcome in event.outcomes:
                    done += 1
                    yield line("row", row_line(outcome) | {"done": done})
                ended = event.ended
        if event.state == "finished":
            summary = await summary_of(store, await store.get(run.id))
            yield line("summary", summary | {"run": run.id})
        else:
            yield line("cut", {"reason": event.reason, "done": done, "rows": run.rows, "run": run.id})
    finally:
        if not ended:
            with CancelScope(shield=True):
                await queue.stop(run.id, "the client went away")


def _start(run: StoredRun, table: Table) -> dict[str, Any]:
    facts = table.facts
    return {
        "run": run.id,
        "rows": run.rows,
        "labelled": run.rows - facts.unlabelled,
        "unlabelled": facts.unlabelled,
        "skipped": facts.skipped,
        "engine": run.engine.kind,
        "model": run.engine.model,
        "shape": run.shape,
        "table": dict(run.facts),
        "warnings": [warning.to_dict() for warning in table.warnings],
    }
