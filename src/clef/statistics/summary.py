"""Turns outcomes into the numbers of a run: accuracy overall, by band of top probability, and by question.

A row is *answered* if a label and an answer are there, *failed* if a label is there and no answer, *unlabelled*
if there is no label. Failures are never counted as wrong in `overall`; `with_failures` counts them so, and both
are shown. Bands are on the top probability, since `confidence` is rescaled by the number of options.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from clef.decisions.examples import Outcome
from clef.decisions.questions import Question, QuestionType
from clef.statistics.intervals import Rate

BAND_EDGES = (0.0, 0.5, 0.7, 0.8, 0.9, 0.95, 1.0)
"""Bands are [low, high); the last one includes 1."""


@dataclass(frozen=True, slots=True)
class Band:
    """The answered rows whose top probability lies in a range."""

    low: float
    high: float
    rate: Rate

    def to_dict(self) -> dict[str, object]:
        """`from` and `to` with the counts, share and interval."""
        return {"from": self.low, "to": self.high} | self.rate.to_dict()


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

    def to_dict(self) -> dict[str, object]:
        """The summary as JSON, its rate flat beside it."""
        own = {
            "question": self.name,
            "type": self.type,
            "failed": self.failed,
            "unlabelled": self.unlabelled,
            "majority": self.majority,
            "majority_accuracy": self.majority_share,
            "chance_accuracy": self.chance,
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

    @property
    def with_failures(self) -> Rate:
        """Accuracy with every failed row counted as wrong."""
        return Rate(self.overall.correct, self.overall.count + self.failed)

    @property
    def mean_of_questions(self) -> float | None:
        """Mean of the questions' accuracies, each counting the same; None where no question was answered."""
        values = [question.rate.value for question in self.questions if question.rate.value is not None]
        return sum(values) / len(values) if values else None

    def to_dict(self) -> dict[str, object]:
        """The summary as JSON; what is undefined is null, never NaN."""
        return {
            "rows": self.rows,
            "answered": self.overall.count,
            "failed": self.failed + self.failed_unlabelled,
            "unlabelled": self.unlabelled,
            "ties": self.ties,
            **self.overall.to_dict(),
            "accuracy_with_failures": self.with_failures.value,
            "mean_of_questions": self.mean_of_questions,
            "bands": [band.to_dict() for band in self.bands],
            "questions": [question.to_dict() for question in self.questions],
        }


@dataclass(slots=True)
class _Tally:
    """Counts of one question while the outcomes pass by."""

    question: Question
    correct: int = 0
    answered: int = 0
    failed: int = 0
    unlabelled: int = 0
    labels: Counter[str] = field(default_factory=Counter)
    chance: float = 0.0

    def add(self, outcome: Outcome) -> None:
        if outcome.example.label is None:
            self.unlabelled += 1
        elif outcome.answer is None:
            self.failed += 1
        else:
            names = outcome.answer.names
            self.answered += 1
            self.correct += outcome.answer.top == outcome.example.label
            self.labels[names[outcome.example.label]] += 1
            self.chance += 1 / len(names)

    def summary(self, name: str) -> QuestionSummary:
        most = self.labels.most_common(1)
        return QuestionSummary(
            name=name,
            type=self.question.type,
            rate=Rate(self.correct, self.answered),
            failed=self.failed,
            unlabelled=self.unlabelled,
            majority=most[0][0] if most else None,
            majority_share=most[0][1] / self.answered if most else None,
            chance=self.chance / self.answered if self.answered else None,
        )


def summarise(outcomes: Iterable[Outcome]) -> Summary:
    """The summary of outcomes, in one pass; questions come in the order of their first row."""
    tallies: dict[str, _Tally] = {}
    bands = [[0, 0] for _ in BAND_EDGES[1:]]
    rows = ties = failed_unlabelled = 0
    for outcome in outcomes:
        rows += 1
        example, answer = outcome.example, outcome.answer
        tally = tallies.get(example.question_name)
        if tally is None:
            tally = tallies[example.question_name] = _Tally(example.question)
        tally.add(outcome)
        if answer is None:
            failed_unlabelled += example.label is None
            continue
        ties += answer.tie
        if example.label is not None:
            band = bands[band_of(answer.top_probability)]
            band[0] += answer.top == example.label
            band[1] += 1
    questions = tuple(tally.summary(name) for name, tally in tallies.items())
    return Summary(
        rows=rows,
        failed=sum(question.failed for question in questions),
        failed_unlabelled=failed_unlabelled,
        unlabelled=sum(question.unlabelled for question in questions),
        ties=ties,
        overall=Rate(sum(q.rate.correct for q in questions), sum(q.rate.count for q in questions)),
        bands=_bands(bands),
        questions=questions,
    )


def band_of(probability: float, edges: Sequence[float] = BAND_EDGES) -> int:
    """Index of the band that holds a probability; 1.0 is in the last one."""
    return max(0, min(len(edges) - 2, sum(probability >= edge for edge in edges) - 1))


def _bands(counts: Sequence[Sequence[int]]) -> tuple[Band, ...]:
    ranges = zip(BAND_EDGES, BAND_EDGES[1:], counts, strict=False)
    return tuple(Band(low, high, Rate(correct, count)) for low, high, (correct, count) in ranges)
