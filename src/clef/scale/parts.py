"""Turns examples into parts that are asked and written together, and parts into outcomes again.

A part is named by its content, so one that is written already is known again whatever happened in between: a file
that was changed gives new names for the rows around the change, and the others are kept.

    part-00000-000007-<key>.parquet          what a person reads: the columns of every Parquet export of clef
    _clef/outcomes/part-….json.zst           the outcomes, losing nothing; for evaluations
    _clef/receipts/part-….json               written last: the part is done, and these are its counts
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import orjson

from clef.decisions.examples import Example, Outcome
from clef.decisions.questions import Question
from clef.runs.plan import state_content
from clef.runs.rows import (
    EXAMPLE_COLUMNS,
    OUTCOME_COLUMNS,
    example_row,
    outcome_row,
    question_text,
    read_example,
    read_outcome,
)
from clef.scale.places import Folder
from clef.scale.task import Task

RECEIPTS = "_clef/receipts"
OUTCOMES = "_clef/outcomes"
FORMAT = 1
"""Raised when parts are written differently, so that older ones are not taken for these."""


@dataclass(frozen=True, slots=True)
class Part:
    """Examples of one file that are asked together."""

    name: str
    content: bytes
    """The examples and their places in the file, as JSON."""
    rows: int

    def examples(self) -> tuple[list[int], list[Example]]:
        """Their places in the file, in order, and the examples."""
        body = orjson.loads(self.content)
        return body["at"], [read_example(cells) for cells in _cells(body, EXAMPLE_COLUMNS, body["rows"])]


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a part came to."""

    name: str
    rows: int
    answered: int
    failed: int
    correct: dict[str, int] = field(default_factory=dict)
    """Question → rows that are right."""
    judged: dict[str, int] = field(default_factory=dict)
    """Question → rows with a label and an answer."""
    model: str = ""
    host: str = ""
    seconds: float = 0.0

    def to_json(self) -> bytes:
        """The receipt as it is kept."""
        return orjson.dumps(asdict(self))


def parts_of(examples: Sequence[Example], file: int, task: Task) -> Iterator[Part]:
    """The parts of a file's examples, in order. Joint questions of one state stay in one part."""
    for number, places in enumerate(_divided(examples, task)):
        ids = _Questions()
        rows = [example_row(examples[at], ids.of(examples[at].question)) for at in places]
        content = orjson.dumps({"at": places, "questions": ids.texts, "rows": rows})
        key = hashlib.blake2b(b"%d %s " % (FORMAT, task.shape.encode()) + content, digest_size=8).hexdigest()
        yield Part(f"part-{file:05d}-{number:06d}-{key}", content, len(places))


def _divided(examples: Sequence[Example], task: Task) -> Iterator[list[int]]:
    if task.shape == "isolated":
        for start in range(0, len(examples), task.part_rows):
            yield list(range(start, min(start + task.part_rows, len(examples))))
        return
    states: dict[bytes, list[int]] = {}
    for at, example in enumerate(examples):
        states.setdefault(state_content(example), []).append(at)
    gathered: list[int] = []
    for places in states.values():
        gathered += places
        if len(gathered) >= task.part_rows:
            yield gathered
            gathered = []
    if gathered:
        yield gathered


def write_part(task: Task, part: Part, outcomes: Sequence[tuple[int, Outcome]], receipt: Receipt) -> None:
    """Write what came back, with each outcome's place in the file; the receipt last. Raises StoreError."""
    from clef.reports.export import write_parquet

    ordered = sorted(outcomes, key=lambda pair: pair[0])
    folder = task.folder
    if task.kind == "evaluate":
        folder.write(f"{OUTCOMES}/{part.name}.json.zst", _packed(ordered))
    folder.write(f"{part.name}.parquet", write_parquet([outcome for _, outcome in ordered], task.extra))
    folder.write(f"{RECEIPTS}/{part.name}.json", receipt.to_json())


def read_receipt(folder: Folder, name: str) -> Receipt | None:
    """The receipt of a part; None where it is not done."""
    content = folder.read(f"{RECEIPTS}/{name}.json")
    return None if content is None else Receipt(**orjson.loads(content))


def read_outcomes(folder: Folder, name: str) -> list[tuple[int, Outcome]]:
    """The outcomes of a part that is done, each with its place in the file."""
    import zstandard

    content = folder.read(f"{OUTCOMES}/{name}.json.zst")
    assert content is not None  # the receipt is written after it
    body = orjson.loads(zstandard.ZstdDecompressor().decompress(content))
    columns = (*EXAMPLE_COLUMNS, *OUTCOME_COLUMNS)
    return [
        (at, read_outcome(cells)) for at, cells in zip(body["at"], _cells(body, columns, body["rows"]), strict=True)
    ]


def drop_others(folder: Folder, names: Iterable[str]) -> int:
    """Remove parts of ours that are not among these: their rows were changed. How many there were."""
    kept = set(names)
    places = (("", ".parquet"), (OUTCOMES, ".json.zst"), (RECEIPTS, ".json"))
    dropped = set()
    for below, ending in places:
        for found in folder.names(below):
            name = found.removesuffix(ending)
            if found.startswith("part-") and found.endswith(ending) and name not in kept:
                folder.remove(f"{below}/{found}" if below else found)
                dropped.add(name)
    return len(dropped)


class _Questions:
    """Numbers the questions of a part; rows share question objects, so each is written out once."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._numbers: dict[str, int] = {}
        self._known: dict[int, int] = {}

    def of(self, question: Question) -> int:
        """The number of a question, which must live as long as this does."""
        number = self._known.get(id(question))
        if number is None:
            text = question_text(question)
            number = self._known[id(question)] = self._numbers.setdefault(text, len(self.texts))
            if number == len(self.texts):
                self.texts.append(text)
        return number


def _packed(ordered: Sequence[tuple[int, Outcome]]) -> bytes:
    import zstandard

    ids = _Questions()
    rows = [
        (*example_row(outcome.example, ids.of(outcome.example.question)), *outcome_row(outcome))
        for _, outcome in ordered
    ]
    body = orjson.dumps({"at": [at for at, _ in ordered], "questions": ids.texts, "rows": rows})
    return zstandard.ZstdCompressor(level=3).compress(body)


def _cells(body: Mapping[str, Any], columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[dict[str, Any]]:
    for row in rows:
        cells = dict(zip(columns, row, strict=True))
        yield cells | {"body": body["questions"][cells["question"]]}
