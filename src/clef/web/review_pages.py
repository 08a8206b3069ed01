"""Turns a run into a queue of rows that a person goes through one at a time, the least sure first."""

from dataclasses import replace
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse
from starlette.responses import Response

from clef.errors import ClefError, NotFound
from clef.runs.browse import Row
from clef.runs.store import Store, StoredRun
from clef.web.measure_pages import slices_view
from clef.web.render import fragment, page, problems
from clef.web.run_filter import Filter
from clef.web.run_pages import as_it_is

MOST_QUEUED = 1000
"""Rows of one queue; the next look makes the next one."""
DIGITS = 9
"""Answers that have a key of their own."""


def review_pages() -> APIRouter:
    """The review of runs, as a router."""
    router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)

    @router.get("/runs/{run_id}/review")
    async def review(request: Request, run_id: str) -> Response:
        """The queue of the rows of a filter, or of the labels to check, and its first row."""
        store: Store = request.app.state.store
        chosen = Filter.read(request.query_params)
        by = "suspects" if request.query_params.get("queue") == "suspects" else "doubt"
        try:
            run = await store.get(run_id)
            queue = await _suspects(request, run) if by == "suspects" else await _doubtful(store, run, chosen)
            if chosen.row is not None and await store.one(run_id, chosen.row) is not None:
                queue = [chosen.row, *(place for place in queue if place != chosen.row)]
        except NotFound as error:
            return await page(request, "missing.html", error.status, error=error)
        first = await store.one(run_id, queue[0]) if queue else None
        reviewed, corrected = await store.corrections.counts(run_id)
        shown: dict[str, Any] = {"run": run, "chosen": chosen, "by": by, "reviewed": reviewed, "corrected": corrected}
        shown |= {"queue": queue[:MOST_QUEUED], "queued": len(queue), "row": None}
        if first is not None:
            shown |= await _row(store, run_id, first)
        return as_it_is(await page(request, "review.html", **shown))

    @router.get("/runs/{run_id}/review/{position}")
    async def row(request: Request, run_id: str, position: int) -> Response:
        """One row of a queue, as a fragment."""
        store: Store = request.app.state.store
        try:
            found = await store.row(run_id, position)
        except ClefError as error:
            return problems(request, error)
        return as_it_is(fragment(request, "review_row.html", **await _row(store, run_id, found)))

    return router


async def _doubtful(store: Store, run: StoredRun, chosen: Filter) -> list[int]:
    """The places of the rows of a filter that nobody has looked at, the least sure first, failures last."""
    rows = replace(chosen.rows, sort="rank", descending=False, reviewed=False)
    return await store.places(run.id, rows)


async def _suspects(request: Request, run: StoredRun) -> list[int]:
    """The places of the labels to check that nobody has looked at, the most suspicious first."""
    store: Store = request.app.state.store
    _, found = await slices_view(request.app.state.measured, store, run, "own")
    looked_at = {one.position for one in await store.corrections.of(run.id)}
    return [place for item in found if (place := item["position"]) not in looked_at]


async def _row(store: Store, run_id: str, row: Row) -> dict[str, Any]:
    """What a template needs to ask about a row: its answers with their keys, those without one apart."""
    outcome = row.outcome
    question, answer = outcome.example.question, outcome.answer
    names = list(question.answers)
    if len(names) > DIGITS:
        order = [name for name, _ in answer.ranked()] if answer else names
        label = outcome.example.label
        names = list(dict.fromkeys([*order[: DIGITS - 1], *([question.answers[label]] if label is not None else [])]))
        names += [name for name in order if name not in names][: DIGITS - len(names)]
    others = [name for name in question.answers if name not in names]
    probabilities = dict(zip(answer.names, answer.probabilities, strict=True)) if answer else {}
    said = await store.corrections.one(run_id, row.position)
    asked = {"run_id": run_id, "row": row, "names": names, "others": others}
    return asked | {"probabilities": probabilities, "said": said}
