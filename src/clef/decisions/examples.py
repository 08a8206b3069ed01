"""Turns one labelled row into an Example, and what came back for it into an Outcome.

Everything after the engine (statistics, reports, exports) reads Outcomes only, so each report can be made again
with no model. An example without a label is answered and stays out of the accuracy.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from clef.decisions.answers import Answer
from clef.decisions.questions import Json, Noul, Question

Shape = Literal["isolated", "joint"]


@dataclass(frozen=True, slots=True)
class Request:
    """One state and the questions asked about it together."""

    state: Json
    questions: tuple[Question, ...]
    images: tuple[str, ...] = ()
    """Data URLs, in order."""
    videos: tuple[str, ...] = ()
    """Data URLs, in order; few engines take them."""

    @property
    def shape(self) -> Shape:
        """How the questions reach the model: alone, or in the company of others."""
        return "isolated" if len(self.questions) == 1 else "joint"


PROBE = Request("ping", (Noul("Is this a test?"),))
"""The smallest real decision: shows that a server decides, not only that it listens."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What an engine answered to a request."""

    answers: tuple[Answer, ...]
    """One a question, in the request's order."""
    model: str
    """The name the engine gave its model."""
    input_tokens: int | None = None
    """Tokens read, where the engine counts them."""


@dataclass(frozen=True, slots=True)
class Example:
    """One question about one state, with its label and its place in the table."""

    state: Json
    question: Question
    label: int | None = None
    """Position of the right answer among the question's answers; None for a row without a label."""
    written_label: str = ""
    """The label as it stood in the table, for exports."""
    row: int = 0
    """Spreadsheet row: header = 1."""
    line: int | None = None
    """Text line where the row starts, counted from 1."""
    question_name: str = ""
    """What the question is called in the table: its text, or its id in a wide layout."""
    extra: Mapping[str, str] = field(default_factory=dict)
    """Columns with no role, as they came."""
    images: tuple[str, ...] = ()

    @property
    def request(self) -> Request:
        """The request that asks this question alone."""
        return Request(self.state, (self.question,), self.images)


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an example has no answer. A failure is never a wrong answer."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came back for an example: an answer or a failure, never both."""

    example: Example
    answer: Answer | None
    failure: Failure | None = None
    elapsed_s: float = 0.0
    """Time from sending the request to its answer, seconds."""
    shape: Shape = "isolated"
    model: str = ""

    @property
    def correct(self) -> bool | None:
        """Whether the prediction is the label; None where there is no label or no answer."""
        if self.answer is None or self.example.label is None:
            return None
        return self.answer.top == self.example.label
