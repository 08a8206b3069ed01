"""Makes outcomes for tests: written out one by one, or drawn from a model whose calibration is known."""

from collections.abc import Sequence

import numpy as np
from hypothesis import settings

from clef.decisions.answers import Answer
from clef.decisions.examples import Example, Failure, Outcome
from clef.decisions.questions import Choice, Noul, Question, Score

steady = settings(max_examples=50)
"""For property tests: the same examples every time, and no clock, since the oracles import slowly."""

TEAM = Choice("Which team?", ["a", "b", "c"])
PAIR = Choice("Which one?", ["a", "b"])
ANGRY = Noul("Angry?")
URGENT = Score("How urgent?", ["0", "1", "2", "3"])


def outcome(
    probabilities: Sequence[float] | None,
    label: int | None,
    question: Question = PAIR,
    *,
    state: object = None,
    row: int = 2,
    name: str | None = None,
    extra: dict[str, str] | None = None,
) -> Outcome:
    """One outcome; without probabilities a failure. Without a state it has one of its own, by its row."""
    example = Example(
        f"state of row {row}" if state is None else state,  # type: ignore[arg-type]  # JSON, which object is not
        question,
        label,
        row=row,
        question_name=name or str(question.instructions),
        extra=extra or {},
    )
    if probabilities is None:
        return Outcome(example, None, Failure("too_long", "too long: 9 of 8 tokens"))
    return Outcome(example, Answer(question.type, question.answers, tuple(probabilities)))


def each(*given: tuple[Sequence[float] | None, int | None], question: Question = PAIR) -> list[Outcome]:
    """One outcome for each probabilities and label, each with its own state."""
    return [outcome(p, label, question, row=row) for row, (p, label) in enumerate(given, 2)]


def drawn(
    rows: int,
    seed: int,
    question: Question = TEAM,
    *,
    sharpness: float = 1.0,
    states: int | None = None,
    name: str = "",
) -> list[Outcome]:
    """Rows of a calibrated model; with a sharpness above 1 of one too sure, which says p^sharpness where p is true."""
    rng = np.random.default_rng(seed)
    found = []
    for row in range(rows):
        true = rng.dirichlet(np.full(len(question.answers), 0.6))
        label = int(rng.choice(len(true), p=true))
        said = true**sharpness / (true**sharpness).sum()
        state = f"{row if states is None else row % states}"
        found.append(outcome(said.tolist(), label, question, state=state, row=row + 2, name=name or None))
    return found
