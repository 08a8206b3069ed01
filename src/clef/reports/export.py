"""Turns outcomes into files for other programs: CSV for spreadsheets, JSONL and Parquet for everything else.

The CSV opens safely in a spreadsheet (text that would run as a formula is guarded, our own numbers are not), begins
with a byte order mark so that Excel reads it as UTF-8, and read again by clef gives the very same questions and
labels. JSONL and Parquet hold everything raw, and JSONL is itself a table of labelled requests.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol

from clef.decisions.examples import Example, Outcome
from clef.decisions.questions import Choice, Json, Noul, Question, as_text
from clef.errors import InputError, Problem
from clef.tables.guards import OUR_COLUMNS, guard

if TYPE_CHECKING:
    import pandas

    from clef.statistics.policy import Policy

GATE_COLUMNS = ("gate", "gate_reason")
"""What a policy says of a row: act or review, and why it is to be reviewed."""


class Writer(Protocol):
    """Writes outcomes as they come. The bytes of `head`, of each `block` and of `tail` make the file; any may be empty.

    `held` is how many outcomes a block should have.
    """

    held: int

    def head(self) -> bytes:
        """What comes before the first outcome."""
        ...

    def block(self, outcomes: Sequence[Outcome]) -> bytes:
        """Some outcomes more."""
        ...

    def tail(self) -> bytes:
        """What comes after the last outcome."""
        ...


class CsvWriter:
    """CSV, UTF-8 with a byte order mark and CRLF. `extra` names the table's own columns, which follow ours."""

    held = 500

    def __init__(self, extra: Sequence[str], policy: Policy | None = None) -> None:
        self._extra, self._policy = extra, policy

    def head(self) -> bytes:
        """The mark and the header."""
        return b"\xef\xbb\xbf" + self._lines([[guard(name) for name in header(self._extra, self._policy)]])

    def block(self, outcomes: Sequence[Outcome]) -> bytes:
        """A line an outcome."""
        rows = (_cells(outcome, self._extra, self._policy) for outcome in outcomes)
        return self._lines([_csv_cell(value) for value in row] for row in rows)

    def tail(self) -> bytes:
        """Nothing."""
        return b""

    def _lines(self, rows: Iterable[Sequence[str]]) -> bytes:
        buffer = io.StringIO(newline="")
        csv.writer(buffer, lineterminator="\r\n").writerows(rows)
        return buffer.getvalue().encode()


class JsonlWriter:
    """One JSON object an outcome: a labelled request (`state`, `questions`, `labels`) with its `result`."""

    held = 500

    def __init__(self, policy: Policy | None = None) -> None:
        self._policy = policy

    def head(self) -> bytes:
        """Nothing."""
        return b""

    def block(self, outcomes: Sequence[Outcome]) -> bytes:
        """A line an outcome."""
        rows = (_jsonl_row(outcome, self._policy) for outcome in outcomes)
        return "".join(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows).encode()

    def tail(self) -> bytes:
        """Nothing."""
        return b""


class ParquetWriter:
    """Parquet with the columns of the CSV, typed and unguarded; a block is a row group."""

    held = 20_000

    def __init__(self, extra: Sequence[str], policy: Policy | None = None) -> None:
        """Raise InputError where pyarrow is not installed."""
        try:
            import pyarrow as pa
            import pyarrow.parquet as pq
        except ImportError:
            hint = "pip install 'clef[parquet]', or take the CSV or JSONL"
            problem = Problem("Parquet needs the pyarrow library, which is not installed", "missing_library", hint=hint)
            raise InputError.of([problem]) from None
        self._extra, self._policy = extra, policy
        types = {name: pa.int64() for name in ("row", "line", "level")}
        types |= dict.fromkeys(
            ("confidence", "answer_probability", "probability", "margin", "score", "elapsed_ms"), pa.float64()
        )
        types |= dict.fromkeys(("correct", "tie"), pa.bool_())
        self._schema = pa.schema([(name, types.get(name, pa.string())) for name in header(extra, policy)])
        self._out = io.BytesIO()
        self._writer = pq.ParquetWriter(_Drained(self._out), self._schema)

    def head(self) -> bytes:
        """The first bytes."""
        return self._drain()

    def block(self, outcomes: Sequence[Outcome]) -> bytes:
        """A row group."""
        import pyarrow as pa

        rows = [_cells(outcome, self._extra, self._policy) for outcome in outcomes]
        cells = zip(zip(*rows, strict=True), self._schema, strict=True)
        arrays = [pa.array(values, field.type) for values, field in cells]
        self._writer.write_table(pa.table(arrays, schema=self._schema))
        return self._drain()

    def tail(self) -> bytes:
        """The footer."""
        self._writer.close()
        return self._drain()

    def _drain(self) -> bytes:
        written = self._out.getvalue()
        self._out.seek(0)
        self._out.truncate()
        return written


class _Drained(io.RawIOBase):
    """What Parquet is written to: it hands everything on, and knows how much that was."""

    def __init__(self, out: io.BytesIO) -> None:
        self._out, self._size = out, 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._size

    def write(self, data: Any) -> int:
        count = self._out.write(data)
        self._size += count
        return count


def write(outcomes: Iterable[Outcome], writer: Writer) -> Iterator[bytes]:
    """The file in blocks."""
    left = iter(outcomes)
    yield writer.head()
    while block := list(islice(left, writer.held)):
        yield writer.block(block)
    yield writer.tail()


def write_csv(outcomes: Iterable[Outcome], extra: Sequence[str] | None = None) -> Iterator[bytes]:
    """The outcomes as CSV, in blocks. Without `extra` the outcomes are held to find the table's own columns."""
    outcomes, names = _with_extra(outcomes, extra)
    return write(outcomes, CsvWriter(names))


def write_jsonl(outcomes: Iterable[Outcome]) -> Iterator[bytes]:
    """The outcomes as JSONL, in blocks."""
    return write(outcomes, JsonlWriter())


def write_parquet(outcomes: Iterable[Outcome], extra: Sequence[str] | None = None) -> bytes:
    """The outcomes as Parquet. Raises InputError where pyarrow is not installed."""
    outcomes, names = _with_extra(outcomes, extra)
    return b"".join(write(outcomes, ParquetWriter(names)))


def header(extra: Sequence[str], policy: Policy | None = None) -> list[str]:
    """The names of all columns; one of the table that is called like one of ours is told apart."""
    ours = OUR_COLUMNS if policy is None else (*OUR_COLUMNS, *GATE_COLUMNS)
    return [*ours, *(f"{name} (table)" if name in ours else name for name in extra)]


def to_frame(outcomes: Iterable[Outcome], extra: Sequence[str] | None = None) -> pandas.DataFrame:
    """The outcomes as a frame with the columns of the CSV, typed and unguarded."""
    import pandas

    outcomes, names = _with_extra(outcomes, extra)
    return pandas.DataFrame([_cells(outcome, names, None) for outcome in outcomes], columns=header(names))


def _with_extra(outcomes: Iterable[Outcome], extra: Sequence[str] | None) -> tuple[Iterable[Outcome], list[str]]:
    if extra is not None:
        return outcomes, list(extra)
    held = outcomes if isinstance(outcomes, Sequence) else list(outcomes)
    return held, extra_names(held)


def extra_names(outcomes: Iterable[Outcome]) -> list[str]:
    """The table's own columns that play no role, in the order in which they first come."""
    return list(dict.fromkeys(name for outcome in outcomes for name in outcome.example.extra))


def _cells(outcome: Outcome, extra: Sequence[str], policy: Policy | None) -> list[Any]:
    """The cells of all columns, in the order of `header`, typed."""
    own = [outcome.example.extra.get(name, "") for name in extra]
    if policy is None:
        return [*_values(outcome), *own]
    from clef.statistics.policy import ruling

    said = ruling(policy, outcome.example.question_name, outcome.answer)
    return [*_values(outcome), said.decision, said.reason, *own]


def _values(outcome: Outcome) -> list[Any]:
    """The cells of our columns, in their order, typed."""
    example, answer = outcome.example, outcome.answer
    question = example.question
    label = example.label
    labelled = answer is not None and label is not None
    return [
        example.row,
        as_text(example.state),
        "" if question.instructions is None else as_text(question.instructions),
        options_cell(question),
        answer_cell(example),
        None if answer is None else answer.prediction,
        None if answer is None else answer.confidence,
        answer.probabilities[label] if answer is not None and label is not None else None,
        outcome.correct if labelled else None,
        None if outcome.failure is None else f"{outcome.failure.code}: {outcome.failure.message}",
        question.type,
        None if answer is None else answer.top_probability,
        None if answer is None else answer.margin,
        None if answer is None else answer.tie,
        None if answer is None else json.dumps(_probabilities(outcome), ensure_ascii=False),
        None if answer is None else answer.score,
        None if answer is None else answer.level,
        outcome.shape,
        outcome.model,
        round(outcome.elapsed_s * 1000, 3),
        example.line,
    ]


def _csv_cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return guard(value) if isinstance(value, str) else repr(value)


def _probabilities(outcome: Outcome) -> dict[str, float]:
    return {} if outcome.answer is None else dict(zip(outcome.answer.names, outcome.answer.probabilities, strict=True))


def options_cell(question: Question) -> str:
    """The options as a JSON list, or as an object where one has a description; nothing for a plain yes/no question."""
    options: Json
    if isinstance(question, Choice):
        described = any(option.description is not None for option in question.options)
        options = (
            {option.name: option.description for option in question.options} if described else list(question.answers)
        )
    elif isinstance(question, Noul):
        sides = {"true": question.true, "false": question.false}
        options = {side: text for side, text in sides.items() if text is not None}
        if not options:
            return ""
    else:
        options = list(question.levels)
    return json.dumps(options, ensure_ascii=False)


def answer_cell(example: Example) -> str:
    """The label as the user wrote it; of a score the level's text, since a position could be read as another level."""
    if example.label is None:
        return ""
    name = example.question.answers[example.label]
    return name if example.question.type == "score" else example.written_label or name


def _jsonl_row(outcome: Outcome, policy: Policy | None) -> dict[str, Any]:
    example, answer = outcome.example, outcome.answer
    name = example.question_name or "question"
    row: dict[str, Any] = {
        "state": example.state,
        "questions": {name: _question_json(example.question)},
        "labels": {} if example.label is None else {name: _label_json(example)},
        "row": example.row,
        "line": example.line,
    }
    if example.images:
        row["images"] = list(example.images)
    result: dict[str, Any] = {
        "shape": outcome.shape,
        "model": outcome.model,
        "elapsed_ms": round(outcome.elapsed_s * 1000, 3),
    }
    if answer is not None:
        result |= {
            "prediction": answer.prediction,
            "probability": answer.top_probability,
            "confidence": answer.confidence,
            "margin": answer.margin,
            "tie": answer.tie,
            "probabilities": _probabilities(outcome),
            "correct": outcome.correct,
        }
        if answer.type == "score":
            result |= {"score": answer.score, "level": answer.level}
    if outcome.failure is not None:
        result["error"] = {"code": outcome.failure.code, "message": outcome.failure.message}
    if policy is not None:
        from clef.statistics.policy import ruling

        result["gate"] = ruling(policy, example.question_name, answer).to_dict()
    extra = {name: value for name, value in example.extra.items() if name not in row and name != "result"}
    return row | extra | {"result": result}


def _label_json(example: Example) -> str | int | bool | None:
    question, label = example.question, example.label
    if isinstance(question, Choice) and label is not None:
        return question.answers[label]
    return label == 0 if isinstance(question, Noul) else label


def _question_json(question: Question) -> dict[str, Any]:
    body: dict[str, Any] = {"type": question.type, "instructions": question.instructions}
    if isinstance(question, Choice):
        body["criteria"] = {option.name: option.description for option in question.options}
    elif isinstance(question, Noul):
        sides: Mapping[str, Any] = {"true": question.true, "false": question.false}
        criteria = {side: text for side, text in sides.items() if text is not None}
        if criteria:
            body["criteria"] = criteria
    else:
        body["criteria"] = list(question.levels)
    return body
