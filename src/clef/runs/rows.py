"""Turns examples, outcomes and questions into rows of the store, and rows back into them, losing nothing."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import orjson

from clef.decisions.answers import Answer
from clef.decisions.examples import Example, Failure, Outcome
from clef.decisions.questions import Choice, Noul, Option, Question, Score

EXAMPLE_COLUMNS = (
    "row", "line", "state", "question", "name", "label", "label_text", "written", "extra", "images"
)  # fmt: skip
OUTCOME_COLUMNS = (
    "probabilities", "prediction", "top", "margin", "rank", "tie", "correct", "failure", "message", "elapsed_s",
    "shape", "model", "cached",
)  # fmt: skip


def question_text(question: Question) -> str:
    """A question as the JSON that identifies it: equal questions give equal text."""
    body: dict[str, Any] = {"type": question.type, "instructions": question.instructions}
    match question:
        case Choice():
            body["options"] = [[option.name, option.description] for option in question.options]
        case Score():
            body["levels"] = question.levels
        case Noul():
            body |= {"true": question.true, "false": question.false}
    return json.dumps(body, ensure_ascii=False)


@lru_cache(maxsize=4096)
def read_question(text: str) -> Question:
    """The question of a text; equal texts give the same object, so that a million rows hold it once."""
    body = orjson.loads(text)
    match body["type"]:
        case "choice":
            return Choice(body["instructions"], [Option(name, description) for name, description in body["options"]])
        case "score":
            return Score(body["instructions"], body["levels"])
    return Noul(body["instructions"], body["true"], body["false"])


def example_row(example: Example, question_id: int) -> tuple[Any, ...]:
    """The cells of an example, in the order of EXAMPLE_COLUMNS."""
    return (
        example.row,
        example.line,
        _text(example.state),
        question_id,
        example.question_name,
        example.label,
        None if example.label is None else example.question.answers[example.label],
        example.written_label,
        _text(dict(example.extra)) if example.extra else None,
        _text(list(example.images)) if example.images else None,
    )


def read_example(cells: Mapping[str, Any]) -> Example:
    """The example of a row that was joined with its question's `body`."""
    return Example(
        state=orjson.loads(cells["state"]),
        question=read_question(cells["body"]),
        label=cells["label"],
        written_label=cells["written"],
        row=cells["row"],
        line=cells["line"],
        question_name=cells["name"],
        extra=orjson.loads(cells["extra"]) if cells["extra"] else {},
        images=tuple(orjson.loads(cells["images"])) if cells["images"] else (),
    )


def outcome_row(outcome: Outcome, *, cached: bool = False) -> tuple[Any, ...]:
    """The cells of an outcome, in the order of OUTCOME_COLUMNS."""
    answer, failure, correct = outcome.answer, outcome.failure, outcome.correct
    return (
        _text(answer.probabilities) if answer else None,
        answer.prediction if answer else None,
        answer.top_probability if answer else None,
        answer.margin if answer else None,
        answer.rank if answer else None,
        bool(answer and answer.tie),
        correct,
        failure.code if failure else None,
        failure.message if failure else None,
        outcome.elapsed_s,
        outcome.shape,
        outcome.model,
        cached,
    )


def read_outcome(cells: Mapping[str, Any]) -> Outcome:
    """The outcome of a row that was joined with its example and question."""
    example = read_example(cells)
    return Outcome(
        example,
        read_answer(example.question, cells["probabilities"]),
        Failure(cells["failure"], cells["message"]) if cells["failure"] else None,
        cells["elapsed_s"],
        cells["shape"],
        cells["model"],
    )


def with_label(outcome: Outcome, label: int | None, written: str) -> Outcome:
    """The outcome with another label, and that as it is written."""
    return replace(outcome, example=replace(outcome.example, label=label, written_label=written))


def read_answer(question: Question, probabilities: str | None) -> Answer | None:
    """The answer whose probabilities are kept as JSON."""
    if probabilities is None:
        return None
    return Answer(question.type, question.answers, tuple(orjson.loads(probabilities)))


def _text(value: Any) -> str:
    return orjson.dumps(value).decode()


def placeholders(columns: Sequence[str]) -> str:
    """As many question marks as columns."""
    return ", ".join("?" * len(columns))
