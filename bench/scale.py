"""Rows a second of two workers against one, on a Ray cluster of two nodes on this machine: `python -m bench scale`.

Each worker has a server of its own that takes 40 ms an answer, so that the engine is what is waited for and not the
processor, which the nodes share. Time runs from the first part that is done to the last.
"""

import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from bench.runs import CONCURRENCY, PAUSE_S, table
from bench.servers import free_port, running, wait_for
from clef.scale.cluster import Cluster
from clef.scale.on_ray import evaluate_on_ray
from clef.scale.task import Task
from clef.tables import ReadOptions
from tests.scale.conftest import two_nodes

ROWS_A_WORKER = 1000
PART_ROWS = 20


def rows_a_second(folder: Path, upstreams: tuple[str, ...]) -> float:
    """Rows a second between the first part and the last."""
    path = folder / f"{len(upstreams)}.csv"
    path.write_bytes(table(ROWS_A_WORKER * len(upstreams)))
    told: list[tuple[float, int]] = []
    settings: dict[str, Any] = {"eval_concurrency": CONCURRENCY}
    task = Task(
        "evaluate", str(folder / f"out-{len(upstreams)}"), ReadOptions(), part_rows=PART_ROWS, settings=settings
    )
    evaluate_on_ray(
        [str(path)], task, Cluster(upstreams=upstreams), lambda rows, total: told.append((time.perf_counter(), rows))
    )
    (first, before), (last, after) = told[0], told[-1]
    return (after - before) / (last - first)


def measure() -> list[tuple[str, str, str]]:
    """Rows of the table: what, measured, budget."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        ports = [free_port(), free_port()]
        for port in ports:
            stack.enter_context(running([sys.executable, "-m", "bench.slow_server", str(port), str(PAUSE_S)]))
            wait_for(f"http://127.0.0.1:{port}/health")
        addresses = [f"http://127.0.0.1:{port}" for port in ports]
        stack.enter_context(two_nodes())
        one = rows_a_second(folder, (addresses[0],))
        two = rows_a_second(folder, (addresses[0], addresses[1]))
    limit = CONCURRENCY / PAUSE_S
    return [
        (f"one worker, 40 ms engine ({limit:.0f} rows/s at most)", f"{one:.0f} rows/s", ""),
        (f"two workers with an engine each ({two:.0f} rows/s)", f"{two / one:.2f} x one", ">= 1.8 x"),
    ]
