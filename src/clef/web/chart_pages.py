"""Turns the outcomes of a run into the charts of its page, in the colours of the page."""

import re
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Literal

from fastapi import APIRouter, Request

from clef.runs.store import Store
from clef.web.assets import STATIC
from clef.web.errors import Json
from clef.web.measured import Measured
from clef.web.run_filter import Labels

if TYPE_CHECKING:
    from clef.statistics.columns import Columns

CLASSES = 25
"""Answers up to which a confusion is drawn."""
CONFUSIONS = 20
"""Questions whose confusion is drawn at most."""
Theme = Literal["light", "dark"]
Charts = dict[str, Any]


def chart_pages() -> APIRouter:
    """The charts of runs, as a router. They are fetched after the page, which never waits for them."""
    router = APIRouter(include_in_schema=False)

    @router.get("/runs/{run_id}/charts")
    async def charts(request: Request, run_id: str, theme: Theme = "light", labels: Labels = "own") -> Json:
        """Reliability, risk and coverage, and the confusion of each question, as Vega-Lite."""
        store: Store = request.app.state.store
        measured: Measured = request.app.state.measured
        made = partial(_charts, theme=theme)
        return Json(await measured.of_columns(await store.get(run_id), labels, f"page charts {theme}", made))

    return router


@lru_cache(maxsize=2)
def tokens(theme: Theme) -> dict[str, str]:
    """The colours of the style sheet in a theme, by their names."""
    text = (STATIC / "styles" / "tokens.css").read_text("utf-8")
    pairs = re.findall(r"--([\w-]+): light-dark\((#\w+), (#\w+)\);", text)
    return {name: light if theme == "light" else dark for name, light, dark in pairs}


def _charts(columns: "Columns", theme: Theme) -> Charts:
    from clef.reports.charts import Palette, confusion_chart, reliability_chart, risk_coverage_chart
    from clef.statistics.calibration import calibration
    from clef.statistics.classes import confusions
    from clef.statistics.risk import risk_coverage

    palette = Palette.of(tokens(theme))
    error = calibration(columns).error
    if error is None:
        return {"reliability": None, "risk": None, "confusions": []}
    drawn = [one for one in confusions(columns) if one.count and 2 <= len(one.classes) <= CLASSES]
    return {
        "reliability": reliability_chart(error, palette),
        "risk": risk_coverage_chart(risk_coverage(columns), palette),
        "confusions": [{"question": one.question, "spec": confusion_chart(one, palette)} for one in drawn[:CONFUSIONS]],
    }
