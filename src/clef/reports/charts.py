"""Turns summaries into Vega-Lite 6 specifications: plain dicts, the same for the page, a file and the terminal.

Invariants: every number is computed before, so a specification holds values and no transform; its data are inline and
it refers to no address (`$schema` only names the version and is never fetched); its colours are the tokens given. A
row of data carries what a click on its mark filters by.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, TypeAlias

from clef.statistics.binning import BINS, CalibrationError
from clef.statistics.classes import Confusion
from clef.statistics.columns import Outcomes, as_columns
from clef.statistics.gates import Cut
from clef.statistics.intervals import Rate
from clef.statistics.risk import RiskCoverage
from clef.statistics.summary import QuestionSummary

if TYPE_CHECKING:
    from clef.statistics.columns import Columns

Spec: TypeAlias = dict[str, Any]
SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
HEIGHT = 280
"""Of a chart, in pixels; the width is that of its place."""
FEW = 20
"""Rows under which a point is dimmed."""
_BAR_HEIGHT = 26
_LEVEL_NAMES = 6
"""Classes up to which their names stand level under a confusion."""
_LEVEL_WIDTH = 420
"""Pixels that they share."""
_NUMBERED = 20
"""Classes up to which the cells of a confusion say how many rows they hold, and need no legend."""
_LABEL_WIDTH = 220


@dataclass(frozen=True, slots=True)
class Palette:
    """Colours by what they mean, named as the page's tokens. Each one colour that can be mixed: no var(), no pair."""

    ink: str
    quiet_ink: str
    line: str
    surface: str
    act: str
    right: str
    wrong: str
    bar: str
    bar_wins: str

    @classmethod
    def of(cls, tokens: Mapping[str, str]) -> Palette:
        """The palette in a mapping of token names, leading dashes or not. Raises KeyError for a missing one."""
        plain = {name.lstrip("-").replace("-", "_"): colour for name, colour in tokens.items()}
        return cls(**{field.name: plain[field.name] for field in fields(cls)})


def reliability_chart(error: CalibrationError, palette: Palette) -> Spec:
    """Accuracy over top probability with its interval, over bars of how many rows; the diagonal is perfect."""
    rows = [
        {
            "from": one.low,
            "to": one.high,
            "probability": one.mean_probability,
            **_rate(one.rate),
            "rows": one.rate.count,
            "few": one.rate.count < FEW,
        }
        for one in error.bins
    ]
    x = _axis("probability", "top probability", [0, 1], "%")
    y = _axis("accuracy", "share that is right", [0, 1], "%")
    tip = _tips(("probability", ".3f"), ("accuracy", ".1%"), ("low", ".1%"), ("high", ".1%"), ("rows", ","))
    diagonal = {
        "data": {"values": [{"probability": 0, "accuracy": 0}, {"probability": 1, "accuracy": 1}]},
        "mark": {"type": "line", "strokeDash": [4, 4], "color": palette.quiet_ink},
        "encoding": {"x": x, "y": y},
    }
    whisker = {
        "mark": {"type": "rule", "color": palette.act},
        "encoding": {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}, "opacity": _dimmed()},
    }
    points = {
        "mark": {"type": "point", "color": palette.act, "size": 70, "filled": True, "opacity": 1},
        "encoding": {"x": x, "y": y, "opacity": _dimmed(), "tooltip": tip},
    }
    view = {
        "height": HEIGHT,
        "width": "container",
        "layer": [_count_bars(error, palette), {"layer": [diagonal, whisker, points]}],
        "resolve": {"scale": {"y": "independent"}},
    }
    described = f"Reliability: accuracy by top probability in {len(rows)} bins; calibration error {error.value:.3f}"
    return _spec(described, palette, view, rows)


def _count_bars(error: CalibrationError, palette: Palette) -> Spec:
    """The rows of each bin, as bars in the lowest quarter."""
    most = max((one.rate.count for one in error.bins), default=1)
    return {
        "mark": {"type": "rect", "color": palette.bar, "opacity": 0.6, "stroke": palette.surface},
        "encoding": {
            "x": _axis("from", "top probability", [0, 1], "%"),
            "x2": {"field": "to"},
            "y": {
                "field": "rows",
                "type": "quantitative",
                "title": "rows",
                "scale": {"domain": [0, 4 * most]},
                "axis": {"orient": "right", "values": [0, most], "grid": False},
            },
            "y2": {"datum": 0},
            "tooltip": _tips(("from", ".2f"), ("to", ".2f"), ("rows", ",")),
        },
    }


def risk_coverage_chart(curve: RiskCoverage, palette: Palette, cut: Cut | None = None) -> Spec:
    """Share wrong among those acted on, over the share acted on; the gate as a line with its threshold."""
    rows = [
        {
            "threshold": point.threshold,
            "coverage": point.coverage,
            "risk": 1 - point.rate.correct / point.rate.count,
            "acted": point.rate.count,
            "wrong": point.rate.count - point.rate.correct,
            "checked": curve.count - point.rate.count,
            **_risk(point.rate),
        }
        for point in curve.points
    ]
    x = _axis("coverage", "share acted on", [0, 1], "%")
    highest = max((row["high"] for row in rows if row["coverage"] >= 0.05), default=1.0)
    y = _axis("risk", "share wrong among them", [0, max(0.01, min(1.0, highest))], "%")
    tip = _tips(("threshold", ".3f"), ("coverage", ".1%"), ("risk", ".1%"), ("acted", ","), ("wrong", ","))
    layers: list[Spec] = [
        {
            "mark": {"type": "area", "color": palette.wrong, "opacity": 0.15, "clip": True},
            "encoding": {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}},
        },
        {
            "mark": {"type": "line", "interpolate": "step-after", "color": palette.wrong, "clip": True},
            "encoding": {"x": x, "y": y, "tooltip": tip},
        },
        {
            "params": [{"name": "nearest", "select": {"type": "point", "nearest": True, "on": "pointerover"}}],
            "mark": {"type": "point", "color": palette.wrong, "filled": True, "size": 60, "clip": True},
            "encoding": {"x": x, "y": y, "tooltip": tip, "opacity": _only("nearest")},
        },
    ]
    described = f"Risk and coverage over {curve.count} rows"
    if cut is not None and cut.threshold is not None and cut.coverage.value is not None:
        at = {"coverage": cut.coverage.value, "threshold": cut.threshold, "label": f"from {cut.threshold:.3g}"}
        gate = {"data": {"values": [at]}}
        mark_text = {"type": "text", "align": "left", "dx": 5, "baseline": "top", "color": palette.act}
        layers += [
            {**gate, "mark": {"type": "rule", "color": palette.act, "size": 2}, "encoding": {"x": x}},
            {**gate, "mark": mark_text, "encoding": {"x": x, "y": {"value": 4}, "text": {"field": "label"}}},
        ]
        described += f"; the gate acts on {cut.coverage.value:.0%} from a top probability of {cut.threshold:.3g}"
    return _spec(described, palette, {"height": HEIGHT, "width": "container", "layer": layers}, rows)


def confusion_chart(confusion: Confusion, palette: Palette) -> Spec:
    """Labels down, predictions across; darker is more of the label's rows, the diagonal is right."""
    names = [one.name for one in confusion.classes]
    rows = []
    for label, line in zip(names, confusion.matrix, strict=True):
        total = sum(line)
        for prediction, count in zip(names, line, strict=True):
            share = count / total if total else 0.0
            dark = share > 0.5
            rows.append({"label": label, "prediction": prediction, "rows": count, "share": share, "dark": dark})
    across: Spec = {"labelLimit": 140}
    if len(names) <= _LEVEL_NAMES:
        across |= {"labelAngle": 0, "labelLimit": _LEVEL_WIDTH // len(names)}
    x = {"field": "prediction", "type": "nominal", "sort": names, "title": "prediction", "axis": across}
    y = {"field": "label", "type": "nominal", "sort": names, "title": "label", "axis": {"labelLimit": _LABEL_WIDTH}}
    shade = {
        "field": "share",
        "type": "quantitative",
        "title": "of the label's rows",
        "scale": {"domain": [0, 1], "range": [palette.surface, palette.bar_wins], "interpolate": "rgb"},
        "legend": None if len(names) <= _NUMBERED else {"format": "%"},
    }
    cells = {
        "mark": {"type": "rect", "stroke": palette.line},
        "encoding": {
            "x": x,
            "y": y,
            "color": shade,
            "tooltip": _tips(("label", None), ("prediction", None), ("rows", ","), ("share", ".1%")),
        },
    }
    ink = {"condition": {"test": "datum.dark", "value": palette.surface}, "value": palette.ink}
    numbers = {
        "mark": {"type": "text"},
        "encoding": {"x": x, "y": y, "text": {"field": "rows", "type": "quantitative"}, "color": ink},
    }
    size = {"height": {"step": _BAR_HEIGHT}, "width": "container"}
    layers = [cells, numbers] if len(names) <= _NUMBERED else [cells]
    described = f"Confusion of {len(names)} answers over {confusion.count} rows of {confusion.question}"
    return _spec(described, palette, {**size, "layer": layers}, rows)


def distribution_chart(outcomes: Outcomes, palette: Palette, bins: int = BINS) -> Spec:
    """Rows by top probability, right ones and wrong ones stacked: where the model is sure, and where it errs."""
    from clef.statistics.binning import equal_width

    judged = as_columns(outcomes).judged
    cell = equal_width(judged.top, bins)
    rows = []
    for place in sorted(set(cell.tolist())):
        inside = judged.correct[cell == place]
        ends = {"from": place / bins, "to": (place + 1) / bins}
        right = int(inside.sum())
        rows.append({**ends, "outcome": "right", "start": 0, "end": right, "rows": right})
        rows.append({**ends, "outcome": "wrong", "start": right, "end": len(inside), "rows": len(inside) - right})
    encoding = {
        "x": _axis("from", "top probability", [0, 1], "%"),
        "x2": {"field": "to"},
        "y": {"field": "start", "type": "quantitative", "title": "rows"},
        "y2": {"field": "end"},
        "color": _outcome_colours(palette),
        "tooltip": _tips(("outcome", None), ("from", ".2f"), ("to", ".2f"), ("rows", ",")),
    }
    described = f"Top probabilities of {int(judged.correct.sum())} right and {int((~judged.correct).sum())} wrong rows"
    view = {"height": HEIGHT, "width": "container", "mark": {"type": "rect", "stroke": palette.surface}}
    return _spec(described, palette, {**view, "encoding": encoding}, rows)


def questions_chart(questions: Sequence[QuestionSummary], palette: Palette) -> Spec:
    """Accuracy of each question with its interval, and a tick where always giving the commonest label would be."""
    rows = [
        {"question": one.name, **_rate(one.rate), "rows": one.rate.count, "majority": one.majority_share}
        for one in questions
        if one.rate.count
    ]
    y = {
        "field": "question",
        "type": "nominal",
        "sort": [row["question"] for row in rows],
        "title": None,
        "axis": {"labelLimit": _LABEL_WIDTH},
    }
    x = _axis("accuracy", "share that is right", [0, 1], "%")
    tip = _tips(
        ("question", None), ("accuracy", ".1%"), ("low", ".1%"), ("high", ".1%"), ("rows", ","), ("majority", ".1%")
    )
    layers = [
        {"mark": {"type": "bar", "color": palette.bar}, "encoding": {"x": x, "y": y, "tooltip": tip}},
        {
            "mark": {"type": "rule", "color": palette.ink, "size": 2},
            "encoding": {"x": {**x, "field": "low"}, "x2": {"field": "high"}, "y": y},
        },
        {
            "mark": {"type": "tick", "color": palette.act, "thickness": 3},
            "encoding": {"x": {**x, "field": "majority"}, "y": y},
        },
    ]
    described = f"Accuracy of {len(rows)} questions with 95 % intervals; the tick is always the most frequent label"
    return _spec(described, palette, {"height": {"step": _BAR_HEIGHT}, "width": "container", "layer": layers}, rows)


def score_error_chart(outcomes: Outcomes, question: str, palette: Palette) -> Spec:
    """How many levels the most likely level is above or below the label, for one score question."""
    columns = as_columns(outcomes)
    place = columns.names.index(question)
    judged = columns.take(columns.question == place).judged
    rows = _level_errors(judged)
    encoding = {
        "x": {
            "field": "error",
            "type": "ordinal",
            "title": "levels above (+) or below (−) the label",
            "axis": {"labelAngle": 0},
        },
        "y": {"field": "rows", "type": "quantitative", "title": "rows"},
        "color": _outcome_colours(palette),
        "tooltip": _tips(("error", "+d"), ("rows", ","), ("share", ".1%")),
    }
    view = {"height": HEIGHT, "width": "container", "mark": {"type": "bar"}}
    described = f"Distance between predicted level and label over {len(judged.row)} rows of {question}"
    return _spec(described, palette, {**view, "encoding": encoding}, rows)


def _level_errors(judged: Columns) -> list[dict[str, Any]]:
    import numpy as np

    errors, counts = np.unique(judged.predicted - judged.label, return_counts=True)
    return [
        {"error": error, "rows": count, "share": count / len(judged.row), "outcome": "wrong" if error else "right"}
        for error, count in zip(errors.tolist(), counts.tolist(), strict=True)
    ]


def _spec(description: str, palette: Palette, view: Spec, rows: Sequence[Mapping[str, Any]]) -> Spec:
    """A whole specification around a view."""
    config = {
        "background": "transparent",
        "font": "system-ui, sans-serif",
        "view": {"stroke": None},
        "axis": {
            "labelColor": palette.quiet_ink,
            "titleColor": palette.ink,
            "gridColor": palette.line,
            "domainColor": palette.line,
            "tickColor": palette.line,
            "labelFontSize": 13,
            "titleFontSize": 13,
            "titleFontWeight": "normal",
        },
        "legend": {
            "labelColor": palette.quiet_ink,
            "titleColor": palette.ink,
            "labelFontSize": 13,
            "titleFontSize": 13,
            "titleFontWeight": "normal",
        },
        "text": {"color": palette.ink, "fontSize": 13},
    }
    return {
        "$schema": SCHEMA,
        "description": description,
        "data": {"values": [dict(row) for row in rows]},
        **view,
        "config": config,
    }


def _axis(field: str, title: str, domain: Sequence[float], format: str) -> Spec:
    axis = {"format": format, "tickCount": 5}
    return {"field": field, "type": "quantitative", "title": title, "scale": {"domain": list(domain)}, "axis": axis}


def _dimmed() -> Spec:
    return {"condition": {"test": "datum.few", "value": 0.35}, "value": 1}


def _only(selection: str) -> Spec:
    """Shown where it is selected, so that a line has points to be pressed."""
    return {"condition": {"param": selection, "empty": False, "value": 1}, "value": 0}


def _tips(*named: tuple[str, str | None]) -> list[Spec]:
    tips = []
    for name, form in named:
        shown = {"type": "nominal"} if form is None else {"type": "quantitative", "format": form}
        tips.append({"field": name, "title": name, **shown})
    return tips


def _outcome_colours(palette: Palette) -> Spec:
    scale = {"domain": ["right", "wrong"], "range": [palette.right, palette.wrong]}
    return {"field": "outcome", "type": "nominal", "title": None, "scale": scale}


def _rate(rate: Rate) -> dict[str, float | None]:
    low, high = rate.interval or (None, None)
    return {"accuracy": rate.value, "low": low, "high": high}


def _risk(rate: Rate) -> dict[str, float]:
    low, high = rate.interval or (0.0, 1.0)
    return {"low": 1 - high, "high": 1 - low}
