"""Turns outcomes into one self-contained HTML file: no script, no network, readable without clef, printable.

Charts are drawn when the file is written, by the `report` extra; without it the file says so where a chart would be.
"""

from collections.abc import Iterable, Sequence
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
from clef.statistics.suspects import suspects

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


def report(outcomes: Sequence[Outcome], about: About, *, redact: bool = False) -> str:
    """The report as HTML. With `redact` it holds no text of any state."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("clef.reports"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    columns = as_columns(outcomes)
    summary, found = summarise(columns), suspects(outcomes)
    measured = calibration(columns) if summary.overall.count else None
    wrong = sorted((one for one in outcomes if one.correct is False), key=lambda one: -one.answer.top_probability)  # type: ignore[union-attr]
    failed = [one for one in outcomes if one.failure is not None]
    return environment.get_template("report.html").render(
        about=about,
        summary=summary,
        calibration=measured,
        charts=list(_charts(columns, summary, measured)),
        no_charts=NO_CHARTS,
        wrong=[_line(one, redact=redact) for one in wrong[:SHOWN]],
        wrong_count=len(wrong),
        failed=[_line(one, redact=redact) for one in failed[:SHOWN]],
        failed_count=len(failed),
        suspects=len(found.items),
        redact=redact,
        version=version("clef"),
    )


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
