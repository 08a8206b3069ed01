"""Tables, tasks and comparisons that the tests of this folder share."""

import asyncio
import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import clef
from clef.decisions.examples import Outcome
from clef.scale.asking import Asker, Ready, Trouble
from clef.scale.on_ray import _file_of
from clef.scale.parts import Receipt, read_outcomes
from clef.scale.places import files_at
from clef.scale.reading import cut, look, settle
from clef.scale.task import Task, claim
from clef.tables import ReadOptions
from tests.fakes.system_one import SystemOne

HEADER = ("context", "question", "answer", "options")


def write_table(path: Path, rows: int, start: int = 0) -> Path:
    """A long table whose cells have line breaks, so that rows and lines differ."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(HEADER)
        for n in range(start, start + rows):
            writer.writerow([f"text {n}\nof two lines", "Which team?", "ab"[n % 2], "a|b"])
    return path


def task_for(out: Path, server: SystemOne | None = None, **changes: Any) -> Task:
    """A task of small parts."""
    settings = {"engine": "upstream", "upstream": server.address} if server else {"engine": "builtin"}
    fixed: dict[str, Any] = {
        "kind": "evaluate",
        "out": str(out),
        "reading": ReadOptions(),
        "settings": settings,
        "part_rows": 10,
    }
    return Task(**(fixed | {"settings": settings} | changes))


def seen(run: clef.Run) -> list[tuple[Any, Any]]:
    """What has to be the same on one machine and on many."""
    return [(one.example, one.answer) for one in run.outcomes]


def settled(addresses: Sequence[str], task: Task) -> Task:
    """The task once its files were looked at."""
    return settle([look(file, task.reading) for file in files_at(addresses)], task)


def work_here(addresses: Sequence[str], task: Task) -> list[Receipt | Trouble]:
    """Do a whole task in this process, with no cluster."""
    task = settled(addresses, task)
    claim(task)

    async def work() -> list[Receipt | Trouble]:
        asker = Asker(task)
        assert isinstance(await asker.open(), Ready)
        files = files_at(addresses)
        parts = [part for number, file in enumerate(files) for part in cut(file, number, task)]
        found = [await asker.ask(part) for part in parts]
        await asker.close()
        return found

    return asyncio.run(work())


def outcomes_of(task: Task, receipts: Sequence[Receipt | Trouble]) -> list[Outcome]:
    """The outcomes of a task that is done, in the tables' order."""
    names = [one.name for one in receipts if isinstance(one, Receipt)]
    placed = [(_file_of(name), *pair) for name in names for pair in read_outcomes(task.folder, name)]
    return [outcome for _, _, outcome in sorted(placed, key=lambda one: one[:2])]
