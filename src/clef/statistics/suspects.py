"""Turns outcomes into the rows whose label is worth a second look: confident errors, and inputs labelled two ways.

A suspect is not a wrong label: the model may be surely wrong. So the wording is "check the label", and nothing is
changed or left out of any number. Source of the idea to rank errors by the probability given to the label: C. G.
Northcutt, L. Jiang and I. L. Chuang, "Confident learning", JAIR 70 (2021).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from clef.decisions.examples import Outcome
from clef.statistics.columns import ContentKey, content_keys

CONFIDENT = 0.9
"""Top probability from which on an error is a confident one."""
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


def suspects(outcomes: Sequence[Outcome], *, confident: float = CONFIDENT) -> Suspects:
    """Rows to check: errors the model makes with at least `confident`, by falling odds against the label.

    A row that is both comes before a row that is one; rows with two labels come after the confident errors that are
    surer than them. Ties are never confident.
    """
    keys = content_keys(outcomes)
    labels = _labels_of_inputs(outcomes, keys)
    items = []
    for position, outcome in enumerate(outcomes):
        answer, label = outcome.answer, outcome.example.label
        if label is None:
            continue
        rows = labels[keys[position]]
        name = _label_name(outcome)
        others = tuple(row for row, other in rows if other != name)
        sure = answer is not None and answer.top != label and not answer.tie and answer.top_probability >= confident
        kinds: tuple[Kind, ...] = (*(("confident error",) if sure else ()), *(("two labels",) if others else ()))
        if kinds:
            items.append(_suspect(position, outcome, kinds, others))
    labelled = sum(len(rows) for rows in labels.values())
    best = sum(max(Counter(name for _, name in rows).values()) for rows in labels.values())
    return Suspects(
        tuple(sorted(items, key=_rank)),
        labelled,
        len(outcomes) - labelled,
        sum(bool(item.others) for item in items),
        best / labelled if labelled else None,
    )


def _suspect(position: int, outcome: Outcome, kinds: tuple[Kind, ...], others: tuple[int, ...]) -> Suspect:
    answer, example = outcome.answer, outcome.example
    assert example.label is not None
    return Suspect(
        position=position,
        row=example.row,
        question=example.question_name,
        label=_label_name(outcome),
        prediction=answer.prediction if answer else None,
        top_probability=answer.top_probability if answer else None,
        label_probability=answer.probabilities[example.label] if answer else None,
        kinds=kinds,
        others=others,
    )


def _label_name(outcome: Outcome) -> str:
    label = outcome.example.label
    assert label is not None
    return (outcome.answer.names if outcome.answer else outcome.example.question.answers)[label]


def _labels_of_inputs(
    outcomes: Sequence[Outcome], keys: Sequence[ContentKey]
) -> dict[ContentKey, list[tuple[int, str]]]:
    """Spreadsheet row and label of each labelled row, by input."""
    found: dict[ContentKey, list[tuple[int, str]]] = defaultdict(list)
    for key, outcome in zip(keys, outcomes, strict=True):
        if outcome.example.label is not None:
            found[key].append((outcome.example.row, _label_name(outcome)))
    return found


def _rank(item: Suspect) -> tuple[bool, float, int]:
    """Both kinds first; then the smaller the label's probability against the top one, the earlier."""
    label, top = item.label_probability, item.top_probability
    doubt = 0.5 if label is None or top is None else label / (label + top) if label + top > 0 else 0.5
    return len(item.kinds) < 2, doubt, item.position
