"""Turns tables at any address into parts in a folder, asked on the machines of a Ray cluster, and into a Run.

Everything is read once before anybody is asked, so that what is wrong is said at once and for all files. Then Ray
Data reads and cuts, and the crew asks. What ends the work, the next call on the same folder goes on from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import orjson

from clef.errors import InputError, SettingsError
from clef.reports.run import Run
from clef.scale.asking import Ready
from clef.scale.cluster import Cluster, connected
from clef.scale.crew import Crew
from clef.scale.parts import RECEIPTS, Part, Receipt, drop_others, read_outcomes, read_receipt
from clef.scale.places import SourceFile, files_at
from clef.scale.reading import FileProblem, Look, cut, look, settle
from clef.scale.task import Task, claim, pin

Told = Callable[[int, int], None]
"""Told how many rows are done, of how many."""


@dataclass(slots=True)
class Done:
    """What a task came to; every number counts all rows."""

    rows: int = 0
    answered: int = 0
    failed: int = 0
    parts: int = 0
    kept: int = 0
    """Parts that an earlier call had written."""
    dropped: int = 0
    """Parts of an earlier call whose rows are not in the tables any more."""
    skipped: int = 0
    """Records of the tables that were left out because something is wrong with them."""
    correct: dict[str, int] = field(default_factory=dict)
    """Question → rows that are right."""
    judged: dict[str, int] = field(default_factory=dict)
    """Question → rows with a label and an answer."""
    names: list[str] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    """Rows of each part, in the order of `names`."""

    @property
    def accuracy(self) -> float | None:
        """Share right of all rows with a label and an answer; None where there is none."""
        judged = sum(self.judged.values())
        return sum(self.correct.values()) / judged if judged else None

    def take(self, receipt: Receipt) -> None:
        """Count a part in."""
        self.add(
            Done(
                rows=receipt.rows,
                answered=receipt.answered,
                failed=receipt.failed,
                parts=1,
                correct=receipt.correct,
                judged=receipt.judged,
                names=[receipt.name],
                sizes=[receipt.rows],
            )
        )

    def add(self, other: Done) -> None:
        """Count the parts of another one in."""
        self.rows += other.rows
        self.answered += other.answered
        self.failed += other.failed
        self.parts += other.parts
        self.names += other.names
        self.sizes += other.sizes
        for mine, theirs in ((self.correct, other.correct), (self.judged, other.judged)):
            for question, count in theirs.items():
                mine[question] = mine.get(question, 0) + count


@dataclass(frozen=True, slots=True)
class Evaluated:
    """An evaluation on many machines."""

    done: Done
    """Counts of all rows."""
    run: Run
    """The outcomes in the tables' order and their summary: of all rows, or of a sample where there are too many."""
    sampled: bool
    """Whether the run is a sample: whole parts, drawn by the hash of their content."""


def predict_on_ray(addresses: Sequence[str], task: Task, cluster: Cluster, told: Told | None = None) -> Done:
    """Answer every row of tables into Parquet parts in the task's folder.

    Raises InputError with all that is wrong in any file, SettingsError where no cluster is reached, Unavailable where
    no engine is left and StoreError where the folder fails; what is written by then is not asked again.
    """
    files = files_at(addresses)
    with connected(cluster) as ray:
        looks = _look(ray, files, task)
        task = settle(looks, task)
        identity = claim(task)

        def admit(ready: Ready) -> str | None:
            nonlocal identity
            if identity is None:
                identity = ready.identity
                pin(task, identity)
            if ready.identity == identity:
                return None
            return f"{ready.identity} answers there, and {identity} answered the other parts; a task has one model"

        kept, done = Done(), Done(skipped=sum(one.skipped for one in looks))
        total = sum(one.examples for one in looks)
        parts = _new_parts(_parts(ray, files, task), task, kept)
        for receipt in Crew(ray, task, cluster, admit).receipts(parts):
            done.take(receipt)
            if told:
                told(kept.rows + done.rows, total)
    done.kept = kept.parts
    done.add(kept)
    done.dropped = drop_others(task.folder, done.names)
    return done


def evaluate_on_ray(addresses: Sequence[str], task: Task, cluster: Cluster, told: Told | None = None) -> Evaluated:
    """Answer every row of labelled tables, and measure. Raises as `predict_on_ray`.

    Up to the task's `max_rows` the run is what one machine would give; beyond, it is a sample of that many rows, and
    only `done` counts all.
    """
    task = replace(task, kind="evaluate")
    done = predict_on_ray(addresses, task, cluster, told)
    names: list[str] = []
    rows = 0
    for name, size in sorted(zip(done.names, done.sizes, strict=True), key=lambda pair: pair[0].rpartition("-")[2]):
        if rows + size > task.reading.max_rows and names:
            break
        names.append(name)
        rows += size
    outcomes = []
    for file in sorted({_file_of(name) for name in names}):
        placed = [pair for name in names if _file_of(name) == file for pair in read_outcomes(task.folder, name)]
        outcomes += [outcome for _, outcome in sorted(placed, key=lambda pair: pair[0])]
    return Evaluated(done, Run.of(outcomes, addresses[0]), rows < done.rows)


def _file_of(name: str) -> str:
    return name.split("-")[1]


def _new_parts(parts: Iterator[Part], task: Task, kept: Done) -> Iterator[Part]:
    """The parts that are not done; those that are, are counted as kept."""
    known = {name.removesuffix(".json") for name in task.folder.names(RECEIPTS)}
    for part in parts:
        receipt = read_receipt(task.folder, part.name) if part.name in known else None
        if receipt is None:
            yield part
        else:
            kept.take(receipt)


def _items(ray: Any, files: Sequence[SourceFile]) -> Any:
    from ray import data

    rows = [{"number": number, **asdict(file)} for number, file in enumerate(files)]
    return data.from_items(rows, override_num_blocks=len(rows))


def _look(ray: Any, files: Sequence[SourceFile], task: Task) -> list[Look]:
    """What every file holds, in their order."""

    def work(row: dict[str, Any]) -> dict[str, Any]:
        number = row.pop("number")
        return {"number": number, "look": orjson.dumps(asdict(look(SourceFile(**row), task.reading)))}

    found = {row["number"]: orjson.loads(row["look"]) for row in _items(ray, files).map(work).iter_rows()}
    looks = [_read_look(found[number]) for number in range(len(files))]
    _check_versions(looks)
    return looks


def _read_look(body: dict[str, Any]) -> Look:
    body |= {name: tuple(body[name]) for name in ("columns", "extra")}
    body["derived"] = {question: tuple(options) for question, options in body["derived"].items()}
    body["problems"] = tuple(FileProblem(**problem) for problem in body["problems"])
    return Look(**body)


def _check_versions(looks: Sequence[Look]) -> None:
    from clef import __version__

    other = next((one.version for one in looks if one.version != __version__), None)
    if other is not None:
        hint = "install the same version on every machine"
        raise SettingsError(f"clef {other} is on a machine of the cluster, and {__version__} here", hint=hint)


def _parts(ray: Any, files: Sequence[SourceFile], task: Task) -> Iterator[Part]:
    """The parts of all files as they are read, in no order."""

    def work(row: dict[str, Any]) -> Iterator[dict[str, Any]]:
        number = row.pop("number")
        try:
            for part in cut(SourceFile(**row), number, task):
                yield asdict(part)
        except InputError as error:
            yield {"name": row["name"], "content": str(error).encode(), "rows": -1}

    for row in _items(ray, files).flat_map(work).iter_rows():
        if row["rows"] < 0:
            raise InputError(f"{row['name']} changed while it was worked on: {row['content'].decode()}")
        yield Part(**row)
