"""Many machines, on a cluster of two nodes: what one machine would give, whatever is lost on the way."""

import csv
from pathlib import Path
from typing import Any

import pytest

import clef
from clef.scale.cluster import Cluster
from clef.scale.on_ray import evaluate_on_ray
from clef.scale.task import Task
from clef.tables import ReadOptions
from tests.fakes.system_one import SystemOne

pytestmark = pytest.mark.filterwarnings("default")


def write_table(path: Path, rows: int, start: int = 0) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["context", "question", "answer", "options"])
        for n in range(start, start + rows):
            writer.writerow([f"text {n}\nof two lines", "Which team?", "ab"[n % 2], "a|b"])
    return path


def task_for(out: Path, server: SystemOne, **changes: Any) -> Task:
    settings = {"engine": "upstream", "upstream": server.address}
    return Task(
        **(
            {"kind": "evaluate", "out": str(out), "reading": ReadOptions(), "settings": settings, "part_rows": 10}
            | changes
        )
    )


def told(run: clef.Run) -> list[tuple[Any, Any]]:
    return [(one.example, one.answer) for one in run.outcomes]


def test_the_outcomes_are_those_of_one_machine(cluster: Any, server: SystemOne, tmp_path: Path) -> None:
    table = write_table(tmp_path / "table.csv", 95)
    alone = clef.evaluate(table, engine="upstream", upstream=server.address)
    many = evaluate_on_ray([str(table)], task_for(tmp_path / "out", server), Cluster(workers=2))
    assert [(one.example, one.answer) for one in many.run.outcomes] == [
        (one.example, one.answer) for one in alone.outcomes
    ]
    assert many.run.summary == alone.summary
    assert (many.done.rows, many.done.parts, many.sampled) == (95, 10, False)
