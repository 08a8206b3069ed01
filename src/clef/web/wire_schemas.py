"""The shapes of /v1 for the API's documentation; `decisions.served` and `decisions.openai` do the checking."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Text = str | dict[str, Any] | list[Any]


class Shape(BaseModel):
    """Base of every documented shape: a field's docstring is its description."""

    model_config = ConfigDict(use_attribute_docstrings=True)


class ServedAnswer(Shape):
    """One answer; which fields it has depends on its type."""

    type: Literal["noul", "choice", "score"]
    noul: float | None = None
    """Probability of true, for a noul."""
    choice: str | None = None
    """The most probable option, for a choice."""
    score: float | None = None
    """Expected level from 0, for a score."""
    legend: dict[str, Text] | None = None
    """The levels by their number, for a score."""
    probabilities: dict[str, float] | None = None
    """By option, or by the number of the level, in the order of the request."""
    confidence: float | None = None
    """TypeSafe's measure; not a probability. A noul has none."""


class Usage(Shape):
    """Tokens."""

    input_tokens: int
    output_tokens: int


class Ruling(Shape):
    """What a policy says of one answer."""

    decision: Literal["act", "review"]
    reason: str | None
    """Why it is to be reviewed."""
    probability: float | None
    """The top probability that was compared, recalibrated where the policy says so."""
    threshold: float | None


class SystemOneReply(Shape):
    """Answers by the ids of the request."""

    model: str
    """The model that answered."""
    answers: dict[str, ServedAnswer]
    usage: Usage
    x_questions: Literal["joint", "isolated"]
    """How the questions were asked: in one prompt, or each alone."""
    x_policy: str | None = None
    """The policy that ruled, where there is one."""
    x_gate: dict[str, Ruling] | None = None
    """Its ruling on each answer."""
    x_probabilities: Literal["engine", "recalibrated"] | None = None
    """Whose probabilities the answers have, where the policy recalibrates."""
    x_recalibrated: dict[str, Any] | None = None
    """The recalibrated probabilities, beside the engine's own."""


class Detail(Shape):
    """One problem of a request."""

    loc: list[str | int]
    msg: str
    type: str


class ValidationFailed(Shape):
    """Every problem of a request."""

    detail: list[Detail]


class Failed(Shape):
    """Why there is no answer."""

    detail: dict[str, Any]
    """`error_type` and `message`."""


class ModelName(Shape):
    """A name that `model` may have."""

    name: str
    description: str
    release_date: str


class ModelNames(Shape):
    """The names that `model` may have."""

    models: list[ModelName] = Field(min_length=1)


class OpenAIError(Shape):
    """Why there is no answer, as OpenAI's clients read it."""

    error: dict[str, Any]
    """`message`, `type`, `param`, `code`."""


class Decisions(Shape):
    """Answers in the order of the questions."""

    model: str
    answers: list[dict[str, Any]]
    usage: dict[str, Any]
    x_questions: Literal["joint", "isolated"]
    x_policy: str | None = None
    x_gate: dict[str, Ruling] | None = None
    """By the place of the question, from "0"."""
    x_probabilities: Literal["engine", "recalibrated"] | None = None
    x_recalibrated: dict[str, Any] | None = None


TEXT: dict[str, Any] = {"anyOf": [{"type": "string"}, {"type": "object"}, {"type": "array", "items": {}}]}
MAYBE_TEXT: dict[str, Any] = {"anyOf": [*TEXT["anyOf"], {"type": "null"}]}
EXTRAS: dict[str, Any] = {
    "x_questions": {"enum": ["joint", "isolated"]},
    "x_policy": {"type": "string", "description": "Name of a saved policy"},
    "x_probabilities": {"enum": ["engine", "recalibrated"]},
}
QUESTION = {
    "oneOf": [
        {
            "type": "object",
            "required": ["type", "instructions"],
            "properties": {
                "type": {"const": "noul"},
                "instructions": TEXT,
                "criteria": {
                    "anyOf": [
                        {"type": "object", "properties": {"true": MAYBE_TEXT, "false": MAYBE_TEXT}},
                        {"type": "null"},
                    ]
                },
            },
        },
        {
            "type": "object",
            "required": ["type", "criteria"],
            "properties": {
                "type": {"const": "choice"},
                "instructions": MAYBE_TEXT,
                "criteria": {
                    "type": "object",
                    "minProperties": 1,
                    "maxProperties": 255,
                    "additionalProperties": MAYBE_TEXT,
                },
            },
        },
        {
            "type": "object",
            "required": ["type", "criteria"],
            "properties": {
                "type": {"const": "score"},
                "instructions": MAYBE_TEXT,
                "criteria": {"type": "array", "items": TEXT, "minItems": 2, "maxItems": 10},
            },
        },
    ]
}
SYSTEMONE_REQUEST: dict[str, Any] = {
    "type": "object",
    "required": ["model", "state", "questions"],
    "properties": {
        "model": {"type": "string", "minLength": 1, "description": "A name that GET /v1/models lists"},
        "state": TEXT,
        "questions": {"type": "object", "minProperties": 1, "additionalProperties": QUESTION},
        "images": {"type": "array", "items": {"type": "string"}, "maxItems": 8, "description": "Data URLs"},
        "videos": {"type": "array", "items": {"type": "string"}, "maxItems": 4, "description": "Data URLs"},
        "assets": {"type": "object", "description": "Images by the reference that stands for them in a text"},
        **EXTRAS,
    },
}
DECISIONS_REQUEST: dict[str, Any] = {
    "type": "object",
    "required": ["model", "input", "questions"],
    "properties": {
        "model": {"type": "string", "minLength": 1},
        "input": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "object"}}]},
        "questions": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["type", "instructions"],
                "properties": {
                    "type": {"enum": ["predicate", "choice", "score"]},
                    "name": {"type": "string"},
                    "instructions": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "object"}}]},
                    "choices": {
                        "type": "array",
                        "minItems": 2,
                        "maxItems": 255,
                        "items": {
                            "type": "object",
                            "required": ["value"],
                            "properties": {
                                "value": {"anyOf": [{"type": "string"}, {"type": "boolean"}]},
                                "description": {"type": "string"},
                            },
                        },
                    },
                    "levels": {
                        "type": "array",
                        "minItems": 2,
                        "maxItems": 10,
                        "items": {
                            "type": "object",
                            "required": ["label"],
                            "properties": {"label": {"type": "string"}, "description": {"type": "string"}},
                        },
                    },
                },
            },
        },
        **EXTRAS,
    },
}
SYSTEMONE_EXAMPLE = {
    "model": "jev-latest",
    "state": "I was charged twice for my order last week.",
    "questions": {
        "team": {
            "type": "choice",
            "instructions": "Which team?",
            "criteria": {"billing": "charges", "other": "anything else"},
        },
        "angry": {"type": "noul", "instructions": "Is the customer angry?"},
        "urgency": {"type": "score", "instructions": "How urgent is it?", "criteria": ["can wait", "today", "now"]},
    },
}
DECISIONS_EXAMPLE = {
    "model": "clef",
    "input": "I was charged twice for my order last week.",
    "questions": [
        {
            "type": "choice",
            "name": "team",
            "instructions": "Which team?",
            "choices": [{"value": "billing"}, {"value": "other"}],
        },
        {"type": "predicate", "name": "angry", "instructions": "The customer is angry."},
    ],
}


SYSTEMONE_REPLY = {
    "model": "sparrow-nano-general-v1.1",
    "answers": {
        "team": {
            "type": "choice",
            "choice": "other",
            "probabilities": {"billing": 0.30213, "other": 0.69787},
            "confidence": 0.39574,
        },
        "angry": {"type": "noul", "noul": 0.30778},
        "urgency": {
            "type": "score",
            "score": 1.17603,
            "legend": {"0": "can wait", "1": "today", "2": "now"},
            "probabilities": {"0": 0.00128, "1": 0.82141, "2": 0.17731},
            "confidence": 0.73212,
        },
    },
    "usage": {"input_tokens": 32, "output_tokens": 0},
    "x_questions": "joint",
}
DECISIONS_REPLY = {
    "model": "sparrow-nano-general-v1.1",
    "answers": [
        {
            "type": "choice",
            "name": "team",
            "choice": "other",
            "confidence": 0.40935,
            "probabilities": [
                {"value": "billing", "probability": 0.29532},
                {"value": "other", "probability": 0.70468},
            ],
        },
        {"type": "predicate", "name": "angry", "probability": 0.31515},
    ],
    "usage": {
        "input_tokens": 20,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": 0,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 20,
    },
    "x_questions": "joint",
}
MODELS_REPLY = {
    "models": [
        {
            "name": "jev-latest",
            "description": "alias of sparrow-nano-general-v1.1",
            "release_date": "2026-09-30",
        },
        {
            "name": "sparrow-nano-general-v1.1",
            "description": "answered by the builtin engine",
            "release_date": "2026-09-30",
        },
    ]
}


def _replies(example: dict[str, Any], errors: dict[int | str, dict[str, Any]]) -> dict[int | str, dict[str, Any]]:
    return {200: {"content": {"application/json": {"example": example}}}} | errors


def _errors(model: type[Shape], invalid: dict[int | str, dict[str, Any]]) -> dict[int | str, dict[str, Any]]:
    texts = {
        400: "An unknown model, more tokens than the model reads, or an input that the model cannot decide",
        401: "An access key is asked for, and none or a wrong one was sent",
        403: "The Host or the Origin is none that clef answers to",
        404: "No saved policy has this name",
        408: "The client stopped in the middle of its body",
        413: "Larger than a limit, which the message names",
        415: "A Content-Type or Content-Encoding that is not taken",
        429: "Too many wrong keys from this address; see Retry-After",
        502: "The engine refused, or answered no distribution",
        503: "The engine is not there or not ready; see Retry-After",
        504: "The engine took too long",
        529: "More is asked than the engine can answer now; see Retry-After",
    }
    return {status: {"model": model, "description": text} for status, text in texts.items()} | invalid


def _body(schema: dict[str, Any], example: dict[str, Any], *, form: bool = False) -> dict[str, Any]:
    content: dict[str, Any] = {"application/json": {"schema": schema, "example": example}}
    if form:
        parts = {"request": schema, "asset-0": {"type": "string", "format": "binary"}}
        content["multipart/form-data"] = {
            "schema": {"type": "object", "required": ["request"], "properties": parts},
            "encoding": {"request": {"contentType": "application/json"}},
        }
    return {"requestBody": {"required": True, "content": content}}


INVALID: dict[int | str, dict[str, Any]] = {
    422: {"model": ValidationFailed, "description": "Something is wrong with the request; every problem is listed"}
}
SYSTEMONE: dict[str, Any] = {
    "response_model": SystemOneReply,
    "responses": _replies(SYSTEMONE_REPLY, _errors(Failed, INVALID)),
    "openapi_extra": _body(SYSTEMONE_REQUEST, SYSTEMONE_EXAMPLE, form=True),
    "operation_id": "systemone",
}
DECISIONS: dict[str, Any] = {
    "response_model": Decisions,
    "responses": _replies(DECISIONS_REPLY, _errors(OpenAIError, {})),
    "openapi_extra": _body(DECISIONS_REQUEST, DECISIONS_EXAMPLE),
    "operation_id": "decisions",
}
MODELS: dict[str, Any] = {
    "response_model": ModelNames,
    "responses": _replies(MODELS_REPLY, {status: _errors(Failed, {})[status] for status in (401, 403, 429)}),
    "operation_id": "models",
}
