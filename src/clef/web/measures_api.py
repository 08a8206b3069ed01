"""Turns a run's outcomes into its further numbers over HTTP: calibration, gates, classes, slices, suspects; and two
runs into a comparison. Every number is made from what the store keeps; no model is asked.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query, Request

from clef.decisions.answers import Answer
from clef.decisions.examples import Outcome
from clef.errors import InputError, Problem
from clef.statistics.calibration import calibration, calibrations
from clef.statistics.classes import confusions
from clef.statistics.compare import compare_all
from clef.statistics.gates import gates
from clef.statistics.guarantee import guaranteed_gates
from clef.statistics.ladder import Cost, ReviewBudget, TargetAccuracy
from clef.statistics.ordinal import ordinal
from clef.statistics.policy import Policy, decide
from clef.statistics.recalibration import recalibrations
from clef.statistics.risk import risk_coverage
from clef.statistics.slices import slices
from clef.statistics.suspects import suspects
from clef.web.api import read_json
from clef.web.bodies import read_body
from clef.web.errors import Json
from clef.web.schemas import ErrorResponse

router = APIRouter(prefix="/api", responses={404: {"model": ErrorResponse, "description": "No such run"}})

PARTS: dict[str, Callable[[Sequence[Outcome]], Any]] = {
    "calibration": lambda outcomes: {
        "all": calibration(outcomes).to_dict(),
        "questions": [one.to_dict() for one in calibrations(outcomes)],
    },
    "recalibration": lambda outcomes: [one.to_dict() for one in recalibrations(outcomes)],
    "risk": lambda outcomes: risk_coverage(outcomes).to_dict(),
    "classes": lambda outcomes: [one.to_dict() for one in confusions(outcomes)],
    "scores": lambda outcomes: [one.to_dict() for one in ordinal(outcomes)],
    "slices": lambda outcomes: slices(outcomes).to_dict(),
    "suspects": lambda outcomes: suspects(outcomes).to_dict(),
}
Part = Literal["calibration", "recalibration", "risk", "classes", "scores", "slices", "suspects"]


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

    def measure(self, outcomes: Sequence[Outcome]) -> Any:
        """The gates of these outcomes. Raises InputError unless exactly one way is named."""
        cost = self.wrong is not None or self.check is not None
        ways = (self.accuracy is not None, self.review is not None, cost, self.risk is not None)
        if sum(ways) != 1 or (cost and None in (self.wrong, self.check)):
            hint = "give accuracy, or review, or wrong and check, or risk"
            raise InputError.of([Problem("one gate is measured at a time", "gate_rule", hint=hint)])
        if self.risk is not None:
            return guaranteed_gates(outcomes, self.risk, self.confidence)
        if self.accuracy is not None:
            return gates(outcomes, TargetAccuracy(self.accuracy))
        if self.review is not None:
            return gates(outcomes, ReviewBudget(self.review))
        return gates(outcomes, Cost(self.wrong or 0.0, self.check or 0.0))


@router.get("/runs/{run_id}/measures/{part}")
async def measures(request: Request, run_id: str, part: Part) -> Json:
    """One family of a run's further numbers."""
    outcomes = await _outcomes(request, run_id)
    return Json(await asyncio.to_thread(PARTS[part], outcomes))


@router.get("/runs/{run_id}/gates")
async def run_gates(request: Request, run_id: str, query: Annotated[GateQuery, Depends()]) -> Json:
    """From which top probability on a person may stop checking, honestly estimated; with the policy to apply."""
    outcomes = await _outcomes(request, run_id)
    found = await asyncio.to_thread(query.measure, outcomes)
    model = next((outcome.model for outcome in outcomes if outcome.model), "")
    return Json(found.to_dict() | {"policy": Policy.of(found, model=model).to_dict()})


@router.get("/compare")
async def compare_runs(
    request: Request, run: Annotated[list[str], Query(description="Ids of the runs, two or more")]
) -> Json:
    """Runs against each other on the rows that they share; p values adjusted after Holm where there are several."""
    store = request.app.state.store
    named = {run_id: (await store.get(run_id)).name for run_id in dict.fromkeys(run)}
    twice = {name for name, count in Counter(named.values()).items() if count > 1}
    names = {run_id: f"{name} ({run_id})" if name in twice else name for run_id, name in named.items()}
    runs = {names[run_id]: await _outcomes(request, run_id) for run_id in named}
    found = await asyncio.to_thread(compare_all, runs)
    return Json({"comparisons": [one.to_dict() for one in found]})


@router.post("/gate")
async def apply_gate(request: Request) -> Json:
    """act or review for new answers: `{"policy": …, "results": [...]}`, the results as POST /api/predict gives them."""
    body = read_json(await read_body(request, request.app.state.settings.max_body))
    if not isinstance(body, dict) or not isinstance(body.get("results"), list):
        raise InputError.of([Problem('expected {"policy": …, "results": […]}', "not_an_object")])
    policy = Policy.from_dict(body.get("policy") or {})
    problems: list[Problem] = []
    answers = [_answer(raw, f"results[{position}]", problems) for position, raw in enumerate(body["results"])]
    if problems:
        raise InputError.of(problems, "the results")
    return Json({"decisions": [decide(policy, *answer) for answer in answers if answer is not None]})


async def _outcomes(request: Request, run_id: str) -> list[Outcome]:
    store = request.app.state.store
    await store.get(run_id)
    outcomes: list[Outcome] = await store.outcomes(run_id)
    return outcomes


def _answer(raw: Any, where: str, problems: list[Problem]) -> tuple[str, Answer] | None:
    """The question's name and the answer in one result, or None with what is wrong added to `problems`."""
    try:
        listed = {item["answer"]: float(item["probability"]) for item in raw["answers"]}
        names = tuple(raw.get("levels") or raw.get("options") or (("yes", "no") if raw["type"] == "noul" else listed))
        return raw["question"], Answer(raw["type"], names, tuple(listed[name] for name in names))
    except (AttributeError, KeyError, TypeError, ValueError):
        hint = "send what POST /api/predict answered, unchanged"
        problems.append(Problem("is no result of POST /api/predict", "no_result", column=where, hint=hint))
        return None
