"""Turns outcomes into one self-contained HTML file: no script, no network, readable without clef, printable.

Charts are drawn when the file is written, by the `report` extra; without it the file says so where a chart would be.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version

from clef.decisions.examples import Outcome
from clef.decisions.questions import as_text
from clef.reports.charts import (
    Palette,
    Spec,
    confusion_chart,
    distribution_chart,
    questions_chart,
    reliability_chart,
    risk_coverage_chart,
)
from clef.statistics.calibration import Calibration, calibration
from clef.statistics.classes import confusions
from clef.statistics.columns import Columns, as_columns
from clef.statistics.risk import risk_coverage
from clef.statistics.summary import Summary, summarise
from clef.statistics.suspects import Suspecting

SHOWN = 100
"""Wrong rows, and failed rows, that the file lists; exports have all."""
WIDTH = 640
"""Width of a chart in pixels; on a page it fills its container instead."""
CLASSES = 25
"""Answers up to which a confusion matrix is drawn."""
PALETTE = Palette(
    ink="#1c1f26",
    quiet_ink="#575d69",
    line="#deded8",
    surface="#ffffff",
    act="#3346b8",
    right="#08716b",
    wrong="#b03a12",
    bar="#b4c3d9",
    bar_wins="#36598f",
)
"""The page's light colours: a report is read on paper as well."""
NO_CHARTS = "Charts need the report extra: pip install 'clef[report]'"


@dataclass(frozen=True, slots=True)
class About:
    """What a report says of the run it is about."""

    name: str
    model: str
    shape: str
    made: datetime | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """One row of a report's lists."""

    row: int
    state: str
    question: str
    label: str
    prediction: str
    probability: float | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class Held:
    """What a report needs of the outcomes: their numbers, and the few rows that it lists."""

    columns: Columns
    wrong: tuple[Outcome, ...]
    wrong_count: int
    failed: tuple[Outcome, ...]
    failed_count: int
    suspects: int


def hold(outcomes: Iterable[Outcome]) -> Held:
    """What a report needs, in one pass; of a million outcomes their numbers and two hundred rows are held."""
    passing = _Passing()
    columns = as_columns(passing.noted(outcomes))
    found = passing.suspecting.found()
    failed = int((~columns.answered).sum())
    wrong = int((columns.labelled & columns.answered & ~columns.correct).sum())
    return Held(columns, tuple(_surest(passing.wrong)), wrong, tuple(passing.failed), failed, len(found.items))


def report(outcomes: Iterable[Outcome], about: About, *, redact: bool = False) -> str:
    """The report as HTML. With `redact` it holds no text of any state."""
    return render(hold(outcomes), about, redact=redact)


def render(held: Held, about: About, *, redact: bool = False) -> str:
    """As `report`, of what was held of the outcomes."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("clef.reports"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    summary = summarise(held.columns)
    measured = calibration(held.columns) if summary.overall.count else None
    return environment.get_template("report.html").render(
        about=about,
        summary=summary,
        calibration=measured,
        charts=list(_charts(held.columns, summary, measured)),
        no_charts=NO_CHARTS,
        wrong=[_line(one, redact=redact) for one in held.wrong],
        wrong_count=held.wrong_count,
        failed=[_line(one, redact=redact) for one in held.failed],
        failed_count=held.failed_count,
        suspects=held.suspects,
        redact=redact,
        version=version("clef"),
    )


class _Passing:
    """The rows that a report lists, picked out of outcomes as they pass by, and the labels to check among all."""

    def __init__(self) -> None:
        self.suspecting = Suspecting()
        self.wrong: list[Outcome] = []
        self.failed: list[Outcome] = []

    def noted(self, outcomes: Iterable[Outcome]) -> Iterator[Outcome]:
        """The outcomes, noted."""
        for outcome in outcomes:
            self.suspecting.note(outcome)
            if outcome.failure is not None and len(self.failed) < SHOWN:
                self.failed.append(outcome)
            if outcome.correct is False:
                self.wrong.append(outcome)
                if len(self.wrong) > 4 * SHOWN:
                    self.wrong = _surest(self.wrong)
            yield outcome


def _surest(wrong: list[Outcome]) -> list[Outcome]:
    """The surest of some wrong rows; of equal ones the earlier."""
    return sorted(wrong, key=lambda one: -one.answer.top_probability if one.answer else 0.0)[:SHOWN]


def _charts(columns: Columns, summary: Summary, measured: Calibration | None) -> Iterable[tuple[str, str]]:
    """Title and SVG of each chart that these outcomes have."""
    if measured is None or measured.error is None:
        return
    specs: list[tuple[str, Spec]] = [
        ("How right it is when it says it is sure", reliability_chart(measured.error, PALETTE)),
        ("What is wrong among what is not checked", risk_coverage_chart(risk_coverage(columns), PALETTE)),
        ("Right and wrong by top probability", distribution_chart(columns, PALETTE)),
        ("By question", questions_chart(summary.questions, PALETTE)),
    ]
    specs += [
        (f"Labels and predictions: {one.question}", confusion_chart(one, PALETTE))
        for one in confusions(columns)
        if len(one.classes) <= CLASSES
    ]
    try:
        import vl_convert
    except ImportError:
        return
    for title, spec in specs:
        yield title, vl_convert.vegalite_to_svg(spec | {"width": WIDTH})


def _line(outcome: Outcome, *, redact: bool) -> Line:
    example, answer = outcome.example, outcome.answer
    return Line(
        row=example.row,
        state="" if redact else as_text(example.state)[:300],
        question=example.question_name,
        label="" if example.label is None else example.question.answers[example.label],
        prediction=answer.prediction if answer else "",
        probability=answer.top_probability if answer else None,
        reason=outcome.failure.message if outcome.failure else None,
    )
