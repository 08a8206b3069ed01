"""Turns runs into the page that compares them: the sentence, the differences, and the rows that changed."""

import asyncio
from collections import OrderedDict
from typing import Any, get_args

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse
from starlette.responses import Response

from clef.errors import InputError, NotFound
from clef.runs.browse import Row
from clef.runs.store import Store, StoredRun
from clef.web.compare_view import FLIP_ROWS, Flipped, Pairing, Show, compare_view, names_of
from clef.web.render import page
from clef.web.run_filter import number
from clef.web.run_pages import as_it_is

MOST_RUNS = 6
"""Runs that are compared at once."""
OFFERED = 50
"""Runs to choose from."""
KEPT = 4
"""Comparisons that are kept in memory."""


def compare_pages() -> APIRouter:
    """The comparison of runs, as a router."""
    router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)
    kept: OrderedDict[tuple[Any, ...], list[Pairing]] = OrderedDict()

    async def compared(store: Store, runs: list[StoredRun]) -> list[Pairing]:
        from clef.statistics.halves import as_half

        key = tuple((run.id, run.revision) for run in runs)
        if key not in kept:
            halves = [await store.over(run.id, as_half) for run in runs]
            kept[key] = await asyncio.to_thread(compare_view, list(zip(names_of(runs), halves, strict=True)))
        kept.move_to_end(key)
        while len(kept) > KEPT:
            kept.popitem(last=False)
        return kept[key]

    @router.get("/compare")
    async def compare(request: Request) -> Response:
        """Runs against each other; with fewer than two, which ones."""
        store: Store = request.app.state.store
        ids = list(dict.fromkeys(request.query_params.getlist("run")))
        try:
            if len(ids) > MOST_RUNS:
                raise InputError(f"{len(ids)} runs are too many to compare", hint=f"choose {MOST_RUNS} at most")
            runs = [await store.get(run_id) for run_id in ids]
        except (NotFound, InputError) as error:
            return await page(request, "missing.html", error.status, error=error)
        if len(runs) < 2:
            offered = [run for run in await store.runs(limit=OFFERED) if run.done]
            return as_it_is(await page(request, "compare_choose.html", runs=offered, chosen=set(ids)))
        if request.query_params.get("order") == "created":  # chosen from a list, which has the newest first
            runs.sort(key=lambda run: run.created)
        pairings = await compared(store, runs)
        context = await _context(request, store, runs, pairings)
        return as_it_is(await page(request, "compare.html", runs=runs, pairings=pairings, **context))

    return router


async def _context(request: Request, store: Store, runs: list[StoredRun], pairings: list[Pairing]) -> dict[str, Any]:
    """Which flips the address asks for, and what stands around them."""
    query = request.query_params
    at = min(number(query.get("pair")) or 0, len(pairings) - 1)
    pairing = pairings[at]
    show: Show = next((one for one in get_args(Show) if one == query.get("show")), "all")
    question = query.get("question") or None
    chosen = pairing.chosen(show, question)
    pages = max(1, -(-len(chosen) // FLIP_ROWS))
    now = min(max(1, number(query.get("page")) or 1), pages)
    counts = {one: len(pairing.chosen(one, question)) for one in get_args(Show)}
    on_page = chosen[(now - 1) * FLIP_ROWS : now * FLIP_ROWS]
    flips = await _rows(store, (runs[pairing.first], runs[pairing.second]), on_page)
    base = {"run": [run.id for run in runs]} | ({"pair": at} if at else {})
    asked = {"show": show, "question": question, "page": now, "pages": pages, "base": base}
    return asked | {"at": at, "counts": counts, "flips": flips, "total": len(chosen), "names": names_of(runs)}


async def _rows(store: Store, runs: tuple[StoredRun, StoredRun], flips: list[Flipped]) -> list[tuple[str, Row, Row]]:
    """The rows of flips in both runs; one that was deleted meanwhile is left out."""
    places = [await store.positions(run) if flips else [] for run in runs]

    async def one(flip: Flipped) -> tuple[str, Row | None, Row | None]:
        first, second = await asyncio.gather(
            store.one(runs[0].id, places[0][flip.first]), store.one(runs[1].id, places[1][flip.second])
        )
        return flip.change, first, second

    found = await asyncio.gather(*map(one, flips))
    return [(change, first, second) for change, first, second in found if first and second]
