"""Turns labelled records into a file that grows row by row, and that a killed process can go on with.

A file is written beside its name, as NAME.part, and takes its name when the last row is there. NAME.part.json says what
it was made with: other questions, another model or another policy may not go on with it. The table's own columns stay
as they are; ours follow. Parquet cannot grow, so its answers wait as JSON lines until the end.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from clef.decisions.answers import Answer
from clef.decisions.questions import Question
from clef.errors import InputError, Problem
from clef.runs.labelling import Labelled
from clef.tables.stream import Stream

FORMATS = ("csv", "tsv", "jsonl", "parquet")
Judge = Callable[[str, Answer], str]
"""act or review, of a question's id and an answer."""


class Columns:
    """The columns that are added, and what goes into them."""

    def __init__(self, questions: Mapping[str, Question], prefix: str, judge: Judge | None, *, all_of: bool) -> None:
        """`all_of` adds every answer's probability as JSON."""
        self._questions, self._prefix, self._judge, self._all_of = questions, prefix, judge, all_of
        self.types: dict[str, str] = {}
        for name, question in questions.items():
            self.types |= {f"{prefix}{name}": "text", f"{prefix}{name}_probability": "number"}
            if question.type == "score":
                self.types[f"{prefix}{name}_score"] = "number"
            if judge is not None:
                self.types[f"{prefix}{name}_decision"] = "text"
            if all_of:
                self.types[f"{prefix}{name}_probabilities"] = "json"
        self.types[f"{prefix}error"] = "text"

    def clash(self, header: Sequence[str]) -> None:
        """Raise InputError where the table has a column of the same name."""
        same = [name for name in self.types if name in header]
        if same:
            hint = "write ours another way: --prefix clef_"
            message = f"the table has columns of ours already: {', '.join(same)}"
            raise InputError.of([Problem(message, "column_clash", hint=hint)])

    def cells(self, labelled: Labelled) -> dict[str, Any]:
        """The added cells of a record; None where there is no answer."""
        found: dict[str, Any] = dict.fromkeys(self.types)
        errors: dict[str, list[str]] = {}
        for name, answer in labelled.answers.items():
            if not isinstance(answer, Answer):
                errors.setdefault(answer.message, []).append(name)
                if self._judge is not None:
                    found[f"{self._prefix}{name}_decision"] = "review"
                continue
            found[f"{self._prefix}{name}"] = answer.prediction
            found[f"{self._prefix}{name}_probability"] = answer.top_probability
            if answer.type == "score":
                found[f"{self._prefix}{name}_score"] = answer.score
            if self._judge is not None:
                found[f"{self._prefix}{name}_decision"] = self._judge(name, answer)
            if self._all_of:
                pairs = dict(zip(answer.names, answer.probabilities, strict=True))
                found[f"{self._prefix}{name}_probabilities"] = pairs
        if errors:
            everything = len(errors) == 1 and len(next(iter(errors.values()))) == len(self._questions)
            said = [text if everything else f"{', '.join(names)}: {text}" for text, names in errors.items()]
            found[f"{self._prefix}error"] = "; ".join(said)
        return found


class Growing:
    """A file of labelled rows under way, or standard output."""

    def __init__(self, out: Path | BinaryIO, kind: str, stream: Stream, columns: Columns) -> None:
        """`kind` is one of FORMATS."""
        self._out, self._kind, self._stream, self._columns = out, kind, stream, columns
        self._file: BinaryIO | None = None
        self._separator = "\t" if kind == "tsv" else stream.separator if kind == "csv" else ","

    @property
    def part(self) -> Path:
        """Where the rows are until the last one is there."""
        assert isinstance(self._out, Path)
        return self._out.with_name(f"{self._out.name}.part")

    def open(self, made_with: Mapping[str, Any], *, resume: bool) -> int:
        """Begin, or go on; how many rows are there already.

        Raises InputError where there is an unfinished file and it is not to be gone on with, or was made otherwise.
        """
        if not isinstance(self._out, Path):
            self._file = self._out
            self._write_header()
            return 0
        settings = self.part.with_name(f"{self.part.name}.json")
        done = 0
        try:
            if self.part.exists() and settings.exists():
                done = self._go_on(settings, made_with, resume=resume)
            else:
                settings.write_text(json.dumps(made_with, ensure_ascii=False, indent=1), encoding="utf-8")
                self._file = self.part.open("wb")
                self._write_header()
        except OSError as error:
            raise InputError(f"{self.part} cannot be written: {error.strerror}") from error
        return done

    def add(self, labelled: Labelled) -> None:
        """Write one row."""
        cells = self._columns.cells(labelled)
        if self._kind == "jsonl":
            self._json(dict(labelled.record.cells) | cells)
        elif self._kind == "parquet":
            self._json(cells)
        else:
            own = [labelled.record.cells.get(name, "") for name in self._stream.header]
            self._row([*map(_cell, own), *map(_cell, cells.values())])

    def flush(self) -> None:
        """Hand what was written to the system: from here on it outlives this process."""
        if self._file is not None:
            self._file.flush()

    def close(self) -> None:
        """Stop here; what was written stays."""
        self.flush()
        if isinstance(self._out, Path) and self._file is not None:
            self._file.close()
        self._file = None

    def finish(self, again: Callable[[], Stream]) -> None:
        """Give the file its name. Parquet is made now, of the table read `again` and the answers."""
        self.close()
        if not isinstance(self._out, Path):
            return
        if self._kind == "parquet":
            made = self._out.with_name(f"{self._out.name}.new")
            _write_parquet(made, self.part, again(), self._columns.types)
            made.replace(self._out)
            self.part.unlink()
        else:
            self.part.replace(self._out)
        self.part.with_name(f"{self.part.name}.json").unlink(missing_ok=True)

    def _go_on(self, settings: Path, made_with: Mapping[str, Any], *, resume: bool) -> int:
        if not resume:
            hint = f"--resume goes on with it; or delete {self.part.name} and {settings.name} to start anew"
            raise InputError.of([Problem(f"there is an unfinished {self.part}", "unfinished", hint=hint)])
        before = json.loads(settings.read_text(encoding="utf-8"))
        other = [name for name in made_with if before.get(name) != json.loads(json.dumps(made_with[name]))]
        if other:
            hint = f"delete {self.part.name} and {settings.name} to start anew"
            message = f"{self.part.name} was begun with another {' and another '.join(other)}"
            raise InputError.of([Problem(message, "made_otherwise", hint=hint)])
        csv_like = self._kind in ("csv", "tsv")
        done, end = _csv_rows(self.part, self._separator) if csv_like else _lines(self.part)
        self._file = self.part.open("r+b")
        self._file.truncate(end)
        self._file.seek(end)
        if not end:
            self._write_header()
        return done

    def _write_header(self) -> None:
        if self._kind in ("csv", "tsv"):
            self._row([*self._stream.header, *self._columns.types])

    def _row(self, cells: Sequence[str]) -> None:
        buffer = io.StringIO(newline="")
        csv.writer(buffer, delimiter=self._separator, lineterminator="\n").writerow(cells)
        self._put(buffer.getvalue())

    def _json(self, cells: Mapping[str, Any]) -> None:
        self._put(json.dumps(cells, ensure_ascii=False, default=str) + "\n")

    def _put(self, text: str) -> None:
        assert self._file is not None
        try:
            self._file.write(text.encode("utf-8", "surrogateescape"))
        except BrokenPipeError:
            raise
        except OSError as error:
            raise InputError(f"the file cannot be written: {error.strerror}", hint="--resume goes on then") from error


def _cell(value: Any) -> str:
    """A cell as text; numbers with every digit, the rest as JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _lines(path: Path) -> tuple[int, int]:
    """Whole lines of a file, and where the last of them ends."""
    count = end = 0
    with path.open("rb") as file:
        for line in file:
            if not line.endswith(b"\n"):
                break
            count, end = count + 1, end + len(line)
    return count, end


def _csv_rows(path: Path, separator: str) -> tuple[int, int]:
    """Whole rows below the header of a CSV that we wrote, and where the last of them ends; 0 without a header."""
    at = 0

    def lines() -> Iterator[str]:
        nonlocal at
        with path.open("rb") as file:
            for line in file:
                if not line.endswith(b"\n"):
                    return
                at += len(line)
                yield line.decode("utf-8", "surrogateescape")

    rows, end, width = 0, 0, None
    reader = csv.reader(lines(), delimiter=separator, strict=True)
    try:
        for cells in reader:
            width = width or len(cells)
            if len(cells) != width:
                break
            rows, end = rows + 1, at
    except csv.Error:  # the last row was cut inside quotes
        pass
    return max(0, rows - 1), end


def _write_parquet(path: Path, answers: Path, stream: Stream, types: Mapping[str, str]) -> None:
    """The table with its answers as Parquet, a block at a time; the table's own columns are text, or as they were."""
    from itertools import islice

    import pyarrow as pa
    import pyarrow.parquet as pq

    ours = [(name, pa.float64() if kind == "number" else pa.string()) for name, kind in types.items()]
    own: list[tuple[str, Any]] = [(name, pa.string()) for name in stream.header]
    if stream.schema is not None:
        own = [(field.name, field.type) for field in stream.schema]
    schema = pa.schema([*own, *ours])
    text = [column.name for column in schema if pa.types.is_string(column.type)]
    with answers.open(encoding="utf-8") as lines, pq.ParquetWriter(path, schema) as writer:
        rows = (dict(record.cells) | json.loads(line) for record, line in zip(stream.records, lines, strict=True))
        while block := list(islice(rows, 20_000)):
            for row in block:
                row |= {name: None if row.get(name) is None else _cell(row[name]) for name in text}
            writer.write_table(pa.Table.from_pylist(block, schema=schema))
