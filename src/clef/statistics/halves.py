"""Turns the outcomes of one run into its half of a comparison: arrays, and for each row what tells its question apart.

The outcomes may stream by: no text of any state is kept. A state is known by 16 bytes of its hash.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from clef.decisions.examples import Outcome
from clef.decisions.questions import Question
from clef.statistics.columns import Columns, as_columns, question_key, state_digest
from clef.statistics.policy import Policy, decide

if TYPE_CHECKING:
    from clef.statistics.columns import Bools, Ints


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, and what it is called in the run."""

    question: Question
    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Half:
    """One run of a comparison."""

    columns: Columns
    state: Ints
    """The hash of each row's state and images, in two numbers: rows x 2."""
    key: Ints
    """Place in `questions` of what each row asks."""
    questions: dict[str, Asked]
    """By what two questions share that ask the same."""
    acts: Bools | None = None
    """Whether the policy of the comparison acts on each row; None where there is none."""

    def of_question(self, name: str) -> Half:
        """Only the rows of a question by its name; none where the run does not ask it."""
        import numpy as np

        names = self.columns.names
        mask = self.columns.question == (names.index(name) if name in names else -1)
        used = np.unique(self.key[mask])
        keys = [list(self.questions)[place] for place in used.tolist()]
        return Half(
            self.columns.take(mask),
            self.state[mask],
            np.searchsorted(used, self.key[mask]),
            {key: Asked(self.questions[key].question, name) for key in keys},
            None if self.acts is None else self.acts[mask],
        )


Runs: TypeAlias = "Iterable[Outcome] | Half"
"""What is compared: outcomes, or the half that was made of them."""


def as_half(outcomes: Runs, policy: Policy | None = None) -> Half:
    """The half of some outcomes, in one pass over them; one that was made before comes back as it is.

    `policy` is the gate at which coverage is compared.
    """
    return outcomes if isinstance(outcomes, Half) else _Passing(policy).half(outcomes)


def half_at(policy: Policy | None) -> partial[Half]:
    """`as_half` at a gate, for whoever streams outcomes to a function of them."""
    return partial(as_half, policy=policy)


class _Passing:
    """What is noted of outcomes as they pass by."""

    def __init__(self, policy: Policy | None) -> None:
        self._policy = policy
        self._digests, self._acts = bytearray(), bytearray()
        self._keys: list[int] = []
        self._places: dict[str, int] = {}
        self._asked: list[Asked] = []
        self._known: dict[int, tuple[Question, str]] = {}  # rows share questions, and making a key is slow

    def half(self, outcomes: Iterable[Outcome]) -> Half:
        import numpy as np

        columns = as_columns(self._noted(outcomes))
        return Half(
            columns,
            np.frombuffer(bytes(self._digests), dtype=np.int64).reshape(-1, 2),
            np.array(self._keys, dtype=np.int64),
            dict(zip(self._places, self._asked, strict=True)),
            None if self._policy is None else np.frombuffer(bytes(self._acts), dtype=bool),
        )

    def _noted(self, outcomes: Iterable[Outcome]) -> Iterator[Outcome]:
        for outcome in outcomes:
            example, answer = outcome.example, outcome.answer
            self._digests += state_digest(example)
            self._keys.append(self._key(example.question, example.question_name))
            if self._policy is not None:
                acts = answer is not None and decide(self._policy, example.question_name, answer) == "act"
                self._acts.append(acts)
            yield outcome

    def _key(self, question: Question, name: str) -> int:
        known = self._known.get(id(question))
        if known is None:  # the question is kept, so that its id is not used again
            known = self._known[id(question)] = (question, question_key(question))
        place = self._places.setdefault(known[1], len(self._asked))
        if place == len(self._asked):
            self._asked.append(Asked(question, name))
        elif self._asked[place].name != name:
            self._asked[place] = Asked(question, name)
        return place
