"""Turns HTTP requests into policies that are kept by name: measured on a run, or taken from a file."""

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from clef.errors import InputError, Problem
from clef.runs.store import Store
from clef.web.bodies import read_json_body
from clef.web.errors import Json
from clef.web.measured import policy_of
from clef.web.schemas import NOT_FOUND, ErrorResponse, PolicyIn, json_body

if TYPE_CHECKING:
    from clef.statistics.wanted import Wanted

NUMBERS = ("accuracy", "review", "wrong", "check", "risk", "confidence")
"""Fields of a new policy that are numbers; `clef.statistics.wanted` says what they mean."""
HINT = 'send {"name": …, "run": …, "accuracy": 0.95}, or {"name": …, "policy": …}, or a policy file with ?name='

router = APIRouter(prefix="/api/policies", responses=NOT_FOUND)


@router.get("")
async def policies(request: Request) -> Json:
    """Every policy that is kept, by name."""
    store: Store = request.app.state.store
    return Json({"policies": [one.to_dict() for one in await store.policies.listed()]})


@router.post(
    "",
    status_code=201,
    responses={409: {"model": ErrorResponse, "description": "The name is in use"}},
    openapi_extra=json_body(PolicyIn),
)
async def create(
    request: Request, name: Annotated[str, Query(description="For a body that is a policy or map file itself")] = ""
) -> Json:
    """Keep a policy. From a run: `{"name", "run", "accuracy" | "review" | "wrong" and "check" | "risk", "recalibrate",
    "pooled"}`. From a file: `{"name", "policy"}`, or the file itself with `?name=`; the file of a recalibration becomes
    a policy without gates, whose map later runs can be viewed by. `"replace": true` overwrites one of this name.
    """
    body = await read_json_body(request, request.app.state.settings.max_body)
    if not isinstance(body, dict):
        raise InputError.of([Problem("expected an object", "not_an_object", hint=HINT)])
    if "version" in body:
        body = {"name": name, "policy": body}
    wanted = _checked(body)
    store: Store = request.app.state.store
    if wanted is None:
        made, run_id = _from_file(body["policy"]), None
    else:
        run = await store.get(body["run"])
        columns = await request.app.state.measured.columns(run)
        found = await asyncio.to_thread(wanted.measure, columns, model=run.engine.model or "")
        made, run_id = found.policy.to_dict(), run.id
    stored = await store.policies.save(body["name"], made, run=run_id, replace=body.get("replace", False))
    return Json(stored.to_dict(), status_code=201)


@router.get("/{name}")
async def policy(request: Request, name: str) -> Json:
    """A policy with where it comes from."""
    return Json((await request.app.state.store.policies.get(name)).to_dict())


@router.get("/{name}/file")
async def policy_file(request: Request, name: str) -> Response:
    """A policy alone, as the file that `clef gate apply` and POST /api/policies take."""
    stored = await request.app.state.store.policies.get(name)
    return Json(dict(stored.body), headers=_as_file(f"{name}.policy.json"))


@router.get("/{name}/recalibration")
async def recalibration_file(request: Request, name: str) -> Response:
    """The map inside a policy, as a file of its own."""
    map = policy_of(await request.app.state.store.policies.get(name)).recalibration
    if map is None:
        hint = "its thresholds are on the engine's own probabilities"
        raise InputError.of([Problem(f'the policy "{name}" holds no recalibration', "policy", hint=hint)])
    return Json(map.to_dict(), headers=_as_file(f"{name}.recalibration.json"))


@router.delete("/{name}")
async def delete(request: Request, name: str) -> Json:
    """Forget a policy."""
    await request.app.state.store.policies.delete(name)
    return Json({"deleted": name})


def _checked(body: Mapping[str, Any]) -> "Wanted | None":
    """What a run is to be measured for, or None for a body that brings its policy. Raises InputError with every
    problem of the body's form.
    """
    from clef.statistics.wanted import Wanted

    problems = [] if isinstance(body.get("name"), str) else [_problem("name", "expected the name as text")]
    if ("run" in body) == ("policy" in body):
        problems.append(Problem("a policy comes from a run or from a file", "policy_source", hint=HINT))
    elif not isinstance(body.get("run", ""), str):
        problems.append(_problem("run", "expected the id of a run"))
    known = {*NUMBERS, "name", "run", "policy", "replace", "pooled", "recalibrate"}
    problems += [_problem(field, "is no field of a policy") for field in body if field not in known]
    problems += [
        _problem(field, "expected a number")
        for field in NUMBERS
        if type(body.get(field)) not in (int, float, type(None))
    ]
    problems += [
        _problem(field, "expected true or false")
        for field in ("replace", "pooled")
        if not isinstance(body.get(field, False), bool)
    ]
    if not isinstance(body.get("recalibrate", ""), str):
        problems.append(_problem("recalibrate", "expected the name of a method"))
    if problems:
        raise InputError.of(problems, "the policy")
    if "policy" in body:
        return None
    said = {field: body[field] for field in (*NUMBERS, "recalibrate", "pooled") if body.get(field) is not None}
    return Wanted(**said)


def _from_file(raw: Any) -> dict[str, Any]:
    """The policy in a file, checked; of a recalibration alone, a policy that has no gates."""
    from clef.statistics.policy import Policy
    from clef.statistics.recalibration import Recalibrator

    if isinstance(raw, Mapping) and "method" in raw and "questions" not in raw:
        return Policy({"rule": "recalibration only"}, {}, Recalibrator.from_dict(raw)).to_dict()
    return Policy.from_dict(raw).to_dict()


def _problem(field: str, message: str) -> Problem:
    return Problem(message, "policy", column=field, hint=HINT)


def _as_file(name: str) -> dict[str, str]:
    return {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(name)}"}
