"""The shapes of the API, for its documentation; `predict.py` and `decisions.questions` do the checking.

They check by hand because every problem has to be found at once and named in a person's words.
"""

from typing import Annotated, Any, Literal

from fastapi import Path
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from clef.decisions.images import MAX_IMAGES
from clef.runs.browse import MOST_PLACE, no_row


class Shape(BaseModel):
    """Base of every documented shape: a field's docstring is its description."""

    model_config = ConfigDict(use_attribute_docstrings=True)


class AnswerOption(Shape):
    """One allowed answer with what it means."""

    answer: str
    description: str | dict[str, Any] | list[Any] | None = None
    """What the option means, for the model."""


class QuestionIn(Shape):
    """One question."""

    question: str | dict[str, Any] | list[Any]
    """What is asked."""
    type: Literal["choice", "noul", "score"] = "choice"
    answers: list[str | AnswerOption] | None = Field(default=None, max_length=255)
    """Allowed answers of a choice, 2 to 255."""
    true: str | dict[str, Any] | list[Any] | None = None
    """What yes means, for a noul."""
    false: str | dict[str, Any] | list[Any] | None = None
    """What no means, for a noul."""
    levels: list[str | dict[str, Any] | list[Any]] | None = None
    """Levels of a score, lowest first, 2 to 10."""


class PredictRequest(Shape):
    """A state and the questions to decide about it, together."""

    state: str | dict[str, Any] | list[Any]
    questions: list[QuestionIn] = Field(min_length=1)
    images: list[str] | None = Field(default=None, max_length=MAX_IMAGES)
    """PNG or JPEG as data URLs, before the state; 16 MB each."""


class LabelIn(Shape):
    """The label that a person gives to a row."""

    label: str
    note: str = ""


class PolicyIn(Shape):
    """A policy to keep: measured on a run, or brought along; one of `run` and `policy`."""

    name: str
    run: str | None = None
    """Id of the run that it is measured on, with exactly one of the targets below."""
    policy: dict[str, Any] | None = None
    """A policy file, or the file of a recalibration."""
    accuracy: float | None = None
    """Target accuracy of what is not checked."""
    review: float | None = None
    """Share of the rows that may be checked."""
    wrong: float | None = None
    """Cost of a wrong answer, with `check`."""
    check: float | None = None
    """Cost of checking one row, with `wrong`."""
    risk: float | None = None
    """Guaranteed: at most this share of what is not checked is wrong."""
    confidence: float | None = None
    """How sure the guarantee is."""
    recalibrate: str | None = None
    """Method of the map that the thresholds are on."""
    pooled: bool = False
    """One gate for all questions of a type."""
    replace: bool = False
    """Overwrite a policy of this name."""


class GateIn(Shape):
    """Answers to rule on."""

    policy: str | dict[str, Any]
    """A whole policy, or the name of a saved one."""
    results: list[dict[str, Any]]
    """As POST /api/predict gives them."""


class AnswerOut(Shape):
    """One allowed answer and its probability."""

    answer: str
    probability: float


class Result(Shape):
    """What was decided about one question."""

    question: str
    position: int
    """Place of the question in the request, from 0."""
    type: Literal["choice", "noul", "score"]
    prediction: str
    """The most probable answer: an option, yes or no, or a level."""
    confidence: float | None
    """TypeSafe's confidence, recomputed; null for a noul, which has none. Not a probability."""
    probability: float
    """Top probability: that of the prediction."""
    margin: float
    """Top probability less the next one; for a noul its distance from a half, doubled."""
    entropy: float
    """In nats."""
    tie: bool
    """Whether two answers share the top probability."""
    answers: list[AnswerOut]
    """Every allowed answer, most probable first."""
    options: list[str] | None = None
    """The options in the order asked, for a choice."""
    score: float | None = None
    """Expected level from 0, for a score."""
    level: int | None = None
    """Most likely level from 0, for a score."""
    levels: list[str] | None = None
    """The levels in order, for a score."""


class PredictResponse(Shape):
    """Results, most confident first; a noul ranks by its distance from a half."""

    results: list[Result]
    model: str
    engine: Literal["builtin", "upstream", "llama"]
    shape: Literal["isolated", "joint"]
    """Whether the question was asked alone or the questions in one prompt."""
    input_tokens: int | None
    elapsed_ms: float


class Health(Shape):
    """Whether a decision asked now would be answered, and by whom."""

    reachable: bool
    engine: Literal["builtin", "upstream", "llama"]
    phase: Literal["off", "starting", "loading", "ready", "failed"]
    model: str | None
    address: str | None
    max_tokens: int | None
    images: bool | None
    """Whether images are read; null where only the first one would show it."""
    message: str | None
    hint: str | None
    version: str
    """Of clef."""


class ProblemOut(Shape):
    """One thing that is wrong, and where."""

    row: int | None
    """Spreadsheet row: header = 1."""
    line: int | None
    column: str | None
    code: str
    message: str
    hint: str | None


class ErrorBody(Shape):
    """What went wrong, whose fault it is, and what to do."""

    code: str
    message: str
    hint: str | None
    fault: Literal["input", "upstream", "clef"]
    problems: list[ProblemOut] | None = None


class ErrorResponse(Shape):
    """The body of every error."""

    error: ErrorBody


def _there(position: int) -> int:
    """Raises NotFound for a place that no run has."""
    if position >= MOST_PLACE:
        raise no_row(position)
    return position


Place = Annotated[int, Path(ge=0, description="Place of the row in its run, from 0"), AfterValidator(_there)]
NOT_FOUND: dict[int | str, dict[str, Any]] = {404: {"model": ErrorResponse, "description": "Nothing has this name"}}
"""What every address with a name in it may answer."""


def json_body(model: type[Shape], example: Any = None) -> dict[str, Any]:
    """What a route that reads its JSON body by hand says of it."""
    content: dict[str, Any] = {"schema": model.model_json_schema(ref_template="#/components/schemas/{model}")}
    if example is not None:
        content["example"] = example
    return {"requestBody": {"required": True, "content": {"application/json": content}}}
