"""Turns a run's outcomes into its further numbers over HTTP: calibration, gates, classes, slices, suspects; and two
runs into a comparison. Every number is made from what the store keeps, once; no model is asked.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import Response

from clef.decisions.examples import Outcome
from clef.errors import InputError, Problem
from clef.runs.store import Store, StoredRun
from clef.statistics.methods import Method, Recalibrate
from clef.web.bodies import read_json_body
from clef.web.errors import Json
from clef.web.measured import Measured, View, ViewQuery, policy_of
from clef.web.schemas import NOT_FOUND, GateIn, json_body

if TYPE_CHECKING:
    from clef.statistics.policy import Policy
    from clef.statistics.wanted import Wanted

router = APIRouter(prefix="/api", responses=NOT_FOUND)

Part = Literal["bands", "calibration", "recalibration", "change", "risk", "classes", "scores", "slices", "suspects"]
RAW_PARTS = ("bands", "recalibration", "slices", "suspects")
"""Those that are about the engine's own probabilities, whatever else is looked at."""


@dataclass(frozen=True, slots=True)
class GateQuery:
    """The query parameters that say which gate is wanted; exactly one way."""

    accuracy: Annotated[float | None, Query(description="Target accuracy of what is not checked")] = None
    review: Annotated[float | None, Query(description="Share of the rows that may be checked")] = None
    wrong: Annotated[float | None, Query(description="Cost of a wrong answer, with `check`")] = None
    check: Annotated[float | None, Query(description="Cost of checking one row, with `wrong`")] = None
    risk: Annotated[
        float | None, Query(description="Guaranteed: at most this share of what is not checked is wrong")
    ] = None
    confidence: Annotated[float, Query(description="How sure the guarantee is")] = 0.95
    recalibrate: Annotated[
        Recalibrate, Query(description="Thresholds on the probabilities of a map fitted on this run")
    ] = "none"
    pooled: Annotated[
        bool, Query(description="One gate for all questions of a type, where each row asks its own question")
    ] = False

    @property
    def wanted(self) -> "Wanted":
        """The same for the statistics."""
        from clef.statistics.wanted import Wanted

        return Wanted(**asdict(self))


@router.get("/runs/{run_id}/measures/{part}")
async def measures(request: Request, run_id: str, part: Part, query: Annotated[ViewQuery, Depends()]) -> Json:
    """One family of a run's further numbers: `measured`, and in `about` on which probabilities. `bands` are those of
    the confidence; those of the top probability stand in the run's summary.
    """
    run, measured = await _run(request, run_id)
    name, stored = await measured.named(query)
    is_raw = stored is None and query.recalibrate == "none"
    if part == "change" if is_raw else part in RAW_PARTS:
        hint = "give recalibrate or policy" if is_raw else "leave recalibrate and policy out"
        raise InputError.of([Problem(f'"{part}" cannot be measured on these probabilities', "part", hint=hint)])

    async def make() -> Any:
        if part in ("slices", "suspects"):
            found = await request.app.state.store.over(run_id, partial(_of_outcomes, part))
            return {"about": {"probabilities": "raw"}, "measured": found}
        view = await measured.view(run, query.recalibrate, stored)
        return {"about": view.about, "measured": await asyncio.to_thread(_of_view, part, view)}

    return Json(await measured.kept(run, f"{part} {name}", make))


@router.get("/runs/{run_id}/gates")
async def run_gates(request: Request, run_id: str, query: Annotated[GateQuery, Depends()]) -> Json:
    """From which top probability on a person may stop checking, honestly estimated; with the policy to apply."""
    run, measured = await _run(request, run_id)

    async def make() -> Any:
        columns = await measured.columns(run)
        return (await asyncio.to_thread(query.wanted.measure, columns, model=run.engine.model or "")).to_dict()

    return Json(await measured.kept(run, f"gates {query}", make))


@router.get("/runs/{run_id}/recalibration")
async def recalibration(request: Request, run_id: str, method: Method = "temperature") -> Response:
    """The map fitted on all labelled rows of a run, as a file: POST /api/policies keeps it for later runs."""
    from clef.statistics.recalibration import recalibrate

    run, measured = await _run(request, run_id)
    found = await asyncio.to_thread(recalibrate, await measured.columns(run), method)
    if found.map is None:
        raise InputError(f"no {method} map can be fitted on this run", hint=found.reason)
    return Json(
        found.map.to_dict(), headers={"Content-Disposition": f"attachment; filename={run_id}-recalibration.json"}
    )


@router.get("/compare")
async def compare_runs(
    request: Request,
    run: Annotated[list[str], Query(description="Ids of the runs, two or more")],
    policy: Annotated[str | None, Query(description="A saved policy, at whose gates coverage is compared")] = None,
) -> Json:
    """Runs against each other on the rows that they share; p values adjusted after Holm where there are several."""
    from clef.statistics.compare import compare_all
    from clef.statistics.halves import half_at

    store: Store = request.app.state.store
    named = {run_id: (await store.get(run_id)).name for run_id in dict.fromkeys(run)}
    twice = {name for name, count in Counter(named.values()).items() if count > 1}
    names = {run_id: f"{name} ({run_id})" if name in twice else name for run_id, name in named.items()}
    at = policy_of(await store.policies.get(policy)) if policy is not None else None
    runs = {names[run_id]: await store.over(run_id, half_at(at)) for run_id in named}
    found = await asyncio.to_thread(compare_all, runs)
    return Json({"comparisons": [one.to_dict() for one in found]})


@router.post("/gate", openapi_extra=json_body(GateIn))
async def apply_gate(request: Request) -> Json:
    """act or review for new answers: `{"policy": …, "results": [...]}`, the results as POST /api/predict gives them.

    The policy is a whole one, or the name of a saved one.
    """
    from clef.reports.answers import predicted
    from clef.statistics.policy import ruling

    body = await read_json_body(request, request.app.state.settings.max_body)
    if not isinstance(body, dict) or not isinstance(body.get("results"), list):
        raise InputError.of([Problem('expected {"policy": …, "results": […]}', "not_an_object")])
    policy = await _policy(request, body.get("policy"))
    problems: list[Problem] = []
    found = []
    for position, raw in enumerate(body["results"]):
        try:
            found.append(ruling(policy, *predicted(raw)))
        except InputError as error:
            problems.append(Problem(error.message, "no_result", column=f"results[{position}]", hint=error.hint))
    if problems:
        raise InputError.of(problems, "the results")
    return Json({"decisions": [one.decision for one in found], "rulings": [one.to_dict() for one in found]})


def _of_view(part: Part, view: View) -> Any:
    """A family of numbers that is measured on arrays."""
    from clef.statistics.calibration import calibration, calibrations
    from clef.statistics.classes import confusions
    from clef.statistics.ordinal import ordinal
    from clef.statistics.recalibration import change_of, recalibrate, recalibrations
    from clef.statistics.risk import risk_coverage
    from clef.statistics.summary import summarise

    columns = view.columns
    if part == "calibration":
        each = [one.to_dict() for one in calibrations(columns)]
        return {"all": calibration(columns).to_dict(), "questions": each}
    if part == "bands":  # those of the top probability are in the summary
        return summarise(columns, bands_on="confidence").to_dict()["bands"]
    if part == "change":
        own = recalibrate(view.raw, view.about["method"]).change if view.about["by"] == "cross-validation" else None
        return (own or change_of(view.raw.judged, columns.judged)).to_dict()
    if part == "risk":
        return risk_coverage(columns).to_dict()
    families: dict[str, Callable[[Any], Any]] = {
        "recalibration": recalibrations,
        "classes": confusions,
        "scores": ordinal,
    }
    return [one.to_dict() for one in families[part](columns)]


def _of_outcomes(part: Part, outcomes: Iterator[Outcome]) -> Any:
    """A family of numbers that needs what was asked."""
    from clef.statistics.slices import slices
    from clef.statistics.suspects import suspects

    return slices(outcomes).to_dict() if part == "slices" else suspects(outcomes).to_dict()


async def _run(request: Request, run_id: str) -> tuple[StoredRun, Measured]:
    return await request.app.state.store.get(run_id), request.app.state.measured


async def _policy(request: Request, given: Any) -> "Policy":
    """The policy that a body holds or names."""
    from clef.statistics.policy import Policy

    if isinstance(given, str):
        return policy_of(await request.app.state.store.policies.get(given))
    return Policy.from_dict(given or {})
