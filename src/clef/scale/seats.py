"""Turns the machines of a cluster, and who works there, into where the next worker goes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine of the cluster that is alive."""

    id: str
    name: str
    cpus: float
    gpus: float

    def seats(self, gpus: float) -> int:
        """Engines it has room for; with no GPU asked for one, or none on a machine that takes no work."""
        return int(self.gpus / gpus + 1e-9) if gpus else int(self.cpus > 0)


def machines_of(nodes: Iterable[dict[str, Any]]) -> list[Machine]:
    """The machines that are alive, of what `ray.nodes()` says."""
    return [
        Machine(
            node["NodeID"],
            node["NodeManagerHostname"],
            node["Resources"].get("CPU", 0),
            node["Resources"].get("GPU", 0),
        )
        for node in nodes
        if node["Alive"]
    ]


def next_seat(machines: Sequence[Machine], taken: Sequence[str], gpus: float) -> Machine | None:
    """The machine for one more worker: the emptiest that can take one; None where all GPUs are taken.

    `taken` has the machine of each worker there is. Without GPUs a machine takes as many as it has to.
    """
    fitting = [one for one in machines if one.seats(gpus) and (not gpus or taken.count(one.id) < one.seats(gpus))]
    return min(fitting, key=lambda one: taken.count(one.id) / one.seats(gpus), default=None)
