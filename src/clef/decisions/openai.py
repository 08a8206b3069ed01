"""Turns a body of OpenAI's Decisions API into a System One request, and our Reply into the body its clients expect.

    predicate                    noul
    choices, value true/false    options "true", "false"; the value comes back as it was sent
    levels, label: description   levels

What is wrong is found by the System One reader, and told by the places of this shape.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from clef.decisions.examples import Reply
from clef.decisions.questions import as_text
from clef.decisions.served import Served, WireError, read_served

TYPES = {"predicate": "noul", "choice": "choice", "score": "score"}
MIN_CHOICES = 2

Loc = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Named:
    """What a reply has to say of a question besides its answer."""

    type: str
    name: str | None
    values: tuple[Any, ...] = ()
    """The choices as they were sent, or the labels of the levels."""


@dataclass(frozen=True, slots=True)
class AskedDecisions:
    """A request in OpenAI's shape: the System One request that it is, and its own names."""

    served: Served
    questions: tuple[Named, ...]


def read_decisions(body: Any) -> AskedDecisions:
    """The request in a /v1/decisions body. Raises WireError with every problem."""
    details: list[dict[str, Any]] = []
    listed = body.get("questions") if isinstance(body, Mapping) else None
    if not isinstance(body, Mapping) or not isinstance(listed, list):
        where = ["body"] if not isinstance(body, Mapping) else ["body", "questions"]
        kind = "an array" if isinstance(body, Mapping) else "an object"
        raise WireError([{"loc": where, "msg": f"Input should be {kind}", "type": "list_type"}])
    named, questions = [], {}
    for n, raw in enumerate(listed):
        name, question = _read_question(raw, ("questions", n), details)
        named.append(name)
        questions[str(n)] = question
    translated: dict[str, Any] = {"model": body.get("model"), "questions": questions}
    if "input" in body:
        translated["state"] = _state(body["input"])
    try:
        served = read_served(translated)
    except WireError as error:
        raise WireError(details + [_moved(detail) for detail in error.details]) from None
    if details:
        raise WireError(details)
    return AskedDecisions(served, tuple(named))


def _read_question(raw: Any, at: Loc, details: list[dict[str, Any]]) -> tuple[Named, Any]:
    """A question's names, and the question in System One's shape; what only this shape knows is checked here."""
    if not isinstance(raw, Mapping):
        return Named("", None), raw
    kind = raw.get("type")
    name = raw.get("name")
    if name is not None and not isinstance(name, str):
        _complain(details, (*at, "name"), "Input should be a string", "string_type")
    question: dict[str, Any] = {"type": TYPES.get(str(kind), kind), "instructions": _text(raw.get("instructions"))}
    values: list[Any] = []
    if kind == "choice":
        values, question["criteria"] = _read_choices(raw.get("choices"), (*at, "choices"), details)
    elif kind == "score":
        values, question["criteria"] = _read_levels(raw.get("levels"), (*at, "levels"), details)
    if not isinstance(kind, str) or kind not in TYPES:
        _complain(details, (*at, "type"), "Input should be 'predicate', 'choice' or 'score'", "literal_error")
        question = {"type": "noul", "instructions": "?"}
    elif question["instructions"] in (None, "", []):
        _complain(details, (*at, "instructions"), "Field required", "missing")
        question["instructions"] = "?"
    return Named(str(kind), name if isinstance(name, str) else None, tuple(values)), question


def _read_choices(raw: Any, at: Loc, details: list[dict[str, Any]]) -> tuple[list[Any], dict[str, Any] | None]:
    if not isinstance(raw, list):
        return [], None
    values: list[Any] = []
    criteria: dict[str, Any] = {}
    for n, choice in enumerate(raw):
        value = choice.get("value") if isinstance(choice, Mapping) else None
        if not isinstance(value, str | bool):
            _complain(details, (*at, n, "value"), "Input should be a string or a boolean", "string_type")
            continue
        text = _choice_text(value)
        if text in criteria:
            _complain(details, (*at, n, "value"), "This choice is there already", "duplicate_options")
        values.append(value)
        criteria[text] = choice.get("description")
    if len(raw) < MIN_CHOICES:
        _complain(details, at, f"A choice has at least {MIN_CHOICES} choices", "too_short")
    return values, criteria or {"": None}


def _read_levels(raw: Any, at: Loc, details: list[dict[str, Any]]) -> tuple[list[Any], list[Any] | None]:
    if not isinstance(raw, list):
        return [], None
    labels, levels = [], []
    for n, level in enumerate(raw):
        label = level.get("label") if isinstance(level, Mapping) else None
        if not isinstance(label, str):
            _complain(details, (*at, n, "label"), "Input should be a string", "string_type")
            continue
        labels.append(label)
        description = level.get("description")
        levels.append(f"{label}: {as_text(description)}" if description else label)
    return labels, levels


def _state(given: Any) -> Any:
    """The input as a state: messages in the shape that the System One reader knows images in."""
    return [_message(item) for item in given] if isinstance(given, list) else given


def _message(item: Any) -> Any:
    if not isinstance(item, Mapping) or not isinstance(item.get("content"), list):
        return item
    parts = []
    for part in item["content"]:
        kind = part.get("type") if isinstance(part, Mapping) else None
        if kind == "input_image":
            parts.append({"type": "image_url", "image_url": part.get("image_url")})
        elif kind in ("input_text", "output_text"):
            parts.append({"type": "text", "text": part.get("text")})
        else:
            parts.append(part)
    return {**item, "content": parts}


def _text(instructions: Any) -> Any:
    """Instructions as text; parts that are all text become one."""
    if not isinstance(instructions, list):
        return instructions
    texts = [part["text"] for part in instructions if isinstance(part, Mapping) and isinstance(part.get("text"), str)]
    return "\n".join(texts) if texts and len(texts) == len(instructions) else instructions


def _moved(detail: Mapping[str, Any]) -> dict[str, Any]:
    """A problem by its place in this shape."""
    names = {"state": "input", "criteria": "choices"}
    places = enumerate(detail["loc"])
    loc = [int(part) if n == 2 and str(part).isdecimal() else names.get(part, part) for n, part in places]
    return {**detail, "loc": loc}


def _complain(details: list[dict[str, Any]], at: Loc, message: str, kind: str) -> None:
    details.append({"loc": ["body", *at], "msg": message, "type": kind})


def _choice_text(value: str | bool) -> str:
    return value if isinstance(value, str) else str(value).lower()


def decisions_body(asked: AskedDecisions, reply: Reply, model: str) -> dict[str, Any]:
    """The body of the answer: `model`, `answers` in the order of the questions, `usage`."""
    answers = []
    for named, answer in zip(asked.questions, reply.answers, strict=True):
        body: dict[str, Any] = {"type": named.type, "name": named.name}
        if named.type == "predicate":
            body["probability"] = answer.probabilities[0]
        elif named.type == "choice":
            body |= {
                "choice": named.values[answer.top],
                "confidence": answer.confidence,
                "probabilities": [
                    {"value": value, "probability": probability}
                    for value, probability in zip(named.values, answer.probabilities, strict=True)
                ],
            }
        else:
            body |= {
                "score": answer.score,
                "confidence": answer.confidence,
                "probabilities": [
                    {"value": level, "label": label, "probability": probability}
                    for level, (label, probability) in enumerate(zip(named.values, answer.probabilities, strict=True))
                ],
            }
        answers.append(body)
    tokens = reply.input_tokens or 0
    usage = {
        "input_tokens": tokens,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": 0,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": tokens,
    }
    return {"model": model, "answers": answers, "usage": usage}
