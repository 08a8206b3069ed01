"""Turns a stored run into its numbers, on the probabilities that are asked for, each computed once and then kept.

    raw                   as the engine sent them
    its own map           recalibrated by cross-validation: each row by a map fitted without its state
    the map of a policy   as fitted on another run; rows whose states that run has as well are left out, and where it is
                          this very run, its own map takes the policy's place

So no row is ever shown by a map that knows its label, and `about` names what is shown. The page and the API take their
numbers from here alike.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from fastapi import Query

from clef.decisions.examples import Outcome
from clef.errors import InputError, NotFound, Problem
from clef.runs.narrowing import Labels
from clef.runs.policies import StoredPolicy
from clef.runs.store import LIVE, Store, StoredRun
from clef.statistics.methods import Recalibrate

if TYPE_CHECKING:
    from clef.statistics.columns import Bools, Columns
    from clef.statistics.policy import Policy

HELD = 2
"""Runs whose arrays are held in memory."""
MOST_HELD = 200_000
"""Outcomes up to which a run's arrays are held."""
OfOutcomes: TypeAlias = Callable[[Iterator[Outcome]], Any]


@dataclass(frozen=True, slots=True)
class ViewQuery:
    """The query parameters that say on which probabilities numbers are measured; raw where none is given."""

    recalibrate: Annotated[
        Recalibrate, Query(description="By a map fitted on this run, cross-validated: no row's map knows its label")
    ] = "none"
    policy: Annotated[str | None, Query(description="By the map inside a saved policy")] = None


@dataclass(frozen=True, slots=True)
class View:
    """A run on some probabilities, and the same rows raw."""

    columns: "Columns"
    raw: "Columns"
    about: dict[str, Any]


class Measured:
    """The numbers of the runs of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._held: OrderedDict[tuple[str, int, Labels], asyncio.Task[Columns]] = OrderedDict()
        self._making: dict[tuple[str, int, str], asyncio.Task[Any]] = {}

    async def columns(self, run: StoredRun, labels: Labels = "own") -> "Columns":
        """The arrays of a run; whoever asks while they are made waits for the same ones."""
        from clef.statistics.columns import as_columns

        key = (run.id, run.revision, labels)
        task = self._held.get(key)
        if task is None:
            task = self._held[key] = asyncio.create_task(self._over(run, labels, as_columns))
        self._held.move_to_end(key)
        try:
            return await asyncio.shield(task)
        finally:
            if run.done > MOST_HELD or (task.done() and (task.cancelled() or task.exception())):
                self._held.pop(key, None)
            while len(self._held) > HELD:
                self._held.popitem(last=False)

    async def kept(self, run: StoredRun, name: str, make: Callable[[], Awaitable[Any]]) -> Any:
        """The numbers of this name, as JSON: those that were kept while they are fresh, else made anew and kept."""
        key = (run.id, run.revision, name)
        task = self._making.get(key)
        if task is None:
            task = self._making[key] = asyncio.create_task(self._kept(run, name, make))
            task.add_done_callback(lambda _: self._making.pop(key, None))
        return await asyncio.shield(task)

    async def of_columns(self, run: StoredRun, labels: Labels, name: str, make: "Callable[[Columns], Any]") -> Any:
        """What `make` makes of a run's arrays, by a person's labels or by those of the table; kept under the name."""

        async def made() -> Any:
            return await asyncio.to_thread(make, await self.columns(run, labels))

        return await self.kept(run, f"{name} by {labels} labels", made)

    async def of_outcomes(self, run: StoredRun, labels: Labels, name: str, make: OfOutcomes) -> Any:
        """The same of its outcomes, for numbers that need what was asked."""
        return await self.kept(run, f"{name} by {labels} labels", lambda: self._over(run, labels, make))

    async def _kept(self, run: StoredRun, name: str, make: Callable[[], Awaitable[Any]]) -> Any:
        known = await self._store.measures.get(run.id, name)
        if known is not None:
            return known
        found = await make()
        if run.state not in LIVE:
            await self._store.measures.save(run.id, name, run.revision, found)
        return found

    async def _over(self, run: StoredRun, labels: Labels, make: OfOutcomes) -> Any:
        """What `make` makes of the outcomes; none is held for it."""
        if labels == "own":
            return await self._store.over(run.id, make)
        changed = await self._store.corrections.of_the_table(run.id)
        return await self._store.over(run.id, lambda outcomes: make(map(changed, count(), outcomes)))

    async def named(self, view: ViewQuery) -> tuple[str, StoredPolicy | None]:
        """What tells a view from all others, and its policy. Raises NotFound for a policy that is not there."""
        if view.policy is None:
            return view.recalibrate, None
        stored = await self._store.policies.get(view.policy)
        return f"{view.recalibrate} {stored.name} {stored.created.isoformat()}", stored

    async def view(self, run: StoredRun, recalibrate: Recalibrate, stored: StoredPolicy | None) -> View:
        """A run as it is asked for. Raises InputError where that cannot be, with the reason."""
        raw = await self.columns(run)
        if stored is None:
            return await self._own(raw, recalibrate)
        if recalibrate != "none":
            hint = "give recalibrate, or policy"
            raise InputError.of([Problem("a run is recalibrated in one way at a time", "recalibrate", hint=hint)])
        return await self._by_policy(run, raw, stored)

    async def _own(self, raw: "Columns", recalibrate: Recalibrate) -> View:
        from clef.statistics.recalibration import cross_validated

        if recalibrate == "none":
            return View(raw, raw, {"probabilities": "raw"})
        columns = await asyncio.to_thread(cross_validated, raw, recalibrate)
        return View(columns, raw, _about("cross-validation", recalibrate))

    async def _by_policy(self, run: StoredRun, raw: "Columns", stored: StoredPolicy) -> View:
        map = policy_of(stored).recalibration
        if map is None:
            hint = "its thresholds are on the engine's own probabilities: look at the run as it is"
            raise InputError.of([Problem(f'the policy "{stored.name}" holds no recalibration', "policy", hint=hint)])
        if stored.run == run.id:
            note = "the policy's map was fitted on this run, so each row is shown by a map fitted without it"
            view = await self._own(raw, map.method)
            return View(view.columns, raw, view.about | {"policy": stored.name, "note": note})
        about = _about("policy", map.method) | {"policy": stored.name}
        shared = await self._shared(run, stored)
        if shared is None:
            about["note"] = "the rows that the map was fitted on are not known here; rows of this run may be among them"
            return View(map.transform(raw), raw, about)
        left = raw.take(~shared)
        if not len(left.row):
            hint = f'recalibrate="{map.method}" shows it by a map that knows no row it is applied to'
            message = f'the map of "{stored.name}" was fitted on the rows of this run'
            raise InputError.of([Problem(message, "policy", hint=hint)])
        return View(map.transform(left), left, about | {"left_out": int(shared.sum())})

    async def _shared(self, run: StoredRun, stored: StoredPolicy) -> "Bools | None":
        """Which rows of a run have a state of the run that a policy comes from; None where that one is gone."""
        from clef.statistics.columns import known_states, labelled_states

        try:
            source = await self._store.get(stored.run or "")
        except NotFound:
            return None
        states = await self._store.over(source.id, labelled_states)
        return await self._store.over(run.id, lambda outcomes: known_states(outcomes, states))


def policy_of(stored: StoredPolicy) -> "Policy":
    """The policy that is kept."""
    from clef.statistics.policy import Policy

    return Policy.from_dict(stored.body)


def _about(by: str, method: str) -> dict[str, Any]:
    return {"probabilities": "recalibrated", "by": by, "method": method, "left_out": 0}
