"""Turns outcomes into the lines of a stream."""

from typing import Any

import orjson

from clef.decisions.examples import Outcome
from clef.decisions.questions import as_text
from clef.runs.browse import Row
from clef.web.predict import ranked

EXCERPT = 300
"""Characters of a state that a row line carries; exports have all of it."""
STREAM_HEADERS = {"X-Accel-Buffering": "no", "Cache-Control": "no-store"}
"""Keep proxies from holding a stream back."""


def line(kind: str, content: dict[str, Any]) -> bytes:
    """One line of NDJSON."""
    return orjson.dumps({"type": kind} | content, option=orjson.OPT_APPEND_NEWLINE)


def row_line(outcome: Outcome) -> dict[str, Any]:
    """One outcome as JSON: what was asked in short, every answer with its probability, and whether it is right."""
    example, answer, failure = outcome.example, outcome.answer, outcome.failure
    names = example.question.answers
    line: dict[str, Any] = {
        "row": example.row,
        "line": example.line,
        "question": example.question_name,
        "question_type": example.question.type,
        "context": as_text(example.state)[:EXCERPT],
        "answer": None if example.label is None else names[example.label],
        "prediction": None,
        "confidence": None,
        "probability": None,
        "answer_probability": None,
        "margin": None,
        "tie": False,
        "correct": outcome.correct,
        "answers": [],
        "error": {"code": failure.code, "message": failure.message} if failure else None,
        "elapsed_ms": round(outcome.elapsed_s * 1000, 2),
    }
    if answer is not None:
        line |= {
            "prediction": answer.prediction,
            "confidence": answer.confidence,
            "probability": answer.top_probability,
            "answer_probability": None if example.label is None else answer.probabilities[example.label],
            "margin": answer.margin,
            "tie": answer.tie,
            "answers": ranked(answer),
        }
        if answer.type == "score":
            line |= {"score": answer.score, "level": answer.level}
    return line


def row_of(item: Row) -> dict[str, Any]:
    """A row of a run as JSON, with its place in the run."""
    return {"position": item.position, "cached": item.cached} | row_line(item.outcome)
