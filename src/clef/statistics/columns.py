"""Turns outcomes into arrays, one entry an outcome, made once for all the numbers of a report.

Invariants: entries stand in the order of the outcomes. What an outcome lacks is -1 (`label`, `predicted`) or NaN
(`top`), and `answered`, `labelled` say so; NaN never leaves this package. Classes are answers by name within a
question, since the options of one question may differ, or be ordered differently, from row to row. Two rows share a
*state* where state and images are equal, however the keys of a JSON state are ordered.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, TypeAlias

from clef.decisions.examples import Example, Outcome
from clef.decisions.questions import Choice, Noul, Question, QuestionType

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]
    Ints: TypeAlias = NDArray[np.int64]
    Bools: TypeAlias = NDArray[np.bool_]

StateKey: TypeAlias = str | tuple[str, ...] | bytes
Outcomes: TypeAlias = "Iterable[Outcome] | Columns"
"""What every statistic takes: outcomes, or the arrays made of them."""

_SHORT = 64
_PER_ROW = ("question", "state", "label", "sizes", "answered", "row", "class_base", "predicted", "top", "tie")


@dataclass(frozen=True, slots=True)
class Columns:
    """Outcomes as arrays. The first six have one entry an outcome; `flat` has one a probability."""

    question: Ints
    """Place in `names`."""
    state: Ints
    """The same number for rows about the same state."""
    label: Ints
    """Position of the right answer; -1 where there is none."""
    sizes: Ints
    """Number of answers allowed."""
    answered: Bools
    """Whether an answer came back."""
    row: Ints
    """Place among the outcomes."""
    flat: Floats
    """The probabilities of the answered outcomes, one outcome after the other."""
    names: tuple[str, ...]
    """Questions, in the order of their first row."""
    types: tuple[QuestionType, ...]
    """Type of each question."""
    class_base: Ints
    """Where in `class_map` an outcome's answers begin."""
    class_map: Ints
    """Place in `class_names` of each answer of each list of answers."""
    class_names: tuple[str, ...]
    class_question: Ints
    """Question of each class; the classes of one question stand together."""
    predicted: Ints
    """Position of the prediction; -1 where there is no answer."""
    top: Floats
    """Top probability; NaN where there is no answer."""
    tie: Bools

    @property
    def labelled(self) -> Bools:
        """Whether an outcome has a label."""
        return self.label >= 0

    @property
    def correct(self) -> Bools:
        """Whether the prediction is the label; false where either is missing."""
        right: Bools = (self.predicted == self.label) & (self.label >= 0)
        return right

    @property
    def lengths(self) -> Ints:
        """Probabilities that each outcome has in `flat`."""
        return self.sizes * self.answered

    @property
    def starts(self) -> Ints:
        """Where each outcome's probabilities begin in `flat`."""
        lengths = self.lengths
        return lengths.cumsum() - lengths

    @property
    def judged(self) -> Columns:
        """Only the outcomes with a label and an answer."""
        return self.take(self.labelled & self.answered)

    @property
    def label_probability(self) -> Floats:
        """Probability given to the label, one a row. Only of judged columns."""
        given: Floats = self.flat[self.starts + self.label]
        return given

    @property
    def label_class(self) -> Ints:
        """Place of the label in `class_names`, one a row. Only where every row has a label."""
        classes: Ints = self.class_map[self.class_base + self.label]
        return classes

    @property
    def predicted_class(self) -> Ints:
        """Place of the prediction in `class_names`, one a row. Only where every row has an answer."""
        classes: Ints = self.class_map[self.class_base + self.predicted]
        return classes

    @property
    def flat_row(self) -> Ints:
        """For each probability, the entry it belongs to."""
        import numpy as np

        return np.repeat(np.arange(len(self.row)), self.lengths)

    @property
    def flat_position(self) -> Ints:
        """For each probability, the position of its answer."""
        import numpy as np

        return np.arange(len(self.flat)) - np.repeat(self.starts, self.lengths)

    def take(self, mask: Bools) -> Columns:
        """Only the outcomes where `mask` is true."""
        import numpy as np

        if mask.all():
            return self
        kept: dict[str, Any] = {name: getattr(self, name)[mask] for name in _PER_ROW}
        return replace(self, flat=self.flat[np.repeat(mask, self.lengths)], **kept)

    def at(self, places: Ints) -> Columns:
        """The outcomes at these places, in their order; states are numbered anew, by their first row."""
        import numpy as np

        kept: dict[str, Any] = {name: getattr(self, name)[places] for name in _PER_ROW}
        lengths = self.lengths[places]
        within = np.arange(lengths.sum()) - np.repeat(lengths.cumsum() - lengths, lengths)
        _, first, place = np.unique(kept["state"], return_index=True, return_inverse=True)
        kept["state"] = np.argsort(np.argsort(first))[place]
        return replace(self, flat=self.flat[np.repeat(self.starts[places], lengths) + within], **kept)

    def by_question(self) -> list[Columns]:
        """The outcomes of each question, in the order of `names`; sorted once, so thousands of questions are fine."""
        import numpy as np

        order = np.argsort(self.question, kind="stable")
        lengths = self.lengths[order]
        within = np.arange(len(self.flat)) - np.repeat(lengths.cumsum() - lengths, lengths)
        flat = self.flat[np.repeat(self.starts[order], lengths) + within]
        ends = np.bincount(self.question, minlength=len(self.names)).cumsum()
        flat_ends = np.bincount(self.question, self.lengths, minlength=len(self.names)).cumsum().astype(np.int64)
        parts = zip([0, *ends[:-1]], ends, [0, *flat_ends[:-1]], flat_ends, strict=True) if len(ends) else ()
        return [
            replace(self, flat=flat[low:high], **{name: getattr(self, name)[order[first:last]] for name in _PER_ROW})
            for first, last, low, high in parts
        ]

    def with_probabilities(self, flat: Floats) -> Columns:
        """The same outcomes with other probabilities, in the order of `flat`."""
        predicted, top, tie = _tops(flat, self.sizes, self.answered)
        return replace(self, flat=flat, predicted=predicted, top=top, tie=tie)


def as_columns(outcomes: Outcomes) -> Columns:
    """The arrays of outcomes, in one pass over them; arrays come back as they are."""
    if isinstance(outcomes, Columns):
        return outcomes
    gathering = Gathering()
    gathering.take(outcomes)
    return gathering.columns()


def state_key(example: Example) -> str | tuple[str, ...]:
    """What two examples share whose state and images are the same; JSON is compared without regard to key order."""
    state = example.state
    key = state if isinstance(state, str) else "\0" + json.dumps(state, sort_keys=True, ensure_ascii=False)
    return (key, *example.images) if example.images else key


def question_key(question: Question) -> str:
    """What two questions share that ask the same and allow the same answers in the same order."""
    if isinstance(question, Choice):
        asked: list[object] = [question.instructions, [[o.name, o.description] for o in question.options]]
    elif isinstance(question, Noul):
        asked = [question.instructions, question.true, question.false]
    else:
        asked = [question.instructions, list(question.levels)]
    return json.dumps([question.type, *asked], sort_keys=True, ensure_ascii=False, default=_plain)


def state_digest(example: Example) -> bytes:
    """What tells a state and its images apart, in 16 bytes."""
    return _digest(state_key(example))


def labelled_states(outcomes: Iterable[Outcome]) -> set[StateKey]:
    """What tells the states of the labelled outcomes apart."""
    return {_short(state_key(outcome.example)) for outcome in outcomes if outcome.example.label is not None}


def known_states(outcomes: Iterable[Outcome], states: set[StateKey]) -> Bools:
    """Whether the state of each outcome is among some that `labelled_states` found."""
    import numpy as np

    return np.array([_short(state_key(outcome.example)) in states for outcome in outcomes], dtype=bool)


def _plain(value: object) -> object:
    """A read-only mapping or sequence as JSON knows it."""
    return dict(value) if isinstance(value, Mapping) else list(value) if isinstance(value, Iterable) else str(value)


def _short(key: str | tuple[str, ...]) -> StateKey:
    """A long key as 16 bytes, so that outcomes may stream by without their texts being kept."""
    return key if isinstance(key, str) and len(key) <= _SHORT else _digest(key)


def _digest(key: str | tuple[str, ...]) -> bytes:
    text = key if isinstance(key, str) else "\0\0".join(key)
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


class _Lists:
    """The lists of answers seen so far, and the classes in them."""

    def __init__(self) -> None:
        self.bases: dict[tuple[int, tuple[str, ...]], int] = {}
        self.map: list[tuple[int, int]] = []
        self.classes: list[dict[str, int]] = []

    def base(self, question: int, names: tuple[str, ...]) -> int:
        """Where the classes of this list of answers begin."""
        base = self.bases.get((question, names))
        if base is None:
            base = self.bases[question, names] = len(self.map)
            while len(self.classes) <= question:
                self.classes.append({})
            known = self.classes[question]
            self.map += [(question, known.setdefault(name, len(known))) for name in names]
        return base

    def arrays(self) -> dict[str, Any]:
        """The fields of Columns that are about classes."""
        import numpy as np

        offsets = np.cumsum([0, *(len(known) for known in self.classes)])
        return {
            "class_map": np.array([offsets[question] + place for question, place in self.map], dtype=np.int64),
            "class_names": tuple(name for known in self.classes for name in known),
            "class_question": np.repeat(np.arange(len(self.classes)), np.diff(offsets)),
        }


class Gathering:
    """The arrays of outcomes that come in several streams, one after the other."""

    def __init__(self) -> None:
        self._names: dict[str, int] = {}
        self._states: dict[StateKey, int] = {}
        self._types: list[QuestionType] = []
        self._lists = _Lists()
        self._entries, self._probabilities = array("q"), array("d")

    def take(self, outcomes: Iterable[Outcome]) -> None:
        """Some outcomes more."""
        names, states, lists = self._names, self._states, self._lists
        for outcome in outcomes:
            example, answer = outcome.example, outcome.answer
            question = names.get(example.question_name)
            if question is None:
                question = names[example.question_name] = len(self._types)
                self._types.append(example.question.type)
            answers = example.question.answers if answer is None else answer.names
            if answer is not None:
                self._probabilities.extend(answer.probabilities)
            state = states.setdefault(_short(state_key(example)), len(states))
            label = -1 if example.label is None else example.label
            base = lists.base(question, answers)
            self._entries.extend((question, state, label, len(answers), base, answer is not None))

    def columns(self) -> Columns:
        """The arrays of all that came."""
        import numpy as np

        table = np.array(self._entries, dtype=np.int64).reshape(-1, 6)
        flat = np.array(self._probabilities, dtype=np.float64)
        sizes, answered = table[:, 3].copy(), table[:, 5].astype(bool)
        predicted, top, tie = _tops(flat, sizes, answered)
        return Columns(
            question=table[:, 0].copy(),
            state=table[:, 1].copy(),
            label=table[:, 2].copy(),
            sizes=sizes,
            answered=answered,
            row=np.arange(len(table)),
            flat=flat,
            names=tuple(self._names),
            types=tuple(self._types),
            class_base=table[:, 4].copy(),
            predicted=predicted,
            top=top,
            tie=tie,
            **self._lists.arrays(),
        )


def _tops(flat: Floats, sizes: Ints, answered: Bools) -> tuple[Ints, Floats, Bools]:
    """Position of the first highest probability, that probability, and whether it is there twice."""
    import numpy as np

    predicted = np.full(len(sizes), -1, dtype=np.int64)
    top = np.full(len(sizes), np.nan)
    tie = np.zeros(len(sizes), dtype=bool)
    lengths = sizes[answered]
    if len(lengths):
        starts = lengths.cumsum() - lengths
        highest = np.maximum.reduceat(flat, starts)
        is_top = flat == np.repeat(highest, lengths)
        position = np.arange(len(flat)) - np.repeat(starts, lengths)
        predicted[answered] = np.minimum.reduceat(np.where(is_top, position, len(flat)), starts)
        top[answered] = highest
        tie[answered] = np.add.reduceat(is_top, starts, dtype=np.int64) > 1
    return predicted, top, tie


def confidence(columns: Columns) -> Floats:
    """TypeSafe's confidence of each answered outcome; NaN for a noul, which has none, and where there is no answer.

    Source: TypeSafe's system-one-adapter, as `clef.decisions.answers` has it for one answer.
    """
    import numpy as np

    found = np.full(len(columns.row), np.nan)
    kinds = np.array(columns.types, dtype=object)[columns.question] if len(columns.row) else np.array([], dtype=object)
    sizes = np.maximum(columns.sizes, 2)
    choice = columns.answered & (kinds == "choice")
    found[choice] = (columns.top[choice] - 1 / sizes[choice]) / (1 - 1 / sizes[choice])
    distance = np.abs(columns.flat_position - columns.predicted[columns.flat_row])
    spread = np.bincount(columns.flat_row, columns.flat * distance, minlength=len(columns.row))
    uniform = np.where(sizes % 2 == 0, sizes / 4, (sizes**2 - 1) / (4 * sizes))  # mean distance from the middle
    score = columns.answered & (kinds == "score")
    found[score] = 1 - spread[score] / uniform[score]
    found[(choice | score) & (columns.sizes == 1)] = 1.0
    bounded: Floats = np.clip(found, 0.0, 1.0)
    return bounded
