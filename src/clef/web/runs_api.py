"""Turns HTTP requests into runs: made, watched, stopped, looked through, put away."""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import orjson
from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import StreamingResponse

from clef.decisions.examples import Outcome
from clef.decisions.questions import QuestionType
from clef.runs.browse import MAX_PAGE, Row
from clef.runs.budget import too_long
from clef.runs.measures import SUMMARY
from clef.runs.narrowing import Labels, RowFilter, Show, Sort
from clef.runs.plan import plan
from clef.runs.queue import Event
from clef.runs.store import LIVE, NewRun, Store, StoredRun
from clef.web.errors import Json
from clef.web.lines import STREAM_HEADERS, row_of
from clef.web.measured import policy_of
from clef.web.schemas import NOT_FOUND, Place
from clef.web.tables import TABLE_BODY, BadRows, Reading, TableBody, drawn, read_table

if TYPE_CHECKING:
    from clef.statistics.policy import Policy

HEARTBEAT_S = 10.0
"""A stream says at least this often that it is alive, so that no proxy closes it."""
SavedPolicy = Annotated[str | None, Query(description="Name of a saved policy that says act or review")]

router = APIRouter(prefix="/api/runs", responses=NOT_FOUND)


@dataclass(frozen=True, slots=True)
class NewRunQuery:
    """The query parameters that say how to run a table."""

    shape: Annotated[
        Literal["isolated", "joint"], Query(description="Each question alone, or those of a state together")
    ] = "isolated"
    title: Annotated[str, Query(max_length=200, description="What the run is called; the file's name by default")] = ""
    note: str = ""
    cache: Annotated[bool, Query(description="Use answers that earlier runs got from the same model")] = True
    bad_rows: BadRows = "refuse"
    rows: Annotated[int | None, Query(ge=1, description="Rows to use, drawn at random; all of them by default")] = None
    seed: Annotated[int, Query(ge=0, le=2**31, description="The same seed draws the same rows")] = 1


@dataclass(frozen=True, slots=True)
class RowsQuery:
    """The query parameters that say which rows, in which order."""

    show: Show = "all"
    question: str | None = None
    label: str | None = None
    prediction: str | None = None
    low: Annotated[float | None, Query(ge=0, le=1, description="Top probability at least this")] = None
    high: Annotated[float | None, Query(ge=0, le=1, description="Top probability below this; 1 includes 1")] = None
    sure: Annotated[float | None, Query(ge=0, le=1, description="What a gate at this threshold acts on")] = None
    unsure: Annotated[float | None, Query(ge=0, le=1, description="What a gate at this threshold leaves to check")] = (
        None
    )
    type: Annotated[QuestionType | None, Query(description="Of the question")] = None
    off: Annotated[int | None, Query(description="Levels by which a score's prediction is above its label")] = None
    text: Annotated[str, Query(max_length=500, description="Part of the state, label or prediction")] = ""
    column: Annotated[str | None, Query(description="A column with no role, which must have `value`")] = None
    value: str = ""
    reviewed: Annotated[bool | None, Query(description="Whether a person has looked at the row")] = None
    labels: Annotated[Labels, Query(description="By a person's labels, or by those of the table")] = "own"
    sort: Sort = "rank"
    descending: bool = True
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE)] = 100
    offset: Annotated[int, Query(ge=0, le=2**31)] = 0


@router.post("", status_code=201, openapi_extra=TABLE_BODY)
async def create(request: Request, body: TableBody, reading: Reading, new: Annotated[NewRunQuery, Depends()]) -> Json:
    """Put a run of a table in line. It goes on whether or not anyone watches."""
    state = request.app.state
    table, read = await read_table(request, body, reading, new.bad_rows)
    examples = drawn(read, new.rows, new.seed)
    facts = await state.engine.facts()
    title = new.title.strip() or reading.name or "table"
    draw = {"drawn": new.rows, "seed": new.seed} if len(examples) < len(read) else {}
    made = NewRun(title, facts, new.shape, new.note, new.cache, table.facts.to_dict() | draw)
    run = await state.queue.submit(made, examples)
    return Json(run.to_dict(), status_code=201)


@router.post("/plan", openapi_extra=TABLE_BODY)
async def plan_run(request: Request, body: TableBody, reading: Reading, new: Annotated[NewRunQuery, Depends()]) -> Json:
    """What a run of a table would send, which rows are too long, and how many seconds it would take at the pace of an
    earlier run of this model, where there is one; no decision is asked.
    """
    state = request.app.state
    _, read = await read_table(request, body, reading, new.bad_rows)
    examples = drawn(read, new.rows, new.seed)
    asks = await asyncio.to_thread(plan, enumerate(examples), new.shape)
    long = [(ask, error) async for ask, error in too_long(asks, state.engine)]
    rows: list[dict[str, Any]] = [
        {"row": examples[position].row, "tokens": error.tokens, "limit": error.limit}
        for ask, error in long
        for positions in ask.positions
        for position in positions
    ]
    facts = await state.engine.facts()
    pace = await state.store.pace(facts.identity, new.shape)
    seconds = None if pace is None else pace * (len(asks) - len(long)) / state.settings.eval_concurrency
    sent = {"rows": len(examples), "requests": len(asks), "max_tokens": facts.max_tokens, "seconds": seconds}
    return Json(sent | {"too_long": sorted(rows, key=lambda row: row["row"])})


@router.get("")
async def runs(
    request: Request,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE)] = 100,
    offset: Annotated[int, Query(ge=0, le=2**31)] = 0,
    search: str = "",
) -> Json:
    """Runs, newest first."""
    found = await request.app.state.store.runs(limit=limit, offset=offset, search=search)
    return Json({"runs": [run.to_dict() for run in found], "limit": limit, "offset": offset})


@router.get("/{run_id}")
async def run(request: Request, run_id: str, policy: SavedPolicy = None) -> Json:
    """A run with the numbers it measured so far; with a policy, `gate` counts what it acts on and what not."""
    found = await request.app.state.store.get(run_id)
    whole = found.to_dict() | {"summary": await summary_of(request.app.state.store, found)}
    return Json(whole if policy is None else whole | {"gate": await _flagged(request, found, policy)})


@router.get("/{run_id}/rows")
async def rows(
    request: Request, run_id: str, query: Annotated[RowsQuery, Depends()], policy: SavedPolicy = None
) -> Json:
    """One page of rows, and how many rows each other `show` would lead to; with a policy, `gate` says of each row
    act or review, and why.
    """
    store: Store = request.app.state.store
    await store.get(run_id)
    applied = policy_of(await store.policies.get(policy)) if policy is not None else None
    names = RowsQuery.__dataclass_fields__
    page = await store.page(run_id, RowFilter(**{name: getattr(query, name) for name in names}))
    return Json({"rows": [_row(item, applied) for item in page.rows], "total": page.total, "counts": page.counts})


@router.get("/{run_id}/rows/{position}")
async def row(request: Request, run_id: str, position: Place, policy: SavedPolicy = None) -> Json:
    """Everything about one row, its state whole."""
    store: Store = request.app.state.store
    found = await store.row(run_id, position)
    applied = policy_of(await store.policies.get(policy)) if policy is not None else None
    example = found.outcome.example
    return Json(_row(found, applied) | {"state": example.state, "extra": dict(example.extra)})


@router.get("/{run_id}/events", response_class=StreamingResponse)
async def events(request: Request, run_id: str) -> StreamingResponse:
    """NDJSON of how a run goes, until it ends; a `heartbeat` line where nothing happens for a while."""
    await request.app.state.store.get(run_id)
    lines = _event_lines(request.app.state.queue.events(run_id))
    return StreamingResponse(lines, media_type="application/x-ndjson", headers=STREAM_HEADERS)


@router.post("/{run_id}/cancel")
async def cancel(request: Request, run_id: str) -> Json:
    """Stop a run; what came back stays."""
    await request.app.state.store.get(run_id)
    await request.app.state.queue.stop(run_id)
    return await run(request, run_id)


@router.post("/{run_id}/resume")
async def resume(request: Request, run_id: str) -> Json:
    """Go on with the rows that have no outcome."""
    await request.app.state.queue.resume(run_id)
    return await run(request, run_id)


@router.post("/{run_id}/retry")
async def retry(request: Request, run_id: str) -> Json:
    """Ask the failed rows again."""
    await request.app.state.store.get(run_id)
    await request.app.state.queue.retry(run_id)
    return await run(request, run_id)


@router.patch("/{run_id}")
async def rename(request: Request, run_id: str, name: str | None = None, note: str | None = None) -> Json:
    """Change what a run is called, or the note on it."""
    found = await request.app.state.store.get(run_id)
    await request.app.state.store.rename(run_id, name or found.name, found.note if note is None else note)
    return await run(request, run_id)


@router.delete("/{run_id}")
async def delete(request: Request, run_id: str) -> Json:
    """Stop a run and put it away; for a day `restore` brings it back."""
    found = await request.app.state.store.get(run_id)
    await request.app.state.store.delete(found.id)  # before its end is told, so that who then looks sees both
    await request.app.state.queue.stop(run_id)
    return Json({"deleted": found.id, "restore": f"/api/runs/{found.id}/restore"})


@router.post("/{run_id}/restore")
async def restore(request: Request, run_id: str) -> Json:
    """Bring a deleted run back."""
    await request.app.state.store.get(run_id)
    await request.app.state.store.restore(run_id)
    return await run(request, run_id)


async def summary_of(store: Store, run: StoredRun) -> Any:
    """The numbers of a run; those of one that has ended are kept, so that they are computed once."""
    kept = await store.measures.get(run.id, SUMMARY)
    if kept is not None:
        return kept
    from clef.statistics.columns import as_columns
    from clef.statistics.summary import summarise

    columns = await store.over(run.id, as_columns)
    summary = (await asyncio.to_thread(summarise, columns)).to_dict()
    if run.state not in LIVE:
        await store.measures.save(run.id, SUMMARY, run.revision, summary)
    return summary


def _row(item: Row, policy: "Policy | None") -> dict[str, Any]:
    """A row as JSON, with what a policy says of it."""
    if policy is None:
        return row_of(item)
    from clef.statistics.policy import ruling

    said = ruling(policy, item.outcome.example.question_name, item.outcome.answer)
    return row_of(item) | {"gate": said.to_dict()}


async def _flagged(request: Request, run: StoredRun, name: str) -> dict[str, Any]:
    """How many rows of a run a saved policy acts on, how many it sends to review, and why."""
    from clef.statistics.policy import counted, ruling

    store: Store = request.app.state.store
    stored = await store.policies.get(name)
    policy = policy_of(stored)

    def count(outcomes: Iterator[Outcome]) -> dict[str, Any]:
        return counted(ruling(policy, outcome.example.question_name, outcome.answer) for outcome in outcomes)

    kept = f"flags {stored.name} {stored.created.isoformat()}"
    found = await request.app.state.measured.kept(run, kept, lambda: store.over(run.id, count))
    return {"policy": stored.name, **found}


async def _event_lines(source: AsyncGenerator[Event, None]) -> AsyncGenerator[bytes, None]:
    async with aclosing(source) as happening:
        following = asyncio.ensure_future(anext(happening, None))
        try:
            while True:
                done, _ = await asyncio.wait({following}, timeout=HEARTBEAT_S)
                if not done:
                    yield b'{"type":"heartbeat"}\n'
                    continue
                event = following.result()
                if event is None:
                    return
                yield orjson.dumps({"type": "progress"} | event.to_dict(), option=orjson.OPT_APPEND_NEWLINE)
                following = asyncio.ensure_future(anext(happening, None))
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
