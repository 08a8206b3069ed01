"""Turns the outcomes of a run into the parts of its page that take a moment: gates, slices, labels to check."""

from collections.abc import Sequence
from functools import partial
from pathlib import PurePath
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse
from starlette.responses import Response

from clef.decisions.examples import Outcome
from clef.errors import ClefError
from clef.runs.browse import RowFilter
from clef.runs.store import Store, StoredRun
from clef.web.gate_view import GateRule, gates_view
from clef.web.render import fragment, problems
from clef.web.run_filter import Filter, Labels
from clef.web.run_numbers import RunNumbers

MOST_SUSPECTS = 5
"""Labels to check that are named; the review has all of them."""
MOST_SLICES = 12
"""Values of a column that are shown at once."""


def measure_pages(numbers: RunNumbers) -> APIRouter:
    """The parts of a run's page that are fetched after it, as a router."""
    router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)

    async def made(request: Request, run_id: str, about: tuple[Any, ...], make: Any) -> Any:
        store: Store = request.app.state.store
        labels = Filter.read(request.query_params).labels
        return await numbers.part(store, await store.get(run_id), labels, about, make)

    @router.get("/runs/{run_id}/gates")
    async def gates(request: Request, run_id: str) -> Response:
        """The sliders of a run's gates, under the rule that the address names."""
        wanted = GateRule.read(request.query_params.get("gate"))
        try:
            found = await made(request, run_id, ("gates", wanted), partial(gates_view, wanted=wanted))
            run = await request.app.state.store.get(run_id)
        except ClefError as error:
            return problems(request, error)
        name = PurePath(run.name).stem or "run"
        context: dict[str, Any] = {"path": f"/runs/{run_id}", "address": request.url.path, "stem": name}
        return fragment(request, "gates.html", found=found, wanted=wanted, **context)

    @router.get("/runs/{run_id}/slices")
    async def slices(request: Request, run_id: str) -> Response:
        """The accuracy of the rows with each value of each extra column, and the labels to check."""
        store: Store = request.app.state.store
        try:
            found = await made(request, run_id, ("slices",), slices_view)
            labels = Filter.read(request.query_params).labels
            doubtful = await suspects_view(store, numbers, await store.get(run_id), labels)
        except ClefError as error:
            return problems(request, error)
        chosen = Filter.read(request.query_params)
        context: dict[str, Any] = {"path": f"/runs/{run_id}", "chosen": chosen, "most": MOST_SLICES}
        context |= {"suspects": doubtful[:MOST_SUSPECTS], "suspected": len(doubtful)}
        return fragment(request, "slices.html", found=found, **context)

    return router


def slices_view(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """The slices by column, those called different first and then the worst ones."""
    from clef.statistics.slices import slices

    found = slices(outcomes)
    columns: dict[str, list[dict[str, Any]]] = {}
    for one in sorted(found.slices, key=lambda one: (not one.different, one.rate.value is None, one.rate.value)):
        columns.setdefault(one.column, []).append(one.to_dict())
    tested = sum(one.p is not None for one in found.slices)
    return {"columns": columns, "skipped": dict(found.skipped), "tested": tested}


async def suspects_view(store: Store, numbers: RunNumbers, run: StoredRun, labels: Labels) -> list[dict[str, Any]]:
    """The labels to check, most suspicious first; `position` is the row's place in the run."""
    found: list[dict[str, Any]] = await numbers.part(store, run, labels, ("suspects",), _suspects)
    if run.done == run.rows:
        return found
    places = await store.places(run.id, RowFilter(sort="row", descending=False))
    return [item | {"position": places[item["position"]]} for item in found]


def _suspects(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    from clef.statistics.suspects import suspects

    return [item.to_dict() for item in suspects(outcomes).items]
