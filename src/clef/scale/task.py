"""Turns what a person asked for into one Task, which every machine gets, and tells whether a folder holds its parts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import orjson

from clef.decisions.examples import Shape
from clef.errors import InputError, Problem
from clef.runs.rows import question_text
from clef.scale.places import Folder
from clef.tables import ReadOptions

TASK_FILE = "_clef/task.json"
PART_ROWS = 1000
"""Examples that are asked and written together: what a lost machine costs at most, twice."""
Kind = Literal["predict", "evaluate"]


@dataclass(frozen=True)
class Task:
    """All that decides what the parts of a folder hold, the rows themselves aside."""

    kind: Kind
    out: str
    """Address of the folder that gets the parts."""
    reading: ReadOptions
    shape: Shape = "isolated"
    skip_bad_rows: bool = False
    part_rows: int = PART_ROWS
    several_files: bool = False
    """Whether rows say which file they are from."""
    extra: tuple[str, ...] = ()
    """The table's own columns, which every part has."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Options of the engines; what is left out each machine takes from its own environment."""

    @property
    def folder(self) -> Folder:
        """Where the parts go."""
        return Folder(self.out)

    def described(self) -> dict[str, Any]:
        """What has to be the same for the parts of a folder to be used again."""
        known = self.reading.questions_by_id
        return {
            "kind": self.kind,
            "questions": {name: question_text(question) for name, question in known.items()} or None,
            "columns": dict(self.reading.mapping) or None,
            "encoding": self.reading.encoding,
            "separator": self.reading.separator,
            "sheet": self.reading.sheet,
            "asked": self.shape,
            "rows a part": self.part_rows,
        }


def claim(task: Task) -> str | None:
    """Take the folder for a task; the identity of the model that answered its parts, None where there is none yet.

    Raises InputError for a folder that holds the parts of another task, or other files.
    """
    folder, mine = task.folder, task.described()
    kept = folder.read(TASK_FILE)
    if kept is None:
        others = [name for name in folder.names() if not name.startswith(".")]
        if others:
            message = f"{task.out} holds other files ({', '.join(others[:3])})"
            raise InputError.of([Problem(message, "out", hint="give --out an empty folder, or one that is not there")])
        pin(task, None)
        return None
    theirs = orjson.loads(kept)
    different = [name for name, value in mine.items() if theirs["task"].get(name) != value]
    if different:
        message = f"{task.out} holds parts of another task: {', '.join(different)} differ"
        raise InputError.of([Problem(message, "out", hint="give another folder, or ask as before to go on with it")])
    identity: str | None = theirs["identity"]
    return identity


def pin(task: Task, identity: str | None) -> None:
    """Write down what the task is and which model answers it."""
    task.folder.write(TASK_FILE, orjson.dumps({"task": task.described(), "identity": identity}))
