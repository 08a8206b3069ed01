"""Turns parts into receipts with workers all over a cluster, whatever happens to some of them.

    worker ends (its machine was lost)       its parts go to others; a new worker is placed where there is room
    engine fails (Trouble of kind engine)    its parts go to others first; the worker gets one new engine, then none
    folder fails (Trouble of kind task)      the work ends: every other worker would fail there too
    part fails TRIES times                   the work ends, with what was said last

The work also ends where no worker is left. What is written stays, and the next call goes on from there. Parts come
from Ray Data and workers are plain actors, since its own pool of actors tries a part again with the same actor only.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from clef.errors import StoreError, Unavailable
from clef.scale.asking import Asker, Ready, Trouble
from clef.scale.cluster import Cluster
from clef.scale.feed import Feed
from clef.scale.parts import Part, Receipt
from clef.scale.seats import Machine, machines_of, next_seat
from clef.scale.task import Task

AHEAD = 2
"""Parts a worker has: one under way, and the next one, so that it never waits."""
TRIES = 5
"""How often a part is handed out at most."""
ENGINES = 2
"""Engines a worker may fail with in a row before it is not replaced."""
TICK_S = 0.2
STAFF_S = 1.0
"""Time between two looks at the machines of the cluster."""
CLOSE_S = 15.0
"""How long the engines may take to stop."""

Admit = Callable[[Ready], str | None]
"""Says of an engine that came up why it may not answer; None where it may."""


@dataclass
class _Job:
    part: Part
    tries: int = 0
    failed_at: set[int] = field(default_factory=set)
    """Places whose engine failed with it."""


@dataclass
class _Place:
    """One of the workers that are wanted, whoever fills it."""

    number: int
    upstream: str | None
    actor: Any = None
    machine: str = ""
    is_open: bool = False
    held: dict[Any, _Job] = field(default_factory=dict)
    opening: Any = None
    failures: int = 0
    is_closed: bool = False


class Crew:
    """The workers of one task."""

    def __init__(self, ray: Any, task: Task, cluster: Cluster, admit: Admit) -> None:
        """Raises Unavailable where no machine has what a worker takes."""
        self._ray, self._task, self._cluster, self._admit = ray, task, cluster, admit
        machines = machines_of(ray.nodes())
        seats = sum(one.seats(cluster.gpus) for one in machines)
        if not seats:
            what = f"{cluster.gpus:g} GPU" if cluster.gpus else "a processor to work with"
            raise Unavailable(f"no machine of the cluster has {what}", hint="`ray status` shows what there is")
        upstreams = cluster.upstreams
        count = cluster.workers or len(upstreams) or seats
        self._places = [_Place(n, upstreams[n % len(upstreams)] if upstreams else None) for n in range(count)]
        self._backlog: deque[_Job] = deque()
        self._troubles: list[Trouble] = []
        self._losses = 0
        self._staffed_at = 0.0

    def receipts(self, parts: Iterator[Part]) -> Iterator[Receipt]:
        """A receipt for each part, as they are done. Raises Unavailable or StoreError where the work cannot go on."""
        with Feed(parts, AHEAD * len(self._places)) as feed:
            try:
                while self._hand_out(feed):
                    refs = [ref for place in self._places for ref in (*place.held, place.opening) if ref is not None]
                    if not refs:
                        feed.wait(TICK_S)
                        continue
                    for ref in self._ray.wait(refs, num_returns=1, timeout=TICK_S)[0]:
                        yield from self._take(ref)
                self._close()
            finally:
                for place in self._places:
                    self._dismiss(place)

    def _hand_out(self, feed: Feed) -> bool:
        """Give parts to workers that have room; whether there is still something to wait for."""
        while len(self._backlog) < len(self._places) and (part := feed.take()) is not None:
            self._backlog.append(_Job(part))
        if self._backlog:
            self._staff()
        for place in self._places:
            while place.is_open and len(place.held) < AHEAD and (job := self._job_for(place)) is not None:
                job.tries += 1
                place.held[place.actor.ask.remote(job.part)] = job
        return bool(self._backlog) or any(place.held for place in self._places) or not feed.is_over

    def _job_for(self, place: _Place) -> _Job | None:
        """The first job that this place did not fail with, unless every other place did as well."""
        left = {one.number for one in self._places if not one.is_closed}
        for job in self._backlog:
            if place.number not in job.failed_at or job.failed_at >= left:
                self._backlog.remove(job)
                return job
        return None

    def _staff(self) -> None:
        """Fill the places that are empty, as far as the machines have room."""
        empty = [place for place in self._places if place.actor is None and not place.is_closed]
        if not empty or time.monotonic() - self._staffed_at < STAFF_S:
            return
        self._staffed_at = time.monotonic()
        machines = machines_of(self._ray.nodes())
        for place in empty:
            taken = [one.machine for one in self._places if one.actor is not None]
            seat = next_seat(machines, taken, self._cluster.gpus)
            if seat is not None:
                self._engage(place, seat)

    def _engage(self, place: _Place, seat: Machine) -> None:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        where = NodeAffinitySchedulingStrategy(seat.id, soft=True)
        options = {"num_cpus": 0, "num_gpus": self._cluster.gpus, "max_restarts": 0, "max_concurrency": 1}
        actor = self._ray.remote(Asker).options(scheduling_strategy=where, **options)
        place.actor, place.machine = actor.remote(self._task, place.upstream), seat.id
        place.opening = place.actor.open.remote()

    def _take(self, ref: Any) -> Iterator[Receipt]:
        """Take what a call came to."""
        place = next((one for one in self._places if ref in one.held or ref is one.opening), None)
        if place is None:
            return
        try:
            result = self._ray.get(ref)
        except self._ray.exceptions.RayActorError as error:
            self._lost(place, error)
            return
        if ref is place.opening:
            place.opening = None
            refusal = self._admit(result) if isinstance(result, Ready) else None
            place.is_open = isinstance(result, Ready) and not refusal
            if refusal:
                place.failures = ENGINES  # the same model would come up again
                result = Trouble("engine", refusal, None, result.host)
        if isinstance(result, Trouble):
            self._failed(place, place.held.get(ref), result)
        elif isinstance(result, Receipt):
            del place.held[ref]
            place.failures = self._losses = 0
            yield result

    def _failed(self, place: _Place, job: _Job | None, trouble: Trouble) -> None:
        if trouble.kind == "task":
            raise StoreError(f"{trouble.host}: {trouble.message}", hint=trouble.hint)
        self._troubles.append(trouble)
        place.failures += 1
        place.is_closed = place.failures >= ENGINES
        if job is not None:
            job.failed_at.add(place.number)
        self._give_back(place, f"{trouble.host}: {trouble.message}")
        if all(one.is_closed for one in self._places):
            said = dict.fromkeys(f"{one.host}: {one.message}" for one in self._troubles[-len(self._places) :])
            raise Unavailable("no engine is left: " + "; ".join(said), hint=trouble.hint)

    def _lost(self, place: _Place, error: Exception) -> None:
        self._losses += 1
        lines = str(error).splitlines()
        self._give_back(place, lines[0])
        if self._losses > TRIES * len(self._places):
            raise Unavailable(f"workers end before they answer anything: {lines[-1]}", hint="see the logs of Ray")

    def _give_back(self, place: _Place, reason: str) -> None:
        """Put what a worker held back in line, first, and let it go."""
        jobs = list(place.held.values())
        self._dismiss(place)
        for job in reversed(jobs):
            if job.tries >= TRIES:
                raise Unavailable(f"{job.part.name} was tried {TRIES} times, the last time: {reason}")
            self._backlog.appendleft(job)

    def _dismiss(self, place: _Place) -> None:
        if place.actor is not None:
            self._ray.kill(place.actor)
        place.actor, place.opening, place.is_open, place.machine = None, None, False, ""
        place.held = {}

    def _close(self) -> None:
        """Stop the engines in good order."""
        closing = [place.actor.close.remote() for place in self._places if place.is_open]
        if closing:
            self._ray.wait(closing, num_returns=len(closing), timeout=CLOSE_S)
