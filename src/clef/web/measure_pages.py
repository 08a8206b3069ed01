"""Turns the numbers of a run into the parts of its page that take a moment: gates, slices, labels to check."""

from collections.abc import Iterator
from functools import partial
from pathlib import PurePath
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse
from starlette.responses import Response

from clef.decisions.examples import Outcome
from clef.errors import ClefError
from clef.runs.narrowing import Labels
from clef.runs.store import Store, StoredRun
from clef.web.gate_view import GateRule, gates_view
from clef.web.measured import Measured
from clef.web.render import fragment, problems
from clef.web.run_filter import Filter

MOST_SUSPECTS = 5
"""Labels to check that are named; the review has all of them."""
MOST_SLICES = 12
"""Values of a column that are shown at once."""


def measure_pages() -> APIRouter:
    """The parts of a run's page that are fetched after it, as a router."""
    router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)

    @router.get("/runs/{run_id}/gates")
    async def gates(request: Request, run_id: str) -> Response:
        """The sliders of a run's gates, under the rule that the address names."""
        measured: Measured = request.app.state.measured
        wanted = GateRule.read(request.query_params.get("gate"))
        chosen = Filter.read(request.query_params)
        try:
            run = await request.app.state.store.get(run_id)
            make = partial(gates_view, wanted=wanted, pool=chosen.pool, model=run.engine.model or "")
            of = f"page gates on the curve, {chosen.pool} {wanted.rule}"
            found = await measured.of_columns(run, chosen.labels, of, make)
        except ClefError as error:
            return problems(request, error)
        name = PurePath(run.name).stem or "run"
        context: dict[str, Any] = {"path": f"/runs/{run_id}", "address": request.url.path, "stem": name}
        return fragment(request, "gates.html", found=found, wanted=wanted, **context)

    @router.get("/runs/{run_id}/slices")
    async def slices(request: Request, run_id: str) -> Response:
        """The accuracy of the rows with each value of each extra column, and the labels to check."""
        store: Store = request.app.state.store
        chosen = Filter.read(request.query_params)
        try:
            run = await store.get(run_id)
            found, doubtful = await slices_view(request.app.state.measured, store, run, chosen.labels)
        except ClefError as error:
            return problems(request, error)
        context: dict[str, Any] = {"path": f"/runs/{run_id}", "chosen": chosen, "most": MOST_SLICES}
        context |= {"suspects": doubtful[:MOST_SUSPECTS], "suspected": len(doubtful)}
        return fragment(request, "slices.html", found=found, **context)

    return router


async def slices_view(
    measured: Measured, store: Store, run: StoredRun, labels: Labels
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The slices by column, and the labels to check, most suspicious first, with their places in the run."""
    made: dict[str, Any] = await measured.of_outcomes(run, labels, "page slices", _of_outcomes)
    positions = await store.positions(run)
    return made["slices"], [item | {"position": positions[item["position"]]} for item in made["suspects"]]


def _of_outcomes(outcomes: Iterator[Outcome]) -> dict[str, Any]:
    """Both in one reading, which takes longer than the measuring; no outcome is held."""
    from clef.statistics.suspects import Suspecting

    seen = Suspecting()

    def noted() -> Iterator[Outcome]:
        for outcome in outcomes:
            seen.note(outcome)
            yield outcome

    return {"slices": _slices(noted()), "suspects": [item.to_dict() for item in seen.found().items]}


def _slices(outcomes: Iterator[Outcome]) -> dict[str, Any]:
    """Those called different first and then the worst ones."""
    from clef.statistics.slices import slices

    found = slices(outcomes)
    columns: dict[str, list[dict[str, Any]]] = {}
    for one in sorted(found.slices, key=lambda one: (not one.different, one.rate.value is None, one.rate.value)):
        columns.setdefault(one.column, []).append(one.to_dict())
    tested = sum(one.p is not None for one in found.slices)
    return {"columns": columns, "skipped": dict(found.skipped), "tested": tested}
