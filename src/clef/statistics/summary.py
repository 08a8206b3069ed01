"""Turns outcomes into the numbers of a run: accuracy overall, by band of top probability, by question and by class.

A row is *answered* if a label and an answer are there, *failed* if a label is there and no answer, *unlabelled*
if there is no label. Failures are never counted as wrong in `overall`; `with_failures` counts them so, and both
are shown. Bands are on the top probability unless asked otherwise, since `confidence` is rescaled by the number of
options. Where rows share a state, intervals are those of whole states.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from clef.decisions.questions import QuestionType
from clef.statistics.baselines import above_chance, above_majority, chances, majorities, majority_right, mean_of_rates
from clef.statistics.columns import Columns, Outcomes, as_columns, confidence
from clef.statistics.intervals import Estimate, Rate, undefined
from clef.statistics.rates import rate, rates

if TYPE_CHECKING:
    from clef.statistics.columns import Ints

BAND_EDGES = (0.0, 0.5, 0.7, 0.8, 0.9, 0.95, 1.0)
"""Bands are [low, high); the last one includes 1."""
BandMeasure = Literal["top_probability", "confidence"]
_NOTHING = undefined("no row has both a label and an answer")


@dataclass(frozen=True, slots=True)
class Band:
    """The answered rows whose top probability lies in a range."""

    low: float
    high: float
    rate: Rate
    ties: int = 0
    """Those of them in which two answers share the top probability."""

    def to_dict(self) -> dict[str, object]:
        """`from` and `to` with the counts, share and interval."""
        return {"from": self.low, "to": self.high} | self.rate.to_dict() | {"ties": self.ties}


@dataclass(frozen=True, slots=True)
class ClassSummary:
    """The rows of one question that have the same label."""

    name: str
    rate: Rate
    failed: int
    ties: int

    def to_dict(self) -> dict[str, object]:
        """The label with its counts, share and interval."""
        return {"label": self.name} | self.rate.to_dict() | {"failed": self.failed, "ties": self.ties}


@dataclass(frozen=True, slots=True)
class QuestionSummary:
    """One question of the table, over all its rows."""

    name: str
    type: QuestionType
    rate: Rate
    failed: int
    unlabelled: int
    majority: str | None
    """The most frequent label."""
    majority_share: float | None
    """Accuracy of always answering the most frequent label, on the answered rows."""
    chance: float | None
    """Accuracy of guessing evenly: the mean of 1 / (number of answers) over the answered rows."""
    ties: int = 0
    above_majority: Estimate = _NOTHING
    """Accuracy less that of the majority, on the same rows."""
    above_chance: Estimate = _NOTHING
    """Accuracy less that of guessing evenly."""
    classes: tuple[ClassSummary, ...] = ()
    """One a label that occurs, in the order of the question's answers."""

    @property
    def with_failures(self) -> Rate:
        """Accuracy with every failed row counted as wrong."""
        return with_failures(self.rate, self.failed)

    def to_dict(self) -> dict[str, object]:
        """The summary as JSON, its rate flat beside it."""
        own = {
            "question": self.name,
            "type": self.type,
            "failed": self.failed,
            "unlabelled": self.unlabelled,
            "ties": self.ties,
            "majority": self.majority,
            "majority_accuracy": self.majority_share,
            "chance_accuracy": self.chance,
            "above_majority": self.above_majority.to_dict(),
            "above_chance": self.above_chance.to_dict(),
            "accuracy_with_failures": self.with_failures.value,
            "classes": [one.to_dict() for one in self.classes],
        }
        return own | self.rate.to_dict()


@dataclass(frozen=True, slots=True)
class Summary:
    """What a run measured."""

    rows: int
    """Rows with an outcome, whatever it is."""
    failed: int
    """Labelled rows without an answer."""
    failed_unlabelled: int
    """Unlabelled rows without an answer."""
    unlabelled: int
    """Rows without a label, answered or not; they are in no accuracy."""
    ties: int
    """Answered rows, labelled or not, in which two answers share the top probability."""
    overall: Rate
    bands: tuple[Band, ...]
    questions: tuple[QuestionSummary, ...]
    states: int = 0
    """Different states among the answered rows."""
    banded_on: BandMeasure = "top_probability"
    unbanded: int = 0
    """Answered rows in no band, since their type has no confidence."""
    question_mean: Estimate = _NOTHING
    """Mean of the questions' accuracies with its interval."""
    above_majority: Estimate = _NOTHING
    """Accuracy less that of always giving each question's most frequent label."""
    above_chance: Estimate = _NOTHING
    """Accuracy less that of guessing evenly."""

    @property
    def with_failures(self) -> Rate:
        """Accuracy with every failed row counted as wrong."""
        return with_failures(self.overall, self.failed)

    @property
    def mean_of_questions(self) -> float | None:
        """Mean of the questions' accuracies, each counting the same; None where no question was answered."""
        return self.question_mean.value

    def to_dict(self) -> dict[str, object]:
        """The summary as JSON; what is undefined is null, never NaN."""
        return {
            "rows": self.rows,
            "answered": self.overall.count,
            "failed": self.failed + self.failed_unlabelled,
            "unlabelled": self.unlabelled,
            "ties": self.ties,
            "states": self.states,
            **self.overall.to_dict(),
            "accuracy_with_failures": self.with_failures.value,
            "with_failures": self.with_failures.to_dict(),
            "mean_of_questions": self.mean_of_questions,
            "question_mean": self.question_mean.to_dict(),
            "above_majority": self.above_majority.to_dict(),
            "above_chance": self.above_chance.to_dict(),
            "banded_on": self.banded_on,
            "unbanded": self.unbanded,
            "bands": [band.to_dict() for band in self.bands],
            "questions": [question.to_dict() for question in self.questions],
        }


def summarise(outcomes: Outcomes, *, bands_on: BandMeasure = "top_probability") -> Summary:
    """The summary of outcomes; questions come in the order of their first row."""
    columns = as_columns(outcomes)
    judged = columns.judged
    questions = _questions(columns, judged)
    overall = rate(judged.correct, judged.state)
    bands, unbanded = _bands(judged, bands_on)
    gained, lost = _gains(judged)
    return Summary(
        rows=len(columns.row),
        failed=sum(question.failed for question in questions),
        failed_unlabelled=int((~columns.labelled & ~columns.answered).sum()),
        unlabelled=sum(question.unlabelled for question in questions),
        ties=int(columns.tie.sum()),
        overall=overall,
        bands=bands,
        questions=questions,
        states=len(set(judged.state.tolist())),
        banded_on=bands_on,
        unbanded=unbanded,
        question_mean=mean_of_rates(judged, [question.rate for question in questions]),
        above_majority=above_majority(overall, int(gained.sum()), int(lost.sum())),
        above_chance=above_chance(overall, float((1 / judged.sizes).mean()) if overall.count else 0.0),
    )


def band_of(probability: float, edges: Sequence[float] = BAND_EDGES) -> int:
    """Index of the band that holds a probability; 1.0 is in the last one."""
    return max(0, min(len(edges) - 2, sum(probability >= edge for edge in edges) - 1))


def with_failures(answered: Rate, failed: int) -> Rate:
    """The rate with every failed row counted as wrong."""
    effective = answered.effective
    if effective is not None and answered.count:
        effective *= (answered.count + failed) / answered.count
    return Rate(answered.correct, answered.count + failed, effective)


def _questions(columns: Columns, judged: Columns) -> tuple[QuestionSummary, ...]:
    import numpy as np

    size = len(columns.names)
    per_question = rates(judged.correct, judged.question, judged.state, size)
    failed = np.bincount(columns.question[columns.labelled & ~columns.answered], minlength=size)
    unlabelled = np.bincount(columns.question[~columns.labelled], minlength=size)
    ties = np.bincount(columns.question[columns.tie], minlength=size)
    majority, share = majorities(judged)
    chance = chances(judged)
    gained, lost = _gains(judged)
    classes = _classes(columns, judged)
    return tuple(
        QuestionSummary(
            name=name,
            type=columns.types[place],
            rate=per_question[place],
            failed=int(failed[place]),
            unlabelled=int(unlabelled[place]),
            majority=columns.class_names[majority[place]] if per_question[place].count else None,
            majority_share=float(share[place]) if per_question[place].count else None,
            chance=float(chance[place]) if per_question[place].count else None,
            ties=int(ties[place]),
            above_majority=above_majority(per_question[place], int(gained[place]), int(lost[place])),
            above_chance=above_chance(per_question[place], float(chance[place])),
            classes=classes[place],
        )
        for place, name in enumerate(columns.names)
    )


def _gains(judged: Columns) -> tuple[Ints, Ints]:
    """For each question, rows that only the model has right, and rows that only the majority rule has right."""
    import numpy as np

    model, rule = judged.correct, majority_right(judged)
    gained = np.bincount(judged.question[model & ~rule], minlength=len(judged.names))
    lost = np.bincount(judged.question[rule & ~model], minlength=len(judged.names))
    return gained, lost


def _classes(columns: Columns, judged: Columns) -> list[tuple[ClassSummary, ...]]:
    """The classes of each question that occur as a label."""
    import numpy as np

    size = len(columns.class_names)
    found: list[list[ClassSummary]] = [[] for _ in columns.names]
    labelled = columns.take(columns.labelled)
    failed = np.bincount(labelled.label_class[~labelled.answered], minlength=size)
    ties = np.bincount(judged.label_class[judged.tie], minlength=size)
    per_class = rates(judged.correct, judged.label_class, judged.state, size)
    for place, one in enumerate(per_class):
        if one.count or failed[place]:
            summary = ClassSummary(columns.class_names[place], one, int(failed[place]), int(ties[place]))
            found[columns.class_question[place]].append(summary)
    return [tuple(classes) for classes in found]


def _bands(judged: Columns, measure: BandMeasure) -> tuple[tuple[Band, ...], int]:
    import numpy as np

    values = judged.top if measure == "top_probability" else confidence(judged)
    has_value = ~np.isnan(values)
    place: Ints = np.searchsorted(BAND_EDGES, values[has_value], side="right") - 1
    place = np.clip(place, 0, len(BAND_EDGES) - 2)
    per_band = rates(judged.correct[has_value], place, judged.state[has_value], len(BAND_EDGES) - 1)
    ties = np.bincount(place[judged.tie[has_value]], minlength=len(per_band))
    bands = tuple(Band(BAND_EDGES[at], BAND_EDGES[at + 1], found, int(ties[at])) for at, found in enumerate(per_band))
    return bands, int((~has_value).sum())
