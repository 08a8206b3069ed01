"""Turns outcomes into precision, recall and F1 of each class of a question, and its confusion matrix.

The rule for absent classes: the classes of a question are the answers that occur, as a label or as a prediction, among
its answered rows. A class that was never predicted has no precision, one that is no row's label has no recall: null
with the reason, never 0. F1 = 2·TP / (2·TP + FP + FN) exists for each of them. The macro averages are over the classes
that occur as a label; one of those that was never predicted counts with precision 0 there.

Source: D. D. Lewis, "Evaluating text categorization" (1991), for the micro and macro averages; F1 as C. J. van
Rijsbergen, "Information Retrieval" (1979).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from clef.decisions.questions import QuestionType
from clef.statistics.columns import Columns, Outcomes, as_columns
from clef.statistics.intervals import Rate
from clef.statistics.rates import rates

if TYPE_CHECKING:
    from clef.statistics.columns import Ints

NEVER_PREDICTED = "never predicted"
NEVER_LABELLED = "no answered row has this label"


@dataclass(frozen=True, slots=True)
class ClassReport:
    """How well one class is told from the others."""

    name: str
    precision: Rate
    """Of the rows predicted so, those that are labelled so."""
    recall: Rate
    """Of the rows labelled so, those that are predicted so."""

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall, 0 to 1; 0 where no row is both predicted and labelled so."""
        return 2 * self.recall.correct / (self.precision.count + self.recall.count)

    def to_dict(self) -> dict[str, object]:
        """The report as JSON; `reason` says why a precision or recall is null."""
        reason = None
        if not self.precision.count:
            reason = NEVER_PREDICTED
        elif not self.recall.count:
            reason = NEVER_LABELLED
        return {
            "class": self.name,
            "precision": self.precision.to_dict(),
            "recall": self.recall.to_dict(),
            "f1": self.f1,
            "reason": reason,
        }


@dataclass(frozen=True, slots=True)
class Confusion:
    """What one question's labels were predicted as."""

    question: str
    type: QuestionType
    count: int
    """Answered rows."""
    failed: int
    unlabelled: int
    ties: int
    classes: tuple[ClassReport, ...]
    """The classes that occur, in the order of the question's answers."""
    matrix: tuple[tuple[int, ...], ...]
    """Rows are labels, columns predictions, both in the order of `classes`; the cells add up to `count`."""

    @property
    def macro_f1(self) -> float | None:
        """Mean F1 of the classes that occur as a label; None without answered rows."""
        return self._mean([one.f1 for one in self._labelled])

    @property
    def macro_precision(self) -> float | None:
        """Mean precision of the classes that occur as a label, 0 for one never predicted."""
        return self._mean([one.precision.value or 0.0 for one in self._labelled])

    @property
    def macro_recall(self) -> float | None:
        """Mean recall of the classes that occur as a label: the balanced accuracy."""
        return self._mean([one.recall.value or 0.0 for one in self._labelled])

    @property
    def _labelled(self) -> list[ClassReport]:
        return [one for one in self.classes if one.recall.count]

    @staticmethod
    def _mean(values: list[float]) -> float | None:
        return sum(values) / len(values) if values else None

    def to_dict(self) -> dict[str, object]:
        """The confusion as JSON; averages are null where no row was answered."""
        return {
            "question": self.question,
            "type": self.type,
            "count": self.count,
            "failed": self.failed,
            "unlabelled": self.unlabelled,
            "ties": self.ties,
            "macro_f1": self.macro_f1,
            "macro_precision": self.macro_precision,
            "macro_recall": self.macro_recall,
            "reason": None if self.count else "no row has both a label and an answer",
            "classes": [one.to_dict() for one in self.classes],
            "matrix": [list(row) for row in self.matrix],
        }


def confusions(outcomes: Outcomes) -> tuple[Confusion, ...]:
    """One confusion a question, in the order of their first row; never over several, which share no classes."""
    columns = as_columns(outcomes)
    return tuple(_confusion(part, place) for place, part in enumerate(columns.by_question()))


def _confusion(columns: Columns, place: int) -> Confusion:
    import numpy as np

    judged = columns.judged
    label, predicted = judged.label_class, judged.predicted_class
    classes, both = np.unique(np.concatenate([label, predicted]), return_inverse=True)
    rows, cols = both[: len(label)], both[len(label) :]
    size = len(classes)
    matrix = np.bincount(rows * size + cols, minlength=size * size).reshape(size, size)
    recalls = rates(rows == cols, rows, judged.state, size)
    precisions = rates(rows == cols, cols, judged.state, size)
    return Confusion(
        question=columns.names[place],
        type=columns.types[place],
        count=len(label),
        failed=int((columns.labelled & ~columns.answered).sum()),
        unlabelled=int((~columns.labelled).sum()),
        ties=int(judged.tie.sum()),
        classes=_reports(columns, classes, precisions, recalls),
        matrix=tuple(tuple(line) for line in matrix.tolist()),
    )


def _reports(
    columns: Columns, classes: Ints, precisions: tuple[Rate, ...], recalls: tuple[Rate, ...]
) -> tuple[ClassReport, ...]:
    found = zip(classes, precisions, recalls, strict=True)
    return tuple(ClassReport(columns.class_names[place], precision, recall) for place, precision, recall in found)
