"""Turns the body of an Ask into results: what both the page and POST /api/predict answer with."""

import time
from collections.abc import Mapping
from typing import Any

from clef.decisions.answers import Answer
from clef.decisions.examples import Reply, Request
from clef.decisions.images import read_images
from clef.decisions.questions import Choice, Noul, Question, Score, as_text, read_questions, state_problems
from clef.engines.engine import Engine
from clef.errors import InputError, Problem


def read_request(body: Any) -> Request:
    """The request in `{"state": …, "questions": [...], "images": [...]}`. Raises InputError with every problem."""
    if not isinstance(body, Mapping):
        problem = Problem('expected {"state": …, "questions": […]}', "not_an_object")
        raise InputError.of([problem])
    has_images = bool(body.get("images"))
    state = body.get("state", "" if has_images else None)
    problems = state_problems(state, has_images=has_images)
    questions: tuple[Question, ...] = ()
    images: tuple[str, ...] = ()
    try:
        questions = read_questions(body.get("questions"))
    except InputError as error:
        problems += error.problems
    try:
        images = read_images(body.get("images"))
    except InputError as error:
        problems += error.problems
    if problems:
        raise InputError.of(problems, "the request")
    return Request(state, questions, images)


def question_json(question: Question) -> dict[str, Any]:
    """A question as such a body holds it."""
    body: dict[str, Any] = {"type": question.type, "question": question.instructions or ""}
    match question:
        case Choice():
            body["answers"] = [
                {"answer": option.name, "description": option.description} if option.description else option.name
                for option in question.options
            ]
        case Score():
            body["levels"] = list(question.levels)
        case Noul():
            body |= {side: text for side, text in (("true", question.true), ("false", question.false)) if text}
    return body


async def predict(request: Request, engine: Engine) -> dict[str, Any]:
    """Ask the questions together; `results` come most confident first."""
    started = time.perf_counter()
    reply = await engine.decide(request)
    elapsed_ms = (time.perf_counter() - started) * 1000
    return to_dict(request, reply) | {"engine": (await engine.facts()).kind, "elapsed_ms": round(elapsed_ms, 2)}


def to_dict(request: Request, reply: Reply) -> dict[str, Any]:
    """The reply as JSON, one result a question, ordered by confidence; a noul by its distance from a half."""
    results = [
        _result(position, question, answer)
        for position, (question, answer) in enumerate(zip(request.questions, reply.answers, strict=True))
    ]
    order = sorted(range(len(results)), key=lambda position: -reply.answers[position].rank)
    return {
        "results": [results[position] for position in order],
        "model": reply.model,
        "shape": request.shape,
        "input_tokens": reply.input_tokens,
    }


def _result(position: int, question: Question, answer: Answer) -> dict[str, Any]:
    result: dict[str, Any] = {
        "question": as_text(question.instructions or ""),
        "position": position,
        "type": answer.type,
        "prediction": answer.prediction,
        "confidence": answer.confidence,
        "probability": answer.top_probability,
        "margin": answer.margin,
        "entropy": answer.entropy,
        "tie": answer.tie,
        "answers": ranked(answer),
    }
    if answer.type == "choice":
        result["options"] = list(answer.names)
    if answer.type == "score":
        result |= {"score": answer.score, "level": answer.level, "levels": list(answer.names)}
    return result


def ranked(answer: Answer) -> list[dict[str, Any]]:
    """Every allowed answer with its probability, highest first."""
    return [{"answer": name, "probability": probability} for name, probability in answer.ranked()]
