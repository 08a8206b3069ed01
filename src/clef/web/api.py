"""Turns HTTP requests into decisions, table previews and evaluations, and these into JSON."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import PurePath
from typing import Annotated, Any, Literal
from urllib.parse import quote

import orjson
from fastapi import APIRouter, Body, Depends, Query, Request
from fastapi.responses import StreamingResponse

from clef import __version__
from clef.decisions.examples import Outcome
from clef.decisions.questions import as_text
from clef.engines.engine import Engine
from clef.errors import ClefError, InputError, Problem
from clef.reports.export import write_csv
from clef.runs.recent import Run
from clef.settings import Settings
from clef.statistics.summary import summarise
from clef.tables import ReadOptions, Table, read
from clef.web.errors import Json
from clef.web.predict import predict, ranked, read_request
from clef.web.schemas import ErrorResponse, Health, PredictRequest, PredictResponse

EXCERPT = 300
"""Characters of a state that a row line carries; exports have all of it."""
STREAM_HEADERS = {"X-Accel-Buffering": "no", "Cache-Control": "no-store"}
ERRORS: dict[int | str, dict[str, Any]] = {
    400: {"model": ErrorResponse, "description": "The input cannot be used; every problem is listed"},
    413: {"model": ErrorResponse, "description": "Larger than a limit, which the message names"},
    502: {"model": ErrorResponse, "description": "The engine refused, or answered no distribution"},
    503: {"model": ErrorResponse, "description": "The engine is not there or not ready; see Retry-After"},
    504: {"model": ErrorResponse, "description": "The engine took too long"},
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
        message=facts.message,
        hint=facts.hint,
        version=__version__,
    )


@router.post(
    "/predict",
    response_model=PredictResponse,
    responses=ERRORS,
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {"schema": PredictRequest.model_json_schema(ref_template="#/$defs/{model}")}
            },
        }
    },
)
async def post_predict(request: Request) -> Json:
    """Decide the questions about a state, all in one request to the engine."""
    asked = read_request(read_json(await request.body()))
    return Json(await predict(asked, request.app.state.engine))


TableBody = Annotated[bytes, Body(media_type="text/csv", description="A table, as bytes, in any format clef reads")]
BadRows = Annotated[Literal["refuse", "skip"], Query(description="skip runs the rows without problems")]


@dataclass(frozen=True, slots=True)
class TableQuery:
    """The query parameters that say how to read a table."""

    name: Annotated[str, Query(description="File name, a hint for the format")] = ""
    encoding: Annotated[str | None, Query(description="Character encoding, where the guess is wrong")] = None
    separator: Annotated[str | None, Query(description="Column separator, where the guess is wrong")] = None
    sheet: Annotated[str | None, Query(description="Sheet of a workbook; the first one by default")] = None
    columns: Annotated[list[str] | None, Query(description="role:column header, where the guess is wrong")] = None

    def options(self, settings: Settings) -> ReadOptions:
        """The same for the reader, with the row limit of the settings."""
        pairs = [item.partition(":") for item in self.columns or ()]
        return ReadOptions(
            name=self.name,
            encoding=self.encoding,
            separator=self.separator,
            sheet=self.sheet,
            mapping={role: header for role, _, header in pairs},
            max_rows=settings.max_rows,
        )


Reading = Annotated[TableQuery, Depends()]


@router.post("/tables/preview", responses=ERRORS)
async def preview(request: Request, body: TableBody, reading: Reading) -> Json:
    """What a table holds, as the model will see it, and all that is wrong with it; no model is asked."""
    table = await asyncio.to_thread(read, body, reading.options(request.app.state.settings))
    return Json(await asyncio.to_thread(table.preview))


@router.post("/evaluate", responses=ERRORS, response_class=StreamingResponse)
async def evaluate(
    request: Request, body: TableBody, reading: Reading, bad_rows: BadRows = "refuse"
) -> StreamingResponse:
    """Ask every row of a labelled table alone, and stream NDJSON: `start`, a `row` as each finishes, `summary`.

    The last line is `summary`, or `cut` with the reason. Nothing is sent to the engine before the table is known to
    be good. A client that goes away stops the work.
    """
    state = request.app.state
    table = await asyncio.to_thread(read, body, reading.options(state.settings))
    examples = table.examples if bad_rows == "skip" else table.require()
    if not examples:
        raise InputError("the table has no row to ask", table.problems)
    preview = await asyncio.to_thread(table.preview, 0)
    run = state.runs.create(reading.name or "table", examples, await state.engine.facts(), preview["facts"])
    lines = _lines(run, table, state.engine, state.settings.eval_concurrency)
    return StreamingResponse(lines, media_type="application/x-ndjson", headers=STREAM_HEADERS)


@router.get("/runs/{run_id}/export", responses={404: {"model": ErrorResponse}}, response_class=StreamingResponse)
async def export(request: Request, run_id: str) -> StreamingResponse:
    """The rows of a run as CSV, in the table's order, safe to open in a spreadsheet."""
    run: Run = request.app.state.runs.get(run_id)
    name = quote(f"{PurePath(run.name).stem or 'table'}-results.csv")
    headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{name}"}
    return StreamingResponse(write_csv(run.in_table_order), media_type="text/csv; charset=utf-8", headers=headers)


async def _lines(run: Run, table: Table, engine: Engine, concurrency: int) -> AsyncGenerator[bytes, None]:
    yield _line("start", _start(run, table))
    try:
        async with aclosing(run.execute(engine, concurrency)) as outcomes:
            async for outcome in outcomes:
                yield _line("row", row_line(outcome) | {"done": len(run.outcomes)})
    except ClefError as error:
        yield _line("cut", {"reason": run.reason, "code": error.code, **_progress(run)})
        return
    summary = await asyncio.to_thread(summarise, run.outcomes)
    yield _line("summary", summary.to_dict() | {"run": run.id})


def _start(run: Run, table: Table) -> dict[str, Any]:
    labelled = sum(example.label is not None for example in run.examples)
    return {
        "run": run.id,
        "rows": len(run.examples),
        "labelled": labelled,
        "unlabelled": len(run.examples) - labelled,
        "skipped": len(table.problems) and len({problem.row for problem in table.problems}),
        "engine": run.engine.kind,
        "model": run.engine.model,
        "shape": "isolated",
        "table": run.table,
        "warnings": [warning.to_dict() for warning in table.warnings],
    }


def _progress(run: Run) -> dict[str, Any]:
    return {"done": len(run.outcomes), "rows": len(run.examples), "run": run.id}


def row_line(outcome: Outcome) -> dict[str, Any]:
    """One outcome as JSON: what was asked in short, every answer with its probability, and whether it is right."""
    example, answer, failure = outcome.example, outcome.answer, outcome.failure
    names = example.question.answers
    line: dict[str, Any] = {
        "row": example.row,
        "line": example.line,
        "question": example.question_name,
        "question_type": example.question.type,
        "context": as_text(example.state)[:EXCERPT],
        "answer": None if example.label is None else names[example.label],
        "prediction": None,
        "confidence": None,
        "probability": None,
        "answer_probability": None,
        "margin": None,
        "tie": False,
        "correct": outcome.correct,
        "answers": [],
        "error": {"code": failure.code, "message": failure.message} if failure else None,
        "elapsed_ms": round(outcome.elapsed_s * 1000, 2),
    }
    if answer is not None:
        line |= {
            "prediction": answer.prediction,
            "confidence": answer.confidence,
            "probability": answer.top_probability,
            "answer_probability": None if example.label is None else answer.probabilities[example.label],
            "margin": answer.margin,
            "tie": answer.tie,
            "answers": ranked(answer),
        }
        if answer.type == "score":
            line |= {"score": answer.score, "level": answer.level}
    return line


def _line(kind: str, content: dict[str, Any]) -> bytes:
    return orjson.dumps({"type": kind} | content, option=orjson.OPT_APPEND_NEWLINE)


def read_json(body: bytes) -> Any:
    """The JSON of a body. Raises InputError saying where it stops being JSON."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        problem = Problem(f"the body is not JSON: {error}", "not_json", line=error.lineno)
        raise InputError.of([problem]) from error
