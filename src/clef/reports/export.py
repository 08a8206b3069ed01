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
from typing import TYPE_CHECKING, Any

from clef.decisions.examples import Example, Outcome
from clef.decisions.questions import Choice, Json, Noul, Question, as_text
from clef.errors import InputError, Problem
from clef.tables.guards import OUR_COLUMNS, guard

if TYPE_CHECKING:
    import pandas

_BLOCK = 500
"""Outcomes a block of output has."""
_ROW_GROUP = 20_000
"""Outcomes a Parquet row group has."""


def write_csv(outcomes: Iterable[Outcome], extra: Sequence[str] | None = None) -> Iterator[bytes]:
    """The outcomes as CSV, UTF-8 with a byte order mark and CRLF, in blocks.

    `extra` names the table's own columns that follow ours; without it the outcomes are held to find them all.
    """
    outcomes, names = _with_extra(outcomes, extra)
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\r\n")
    buffer.write("\ufeff")
    writer.writerow([*OUR_COLUMNS, *(guard(_own_name(name)) for name in names)])
    for block in _blocks(outcomes, _BLOCK):
        writer.writerows(_csv_row(outcome, names) for outcome in block)
        yield buffer.getvalue().encode()
        buffer.seek(0)
        buffer.truncate()
    if buffer.tell():
        yield buffer.getvalue().encode()


def write_jsonl(outcomes: Iterable[Outcome]) -> Iterator[bytes]:
    """One JSON object an outcome: a labelled request (`state`, `questions`, `labels`) with its `result`."""
    for block in _blocks(outcomes, _BLOCK):
        yield "".join(
            json.dumps(_jsonl_row(outcome), ensure_ascii=False, allow_nan=False) + "\n" for outcome in block
        ).encode()


def write_parquet(outcomes: Iterable[Outcome], extra: Sequence[str] | None = None) -> bytes:
    """The outcomes as Parquet, with the columns of the CSV, typed and unguarded.

    Raises InputError where pyarrow is not installed.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        hint = "pip install 'clef[parquet]', or take the CSV or JSONL"
        problem = Problem("Parquet needs the pyarrow library, which is not installed", "missing_library", hint=hint)
        raise InputError.of([problem]) from None
    outcomes, names = _with_extra(outcomes, extra)
    columns = [*OUR_COLUMNS, *map(_own_name, names)]
    types = {name: pa.int64() for name in ("row", "line", "level")}
    types |= dict.fromkeys(
        ("confidence", "answer_probability", "probability", "margin", "score", "elapsed_ms"), pa.float64()
    )
    types |= dict.fromkeys(("correct", "tie"), pa.bool_())
    schema = pa.schema([(name, types.get(name, pa.string())) for name in columns])
    out = io.BytesIO()
    with pq.ParquetWriter(out, schema) as writer:
        for block in _blocks(outcomes, _ROW_GROUP):
            rows = [[*_values(outcome), *_extra_values(outcome.example, names)] for outcome in block]
            arrays = [pa.array(cells, field.type) for cells, field in zip(zip(*rows, strict=True), schema, strict=True)]
            writer.write_table(pa.table(arrays, schema=schema))
    return out.getvalue()


def to_frame(outcomes: Iterable[Outcome], extra: Sequence[str] | None = None) -> pandas.DataFrame:
    """The outcomes as a frame with the columns of the CSV, typed and unguarded."""
    import pandas

    outcomes, names = _with_extra(outcomes, extra)
    rows = [[*_values(outcome), *_extra_values(outcome.example, names)] for outcome in outcomes]
    return pandas.DataFrame(rows, columns=[*OUR_COLUMNS, *map(_own_name, names)])


def _with_extra(outcomes: Iterable[Outcome], extra: Sequence[str] | None) -> tuple[Iterable[Outcome], list[str]]:
    if extra is not None:
        return outcomes, list(extra)
    held = outcomes if isinstance(outcomes, Sequence) else list(outcomes)
    return held, list(dict.fromkeys(name for outcome in held for name in outcome.example.extra))


def _own_name(name: str) -> str:
    """An extra column's name; one that is called like a column of ours is told apart."""
    return f"{name} (table)" if name in OUR_COLUMNS else name


def _blocks(outcomes: Iterable[Outcome], size: int) -> Iterator[list[Outcome]]:
    left = iter(outcomes)
    while block := list(islice(left, size)):
        yield block


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


def _csv_row(outcome: Outcome, names: Sequence[str]) -> list[str]:
    return [_csv_cell(value) for value in (*_values(outcome), *_extra_values(outcome.example, names))]


def _csv_cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return guard(value) if isinstance(value, str) else repr(value)


def _extra_values(example: Example, names: Sequence[str]) -> list[str]:
    return [example.extra.get(name, "") for name in names]


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


def _jsonl_row(outcome: Outcome) -> dict[str, Any]:
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
