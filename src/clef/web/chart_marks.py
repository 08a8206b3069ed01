"""Turns the charts of a run into what can be pressed: the rows behind each mark, as a filter, and all marks of a chart
as a table of links.

Invariant: a mark's filter leads to exactly the rows that it counts, so its ends are those that the rows were counted
by, and the last bin has no upper end.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias
from urllib.parse import urlencode

from clef.web import words

Spec: TypeAlias = dict[str, Any]
Values: TypeAlias = Sequence[Mapping[str, Any]]
Chart = Literal["reliability", "mass", "risk", "distribution", "confusion", "distance"]
"""The charts of a run; `mass` is the reliability in bins of equal counts."""
SHOWS = "shows"
"""Field of a mark with the query string of its rows."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of such a table, with the rows that it leads to."""

    text: str
    shows: str | None = None


@dataclass(frozen=True, slots=True)
class Numbers:
    """The marks of a chart as a table; the first cell of a line names it."""

    head: tuple[str, ...]
    lines: tuple[tuple[Cell, ...], ...]


def pressable(spec: Spec, shows: Callable[[Values], Iterable[Mapping[str, object]]]) -> Spec:
    """The chart with the filter of its rows in each mark."""
    values = spec["data"]["values"]
    marked = [value | {SHOWS: query(**found)} for value, found in zip(values, shows(values), strict=True)]
    return spec | {"data": {"values": marked}}


def query(**parts: object) -> str:
    """The query string of the rows with these parts, only those that the numbers are about."""
    said = {"show": "judged"} | parts
    return urlencode({name: value for name, value in said.items() if value is not None})


def of_width(bins: Values) -> Iterator[Mapping[str, object]]:
    """The rows of each bin of equal width."""
    for one in bins:
        yield {"low": one["from"], "high": one["to"] if one["to"] < 1 else None}


def of_mass(bins: Values) -> Iterator[Mapping[str, object]]:
    """The rows of each bin of equal counts, which ends where the next one begins."""
    ends = [one["from"] for one in bins[1:]]
    for one, end in zip(bins, [*ends, None], strict=True):
        yield {"low": one["from"], "high": end}


def of_risk(points: Values) -> Iterator[Mapping[str, object]]:
    """The rows that a gate at each point leaves to be checked."""
    for one in points:
        yield {"unsure": one["threshold"]}


def of_distribution(bars: Values) -> Iterator[Mapping[str, object]]:
    """The right or the wrong rows of each bin."""
    for bar, ends in zip(bars, of_width(bars), strict=True):
        yield {**ends, "show": bar["outcome"]}


def of_confusion(question: str) -> Callable[[Values], Iterator[Mapping[str, object]]]:
    """The rows of each pair of a label and a prediction."""
    return lambda cells: (
        {"question": question, "label": one["label"], "prediction": one["prediction"]} for one in cells
    )


def of_distances(question: str) -> Callable[[Values], Iterator[Mapping[str, object]]]:
    """The rows that are so many levels off."""
    return lambda bars: ({"question": question, "off": bar["error"]} for bar in bars)


def numbers(chart: Chart, spec: Spec) -> Numbers:
    """The marks of a chart as a table."""
    head, line = _TABLES[chart]
    values = spec["data"]["values"]
    if chart == "confusion":
        values = sorted((one for one in values if one["rows"]), key=lambda one: -one["rows"])
    return Numbers(head, tuple(line(one) for one in values))


def _bin(one: Mapping[str, Any]) -> tuple[Cell, ...]:
    accuracy = f"{words.percent(one['accuracy'])} ({words.interval((one['low'], one['high']))})"
    ends = _ends(one)
    return Cell(ends), Cell(f"{one['probability']:.3f}"), Cell(accuracy), _rows(one)


def _point(one: Mapping[str, Any]) -> tuple[Cell, ...]:
    threshold = one["threshold"]
    return (
        Cell(f"{threshold:.4f}"),
        Cell(words.count(one["acted"]), query(sure=threshold)),
        Cell(words.count(one["wrong"]), query(sure=threshold, show="wrong")),
        Cell(words.percent(one["risk"])),
        Cell(words.count(one["checked"]), one[SHOWS]),
    )


def _bar(one: Mapping[str, Any]) -> tuple[Cell, ...]:
    return Cell(_ends(one)), Cell(one["outcome"]), _rows(one)


def _cell(one: Mapping[str, Any]) -> tuple[Cell, ...]:
    return Cell(words.short(one["label"], 60)), Cell(words.short(one["prediction"], 60)), _rows(one)


def _distance(one: Mapping[str, Any]) -> tuple[Cell, ...]:
    return Cell(words.levels_off(one["error"])), Cell(words.percent(one["share"])), _rows(one)


def _ends(one: Mapping[str, Any]) -> str:
    return f"{one['from']:.3f} – {one['to']:.3f}"


def _rows(one: Mapping[str, Any]) -> Cell:
    return Cell(words.count(one["rows"]), one[SHOWS])


_BINS = ("top probability", "mean of it", "right", "rows")
_TABLES: dict[Chart, tuple[tuple[str, ...], Callable[[Mapping[str, Any]], tuple[Cell, ...]]]] = {
    "reliability": (_BINS, _bin),
    "mass": (_BINS, _bin),
    "risk": (("from a top probability of", "acted on", "wrong among them", "share wrong", "left to check"), _point),
    "distribution": (("top probability", "outcome", "rows"), _bar),
    "confusion": (("label", "predicted", "rows"), _cell),
    "distance": (("prediction", "share", "rows"), _distance),
}
