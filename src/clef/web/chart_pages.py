"""Turns the outcomes of a run into the charts of its page, in the colours of the page."""

import asyncio
import re
from collections import OrderedDict
from functools import lru_cache
from typing import Any, Literal

from fastapi import APIRouter, Request

from clef.runs.store import Store
from clef.web.assets import STATIC
from clef.web.errors import Json

CLASSES = 25
"""Answers up to which a confusion is drawn."""
CONFUSIONS = 20
"""Questions whose confusion is drawn at most."""
KEPT = 8
"""Runs whose charts are kept in memory."""
Theme = Literal["light", "dark"]
Charts = dict[str, Any]


def chart_pages() -> APIRouter:
    """The charts of runs, as a router. They are fetched after the page, which never waits for them."""
    router = APIRouter(include_in_schema=False)
    kept: OrderedDict[tuple[str, int, int, Theme], Charts] = OrderedDict()

    @router.get("/runs/{run_id}/charts")
    async def charts(request: Request, run_id: str, theme: Theme = "light") -> Json:
        """Reliability, risk and coverage, and the confusion of each question, as Vega-Lite."""
        store: Store = request.app.state.store
        run = await store.get(run_id)
        key = (run.id, run.done, run.failed, theme)
        if key not in kept:
            outcomes = await store.outcomes(run.id)
            kept[key] = await asyncio.to_thread(_charts, outcomes, theme)
        kept.move_to_end(key)
        while len(kept) > KEPT:
            kept.popitem(last=False)
        return Json(kept[key])

    return router


@lru_cache(maxsize=2)
def tokens(theme: Theme) -> dict[str, str]:
    """The colours of the style sheet in a theme, by their names."""
    text = (STATIC / "styles" / "tokens.css").read_text("utf-8")
    pairs = re.findall(r"--([\w-]+): light-dark\((#\w+), (#\w+)\);", text)
    return {name: light if theme == "light" else dark for name, light, dark in pairs}


def _charts(outcomes: Any, theme: Theme) -> Charts:
    from clef.reports.charts import Palette, confusion_chart, reliability_chart, risk_coverage_chart
    from clef.statistics.calibration import calibration
    from clef.statistics.classes import confusions
    from clef.statistics.columns import as_columns
    from clef.statistics.risk import risk_coverage

    columns = as_columns(outcomes)
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
