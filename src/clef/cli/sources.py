"""Turns what a command names, a run or a file of results, into outcomes that pass by as often as they are asked for.

No command holds the outcomes of a run: a million of them are 2 GB, and the numbers made of them 100 MB.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from clef.decisions.examples import Outcome

if TYPE_CHECKING:
    from clef.cli.service import Service
    from clef.runs.store import Store, StoredRun

T = TypeVar("T")


class Source(Protocol):
    """Outcomes in the table's order."""

    async def over(self, work: Callable[[Iterator[Outcome]], T]) -> T:
        """What `work` makes of the outcomes; they come one by one."""
        ...

    async def extra_names(self) -> list[str]:
        """The table's own columns that play no role, in the order in which they first come."""
        ...

    async def at(self, places: Sequence[int]) -> list[Outcome]:
        """Some outcomes by their places among all."""
        ...


@dataclass(frozen=True, slots=True)
class Kept:
    """The outcomes of a run in a store."""

    store: "Store"
    run: "StoredRun"

    async def over(self, work: Callable[[Iterator[Outcome]], T]) -> T:
        """As the page reads them."""
        return await self.store.over(self.run.id, work)

    async def extra_names(self) -> list[str]:
        """As the store knows them."""
        return await self.store.extra_names(self.run.id)

    async def at(self, places: Sequence[int]) -> list[Outcome]:
        """Read one by one: they are few."""
        positions = await self.store.positions(self.run)
        return [(await self.store.row(self.run.id, positions[place])).outcome for place in places]


@dataclass(frozen=True, slots=True)
class Passing:
    """Outcomes that are nowhere in a store: `again` begins with the first one."""

    again: Callable[[], Iterator[Outcome]]

    async def over(self, work: Callable[[Iterator[Outcome]], T]) -> T:
        """In a thread."""
        return await asyncio.to_thread(lambda: work(self.again()))

    async def extra_names(self) -> list[str]:
        """Found by passing over all."""
        from clef.reports.export import extra_names

        return await self.over(extra_names)

    async def at(self, places: Sequence[int]) -> list[Outcome]:
        """Found by passing over all."""
        wanted = set(places)
        found = await self.over(
            lambda outcomes: {place: outcome for place, outcome in enumerate(outcomes) if place in wanted}
        )
        return [found[place] for place in places]


async def source(at: "Service", which: str) -> Source:
    """The outcomes of a run by its id, or of a file of results. Raises NotFound, or InputError for another file."""
    if await asyncio.to_thread(Path(which).is_file):
        from clef.reports.results import read_results

        return Passing(lambda: read_results(Path(which)))
    store = await at.kept(which)
    return Kept(store, await store.get(which))
