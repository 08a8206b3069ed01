"""Turns a /v1/systemone body that a client sent into a Request, and our Reply into the body it expects.

The other side of `wire.py`: here clef is the server. What the protocol's own servers accept is accepted (one option,
a noul with criteria only, structured text), what they refuse is refused with every problem at its `loc`. Ids and
option names come back byte for byte; unknown fields are ignored.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from clef.decisions.answers import Answer
from clef.decisions.examples import Reply, Request
from clef.decisions.images import Pictures
from clef.decisions.questions import (
    MAX_DEPTH,
    MAX_LEVELS,
    MAX_OPTIONS,
    MIN_LEVELS,
    TOO_BIG,
    Choice,
    Noul,
    Option,
    Question,
    Score,
    big_numbers,
    nfc,
    too_deep,
)
from clef.errors import InputError, Problem

UNASKED = {
    "choice": "Choose the option that fits the state.",
    "score": "Place the state on the scale, lowest level first.",
}
"""Instructions of a question that has none; its criteria say what is asked. The id would carry meaning."""
NO_PARTS: Mapping[str, bytes] = {}
TEXT_MESSAGE = "Input should be a string, an object or an array"

Loc = tuple[str | int, ...]


class WireError(InputError):
    """A body of the protocol that cannot be answered; `details` are its problems, each with its `loc`."""

    code = "invalid_request"
    status = 422

    def __init__(self, details: Sequence[Mapping[str, Any]]) -> None:
        self.details = tuple(details)
        problems = [
            Problem(str(detail["msg"]), str(detail["type"]), column=".".join(map(str, detail["loc"][1:])) or None)
            for detail in details
        ]
        super().__init__("; ".join(str(problem) for problem in problems[:3]), problems)


@dataclass(frozen=True, slots=True)
class Served:
    """A client's request: what is asked, under the client's own ids."""

    request: Request
    ids: tuple[str, ...]
    """One a question, in the order sent."""
    model: str
    """The model name the client asked for."""


class _Details:
    """Collects problems, so that a client sees all of them."""

    def __init__(self) -> None:
        self.found: list[dict[str, Any]] = []

    def add(self, loc: Loc, message: str, kind: str = "value_error") -> None:
        self.found.append({"loc": ["body", *loc], "msg": message, "type": kind})

    def check_text(self, value: Any, loc: Loc) -> None:
        if not isinstance(value, str | Mapping | list):
            self.add(loc, TEXT_MESSAGE, "text_type")
        elif too_deep(value):
            self.add(loc, f"Nested deeper than {MAX_DEPTH} levels", "too_deep")
        else:
            for path in big_numbers(value):
                self.add((*loc, *path), f"{TOO_BIG.capitalize()}: write it as text, in quotes", "big_number")


def read_served(body: Any, parts: Mapping[str, bytes] = NO_PARTS) -> Served:
    """The request in a /v1/systemone body; `parts` are the bytes of its assets that came beside it, by name.

    Raises WireError with every problem.
    """
    details = _Details()
    if not isinstance(body, Mapping):
        details.add((), "Input should be an object", "model_attributes_type")
        raise WireError(details.found)
    model = body.get("model")
    if not isinstance(model, str) or not model:
        details.add(("model",), "Field required" if model is None else "Input should be a string", "missing")
    pictures = Pictures(parts, details.add)
    content = pictures.take(body)
    if "state" not in body:
        details.add(("state",), "Field required", "missing")
    else:
        details.check_text(body["state"], ("state",))
    questions = content["questions"]
    if not isinstance(questions, Mapping):
        message = "Field required" if questions is None else "Input should be an object"
        details.add(("questions",), message, "missing" if questions is None else "dict_type")
        raise WireError(details.found)
    if not questions:
        details.add(("questions",), "At least one question is required", "too_short")
    if "" in questions:
        details.add(("questions",), "A question needs an id", "string_too_short")
    read = [_read_question(raw, ("questions", name), details) for name, raw in questions.items()]
    if details.found:
        raise WireError(details.found)
    asked = tuple(question for question in read if question is not None)
    request = Request(content["state"], asked, tuple(pictures.images), tuple(pictures.videos))
    return Served(request, tuple(questions), str(model))


def _read_question(raw: Any, loc: Loc, details: _Details) -> Question | None:
    """The question, or None with what is wrong added to `details`."""
    known = len(details.found)
    if not isinstance(raw, Mapping):
        details.add(loc, "Input should be an object", "dict_type")
        return None
    kind: Any = raw.get("type")
    criteria: Any = raw.get("criteria")
    instructions = raw.get("instructions")
    if kind not in ("noul", "choice", "score"):
        message = "Field required" if kind is None else "Input should be 'noul', 'choice' or 'score'"
        details.add((*loc, "type"), message, "missing" if kind is None else "literal_error")
        return None
    if instructions is not None:
        details.check_text(instructions, (*loc, "instructions"))
    at = (*loc, "criteria")
    if kind == "noul":
        _check_noul(criteria, instructions, at, details)
    elif kind == "choice":
        _check_choice(criteria, at, details)
    else:
        _check_score(criteria, at, details)
    if len(details.found) > known:
        return None
    text = instructions if instructions else UNASKED.get(kind)
    if kind == "noul":
        sides = criteria or {}
        return Noul(instructions or None, sides.get("true") or None, sides.get("false") or None)
    if kind == "choice":
        return Choice(text or "", [Option(name, description) for name, description in criteria.items()])
    return Score(text or "", criteria)


def _check_noul(criteria: Any, instructions: Any, at: Loc, details: _Details) -> None:
    if criteria is not None and not isinstance(criteria, Mapping):
        details.add(at, "Input should be an object with `true` and `false`", "dict_type")
        return
    sides = {side: text for side, text in (criteria or {}).items() if side in ("true", "false") and text is not None}
    for side, text in sides.items():
        details.check_text(text, (*at, side))
    if not instructions and not any(sides.values()):
        details.add((*at[:-1], "instructions"), "Give instructions, or say what an outcome means", "missing")


def _check_choice(criteria: Any, at: Loc, details: _Details) -> None:
    if not isinstance(criteria, Mapping):
        details.add(at, "Field required" if criteria is None else "Input should be an object", "dict_type")
        return
    if not 1 <= len(criteria) <= MAX_OPTIONS:
        details.add(at, f"A choice has 1 to {MAX_OPTIONS} options, not {len(criteria)}", "option_count")
    seen: dict[str, str] = {}
    for name, description in criteria.items():
        if not name.strip():
            details.add((*at, name), "An option needs a name", "empty_option")
        if nfc(name) in seen:
            details.add((*at, name), "Two options are the same text in two Unicode forms", "duplicate_options")
        seen[nfc(name)] = name
        if description is not None:
            details.check_text(description, (*at, name))


def _check_score(criteria: Any, at: Loc, details: _Details) -> None:
    if not isinstance(criteria, list):
        message = "Field required" if criteria is None else "Input should be an array of levels, lowest first"
        details.add(at, message, "list_type")
        return
    if not MIN_LEVELS <= len(criteria) <= MAX_LEVELS:
        details.add(at, f"A score has {MIN_LEVELS} to {MAX_LEVELS} levels, not {len(criteria)}", "level_count")
    for position, level in enumerate(criteria):
        details.check_text(level, (*at, position))
        if level in ("", [], {}) or (isinstance(level, str) and not level.strip()):
            details.add((*at, position), "A level needs a text", "empty_level")


def served_body(served: Served, reply: Reply, model: str) -> dict[str, Any]:
    """The body of the answer, without extras: `model`, `answers` by the client's ids, `usage`."""
    pairs = zip(served.ids, served.request.questions, reply.answers, strict=True)
    return {
        "model": model,
        "answers": {name: _served_answer(question, answer) for name, question, answer in pairs},
        "usage": {"input_tokens": reply.input_tokens or 0, "output_tokens": 0},
    }


def _served_answer(question: Question, answer: Answer) -> dict[str, Any]:
    if isinstance(question, Noul):
        return {"type": "noul", "noul": answer.probabilities[0]}
    measured: dict[str, Any] = {"confidence": answer.confidence}
    if isinstance(question, Choice):
        probabilities = dict(zip(answer.names, answer.probabilities, strict=True))
        return {"type": "choice", "choice": answer.prediction, "probabilities": probabilities, **measured}
    levels = [str(level) for level in range(len(question.levels))]
    return {
        "type": "score",
        "score": answer.score,
        "legend": dict(zip(levels, question.levels, strict=True)),
        "probabilities": dict(zip(levels, answer.probabilities, strict=True)),
        **measured,
    }
