"""Turns outcomes into the rows whose label is worth a second look: confident errors, and inputs labelled two ways.

A suspect is not a wrong label: the model may be surely wrong. So the wording is "check the label", and nothing is
changed or left out of any number. Source of the idea to rank errors by the probability given to the label: C. G.
Northcutt, L. Jiang and I. L. Chuang, "Confident learning", JAIR 70 (2021).
"""

from __future__ import annotations

import json
import math
from array import array
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Literal

from clef.decisions.examples import Example, Outcome
from clef.decisions.questions import Question
from clef.statistics.columns import question_key, state_key

CONFIDENT = 0.9
"""Top probability from which on an error is a confident one."""
_WIDTH = 7
"""Numbers held of a row."""
Kind = Literal["confident error", "two labels"]


@dataclass(frozen=True, slots=True)
class Suspect:
    """A row whose label is worth a second look."""

    position: int
    """Place among the outcomes."""
    row: int
    """Spreadsheet row."""
    question: str
    label: str
    prediction: str | None
    """None where the row has no answer."""
    top_probability: float | None
    label_probability: float | None
    kinds: tuple[Kind, ...]
    others: tuple[int, ...]
    """Spreadsheet rows with the same input and another label."""

    @property
    def message(self) -> str:
        """What to do, and why."""
        reasons = []
        if "two labels" in self.kinds:
            rows = ", ".join(map(str, self.others[:5])) + (", …" if len(self.others) > 5 else "")
            reasons.append(f"the same input has another label in row {rows}")
        if "confident error" in self.kinds and self.top_probability is not None:
            reasons.append(f'the model says "{self.prediction}" with {self.top_probability:.3f}')
        return f"check the label: {'; '.join(reasons)}"

    def to_dict(self) -> dict[str, object]:
        """The suspect as JSON."""
        return {
            "position": self.position,
            "row": self.row,
            "question": self.question,
            "label": self.label,
            "prediction": self.prediction,
            "top_probability": self.top_probability,
            "label_probability": self.label_probability,
            "kinds": list(self.kinds),
            "others": list(self.others),
            "message": self.message,
        }


@dataclass(frozen=True, slots=True)
class Suspects:
    """Every suspect, most suspicious first."""

    items: tuple[Suspect, ...]
    labelled: int
    """Rows with a label."""
    unlabelled: int
    conflicting: int
    """Rows whose input has another label elsewhere."""
    ceiling: float | None
    """The accuracy that no model can exceed on these labels; 1 where none contradict each other."""

    def to_dict(self) -> dict[str, object]:
        """The suspects as JSON."""
        return {
            "labelled": self.labelled,
            "unlabelled": self.unlabelled,
            "conflicting": self.conflicting,
            "ceiling": self.ceiling,
            "reason": None if self.labelled else "no row has a label",
            "suspects": [item.to_dict() for item in self.items],
        }


def suspects(outcomes: Iterable[Outcome], *, confident: float = CONFIDENT) -> Suspects:
    """Rows to check: errors the model makes with at least `confident`, by falling odds against the label.

    A row that is both comes before a row that is one; rows with two labels come after the confident errors that are
    surer than them. Ties are never confident. The outcomes are passed over once; of each a few numbers are held.
    """
    seen = Suspecting(confident)
    for outcome in outcomes:
        seen.note(outcome)
    return seen.found()


class Suspecting:
    """The labelled rows that passed, as numbers; texts are kept once each. For whoever passes over outcomes himself."""

    def __init__(self, confident: float = CONFIDENT) -> None:
        self._confident = confident
        self.passed = 0
        self._texts: list[str] = []
        self._places: dict[str, int] = {}
        self._others: dict[tuple[int, int], tuple[int, ...]] = {}
        self._inputs: dict[bytes, int] = {}
        self._questions: dict[int, tuple[Question, str]] = {}
        self._entries = array("q")
        self._chances = array("d")

    def __len__(self) -> int:
        return len(self._chances) // 2

    def found(self) -> Suspects:
        """The suspects among the outcomes that were noted."""
        labels = self._labels_of_inputs()
        items = []
        for row in range(len(self)):
            kinds, others = self._standing(row, labels)
            if kinds:
                items.append(self._suspect(row, kinds, others))
        labelled = len(self)
        best = labelled - self._count_of_two(labels)
        return Suspects(
            tuple(sorted(items, key=_rank)),
            labelled,
            self.passed - labelled,
            sum(bool(item.others) for item in items),
            best / labelled if labelled else None,
        )

    def note(self, outcome: Outcome) -> None:
        """Keep what matters of an outcome."""
        position, self.passed = self.passed, self.passed + 1
        example, answer, label = outcome.example, outcome.answer, outcome.example.label
        if label is None:
            return
        sure = (
            answer is not None and answer.top != label and not answer.tie and answer.top_probability >= self._confident
        )
        self._entries.extend(
            (
                position,
                example.row,
                self._inputs.setdefault(self._key(example), len(self._inputs)),
                self._text(_label_name(outcome)),
                self._text(example.question_name),
                -1 if answer is None else self._text(answer.prediction),
                sure,
            )
        )
        nothing = (math.nan, math.nan)
        self._chances.extend(nothing if answer is None else (answer.top_probability, answer.probabilities[label]))

    def _labels_of_inputs(self) -> dict[int, list[int]]:
        """The rows of each input that has two labels."""
        first: dict[int, int] = {}
        mixed: set[int] = set()
        for row in range(len(self)):
            of, label = self._entry(row)[2:4]
            if first.setdefault(of, label) != label:
                mixed.add(of)
        found: dict[int, list[int]] = {of: [] for of in mixed}
        for row in range(len(self)):
            of = self._entry(row)[2]
            if of in found:
                found[of].append(row)
        return found

    def _standing(self, row: int, labels: dict[int, list[int]]) -> tuple[tuple[Kind, ...], tuple[int, ...]]:
        """What speaks against the label of a row, and the spreadsheet rows with another one."""
        entry = self._entry(row)
        of, label = entry[2:4]
        others = self._others.get((of, label))
        if others is None:
            rows = (self._entry(other) for other in labels.get(of, ()))
            others = tuple(other[1] for other in rows if other[3] != label)
            if of in labels:
                self._others[of, label] = others
        kinds: tuple[Kind, ...] = ("confident error",) if entry[6] else ()
        return (*kinds, "two labels") if others else kinds, others

    def _suspect(self, row: int, kinds: tuple[Kind, ...], others: tuple[int, ...]) -> Suspect:
        """A row as a suspect."""
        texts = self._texts
        position, number, _, label, question, prediction, _ = self._entry(row)
        top, given = self._chances[2 * row : 2 * row + 2]
        answered = prediction >= 0
        return Suspect(
            position=position,
            row=number,
            question=texts[question],
            label=texts[label],
            prediction=texts[prediction] if answered else None,
            top_probability=top if answered else None,
            label_probability=given if answered else None,
            kinds=kinds,
            others=others,
        )

    def _count_of_two(self, labels: dict[int, list[int]]) -> int:
        """Rows that have not the most frequent label of their input."""
        groups = (Counter(self._entry(row)[3] for row in rows) for rows in labels.values())
        return sum(group.total() - max(group.values()) for group in groups)

    def _entry(self, row: int) -> array[int]:
        return self._entries[_WIDTH * row : _WIDTH * (row + 1)]

    def _text(self, text: str) -> int:
        place = self._places.setdefault(text, len(self._texts))
        if place == len(self._texts):
            self._texts.append(text)
        return place

    def _key(self, example: Example) -> bytes:
        """What tells an input apart: state, images and question, in 16 bytes."""
        known = self._questions.get(id(example.question))
        if known is None:  # the question is kept, so that its id is not used again
            known = self._questions[id(example.question)] = (example.question, question_key(example.question))
        content = json.dumps([state_key(example), known[1]])
        return blake2b(content.encode(), digest_size=16).digest()


def _label_name(outcome: Outcome) -> str:
    label = outcome.example.label
    assert label is not None
    return (outcome.answer.names if outcome.answer else outcome.example.question.answers)[label]


def _rank(item: Suspect) -> tuple[bool, float, int]:
    """Both kinds first; then the smaller the label's probability against the top one, the earlier."""
    label, top = item.label_probability, item.top_probability
    doubt = 0.5 if label is None or top is None else label / (label + top) if label + top > 0 else 0.5
    return len(item.kinds) < 2, doubt, item.position
