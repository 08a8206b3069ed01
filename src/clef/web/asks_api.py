"""Turns HTTP requests into the asks that the Ask page kept: listed, read, deleted, or kept no more."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request

from clef.runs.asks import Asks
from clef.web.errors import Json
from clef.web.schemas import ErrorResponse

MOST = 500
"""Asks that one answer may list."""
NOT_FOUND: dict[int | str, dict[str, Any]] = {404: {"model": ErrorResponse, "description": "No such ask is kept"}}

router = APIRouter(prefix="/api/asks")


@router.get("")
async def asks(
    request: Request,
    search: Annotated[str, Query(max_length=200, description="Part of a state, a question or an answer")] = "",
    limit: Annotated[int, Query(ge=1, le=MOST)] = 100,
    offset: Annotated[int, Query(ge=0, le=2**31)] = 0,
) -> Json:
    """What was asked on the Ask page, newest first, and whether asks are kept."""
    kept = asks_of(request)
    found = await kept.list(search=search, limit=limit, offset=offset)
    lines = [line.to_dict() for line in found]
    return Json(
        {"asks": lines, "limit": limit, "offset": offset, "kept": await kept.count(), "keep": await kept.keeps()}
    )


@router.patch("")
async def keep_asks(
    request: Request, keep: Annotated[bool, Query(description="Whether the Ask page keeps what is asked")]
) -> Json:
    """Keep what is asked from now on, or nothing; what is kept already stays until it is deleted."""
    await asks_of(request).set_keeps(keep)
    return Json({"keep": keep})


@router.delete("")
async def delete_asks(request: Request) -> Json:
    """Forget everything that was asked."""
    return Json({"deleted": await asks_of(request).delete_all()})


@router.get("/{ask_id}", responses=NOT_FOUND)
async def ask(request: Request, ask_id: str) -> Json:
    """One ask whole: what stood in the form, and what came back."""
    return Json((await asks_of(request).get(ask_id)).to_dict())


@router.delete("/{ask_id}", responses=NOT_FOUND)
async def delete_ask(request: Request, ask_id: str) -> Json:
    """Forget one ask."""
    await asks_of(request).delete(ask_id)
    return Json({"deleted": ask_id})


def asks_of(request: Request) -> Asks:
    """The kept asks of the app."""
    found: Asks = request.app.state.store.asks
    return found
