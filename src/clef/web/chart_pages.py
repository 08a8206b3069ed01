"""Turns the outcomes of a run into the charts of its page, in the colours of the page, and into their numbers."""

import re
from dataclasses import fields
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse
from starlette.responses import Response

from clef.errors import ClefError
from clef.runs.narrowing import Labels
from clef.runs.store import Store
from clef.web.bundles import STATIC
from clef.web.chart_marks import (
    Chart,
    Spec,
    numbers,
    of_confusion,
    of_distances,
    of_distribution,
    of_mass,
    of_risk,
    of_width,
    pressable,
)
from clef.web.errors import Json
from clef.web.measured import Measured
from clef.web.render import fragment, problems
from clef.web.run_filter import Filter

if TYPE_CHECKING:
    from clef.statistics.columns import Columns

CLASSES = 25
"""Answers up to which a confusion is drawn."""
MOST_QUESTIONS = 20
"""Questions whose confusion is drawn at most; the same of scores and their distances."""
Theme = Literal["light", "dark"]
Charts = dict[Chart, list[dict[str, Any]]]
"""The drawings of each chart, one or none, or one a question."""


def chart_pages() -> APIRouter:
    """The charts of runs, as a router. They are fetched after the page, which never waits for them."""
    router = APIRouter(include_in_schema=False)

    @router.get("/runs/{run_id}/charts")
    async def charts(request: Request, run_id: str, theme: Theme = "light", labels: Labels = "own") -> Json:
        """Every chart of a run as Vega-Lite; each mark has the filter of its rows."""
        return Json(_coloured(await _kept(request, run_id, labels), tokens(theme)))

    @router.get("/runs/{run_id}/numbers/{chart}", response_class=HTMLResponse)
    async def table(request: Request, run_id: str, chart: Chart, at: int = 0, labels: Labels = "own") -> Response:
        """What a chart shows, as a table of links to the rows, as a fragment; `at` is the place of its question."""
        try:
            drawings = (await _kept(request, run_id, labels)).get(chart, [])
        except ClefError as error:
            return problems(request, error)
        drawing = drawings[at] if 0 <= at < len(drawings) else None
        found = None if drawing is None else numbers(chart, drawing["spec"])
        return fragment(
            request, "chart_numbers.html", found=found, path=f"/runs/{run_id}", chosen=Filter(labels=labels)
        )

    return router


async def _kept(request: Request, run_id: str, labels: Labels) -> Charts:
    store: Store = request.app.state.store
    measured: Measured = request.app.state.measured
    name = "page charts to press, few legends"
    found: Charts = await measured.of_columns(await store.get(run_id), labels, name, _charts)
    return found


@lru_cache(maxsize=2)
def tokens(theme: Theme) -> dict[str, str]:
    """The colours of the style sheet in a theme, by their names."""
    text = (STATIC / "styles" / "tokens.css").read_text("utf-8")
    pairs = re.findall(r"--([\w-]+): light-dark\((#\w+), (#\w+)\);", text)
    return {name: light if theme == "light" else dark for name, light, dark in pairs}


def _coloured(value: Any, colours: dict[str, str]) -> Any:
    """The charts with colours where `_charts` put their names; data is left alone, it may hold any text."""
    if isinstance(value, dict):
        return {name: part if name == "data" else _coloured(part, colours) for name, part in value.items()}
    if isinstance(value, list):
        return [_coloured(part, colours) for part in value]
    return colours.get(value.removeprefix("--"), value) if isinstance(value, str) and value[:2] == "--" else value


def _charts(columns: "Columns") -> Charts:
    """Colours are names of tokens, so that the numbers are counted once for both themes."""
    from clef.reports.charts import Palette, distribution_chart, reliability_chart, risk_coverage_chart
    from clef.statistics.calibration import calibration
    from clef.statistics.risk import risk_coverage

    palette = Palette(*(f"--{field.name.replace('_', '-')}" for field in fields(Palette)))
    measured = calibration(columns)
    if measured.error is None or measured.error_equal_mass is None:
        return {}
    drawn: dict[Chart, Spec] = {
        "reliability": pressable(reliability_chart(measured.error, palette), of_width),
        "mass": pressable(reliability_chart(measured.error_equal_mass, palette), of_mass),
        "risk": pressable(risk_coverage_chart(risk_coverage(columns), palette), of_risk),
        "distribution": pressable(distribution_chart(columns, palette), of_distribution),
    }
    found: Charts = {name: [{"question": None, "spec": spec}] for name, spec in drawn.items()}
    return found | _by_question(columns, palette)


def _by_question(columns: "Columns", palette: Any) -> Charts:
    from clef.reports.charts import confusion_chart, score_error_chart
    from clef.statistics.classes import confusions

    def of(question: str, spec: Spec) -> dict[str, Any]:
        return {"question": question, "spec": spec}

    counted = [one for one in confusions(columns) if one.count]
    tables = [one for one in counted if 2 <= len(one.classes) <= CLASSES][:MOST_QUESTIONS]
    scores = [one.question for one in counted if one.type == "score"][:MOST_QUESTIONS]
    return {
        "confusion": [
            of(one.question, pressable(confusion_chart(one, palette), of_confusion(one.question))) for one in tables
        ],
        "distance": [
            of(name, pressable(score_error_chart(columns, name, palette), of_distances(name))) for name in scores
        ],
    }
