"""Turns requests of a browser into the list of runs: searched, sorted, chosen to be compared, put away for a day."""

from dataclasses import dataclass, replace
from typing import Any, get_args
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse
from starlette.datastructures import QueryParams
from starlette.responses import Response

from clef.runs.listing import RunFilter, RunShow, RunSort
from clef.runs.store import LIVE, Store, StoredRun
from clef.web.render import page
from clef.web.run_filter import PAGE_ROWS
from clef.web.run_view import Share, Summaries

SHOW_WORDS: dict[RunShow, str] = {"all": "all", "live": "under way", "finished": "finished", "cut": "ended early"}


@dataclass(frozen=True, slots=True)
class ListAddress:
    """What an address of the list says; what makes no sense is as if it were not said."""

    found: RunFilter
    at: int = 1

    @classmethod
    def read(cls, query: QueryParams) -> "ListAddress":
        """The list of these parameters."""
        show: RunShow = next((known for known in get_args(RunShow) if known == query.get("show")), "all")
        sort: RunSort = next((known for known in get_args(RunSort) if known == query.get("sort")), "started")
        number = query.get("page", "1")
        at = max(1, int(number)) if number.isdecimal() and len(number) < 8 else 1
        descending = query.get("order", first_order(sort)) != "asc"
        search = query.get("search", "").strip()[:200]
        return cls(RunFilter(search, show, sort, descending, PAGE_ROWS + 1, (at - 1) * PAGE_ROWS), at)

    def to(self, **changes: Any) -> str:
        """The address of the list with other fields of its filter, from the first page unless `page` says another."""
        number = changes.pop("page", 1)
        other = replace(self.found, **changes)
        said = {"search": other.search, "show": other.show if other.show != "all" else ""}
        if (other.sort, other.descending) != ("started", True):
            said |= {"sort": other.sort, "order": "desc" if other.descending else "asc"}
        said["page"] = str(number) if number > 1 else ""
        query = urlencode({name: value for name, value in said.items() if value})
        return f"/runs?{query}" if query else "/runs"

    def sorted_by(self, sort: RunSort) -> str:
        """The address with this order, or with the other way round where it is that already."""
        is_same = sort == self.found.sort
        return self.to(sort=sort, descending=not self.found.descending if is_same else first_order(sort) == "desc")


def first_order(sort: str) -> str:
    """The way round that is wanted first: names from a, all else from the top."""
    return "asc" if sort == "name" else "desc"


def list_pages() -> APIRouter:
    """The list of runs, as a router; handlers reach the store through `app.state`."""
    router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)
    summaries = Summaries()

    @router.get("/runs")
    async def runs(request: Request) -> Response:
        """The runs that are kept; those that were put away within a day can be brought back."""
        store: Store = request.app.state.store
        address = ListAddress.read(request.query_params)
        found = await store.listed(address.found)
        listed = await _headlines(store, summaries, found[:PAGE_ROWS])
        deleted = await store.deleted()
        now = request.query_params.get("deleted")
        context: dict[str, Any] = {
            "chosen": address,
            "more": len(found) > PAGE_ROWS,
            "runs": listed,
            "counts": await store.run_counts(address.found.search),
            "shows": SHOW_WORDS,
            "deleted": next((run for run in deleted if run.id == now), None),
            "put_away": [run for run in deleted if run.id != now],
            "waits": any(run.state in LIVE or (run.done and share is None) for run, share in listed),
        }
        response = await page(request, "runs.html", **context)
        response.headers["cache-control"] = "no-store"  # a browser that goes back would show the runs as they were
        return response

    return router


async def _headlines(
    store: Store, summaries: Summaries, found: list[StoredRun]
) -> list[tuple[StoredRun, Share | None]]:
    """Each run with its share; numbers that are not there yet are counted for the next look."""
    kept = await store.measures.headlines([run.id for run in found])
    shares = []
    for run in found:
        known = kept.get(run.id)
        is_fresh = known is not None and known["rows"] == run.done
        if run.done and not is_fresh and run.state not in LIVE:
            summaries.count(store, run)
        shares.append((run, Share.of(known) if known and is_fresh else None))
    return shares
