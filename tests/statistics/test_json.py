"""Every report can be written as JSON from any outcomes: no NaN, no infinity, no numpy number, and nulls say why."""

import json
import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from clef.decisions.examples import Outcome
from clef.statistics.calibration import calibration, calibrations
from clef.statistics.classes import confusions
from clef.statistics.compare import compare
from clef.statistics.gates import gates
from clef.statistics.guarantee import guaranteed_gates
from clef.statistics.ladder import Cost, ReviewBudget, TargetAccuracy
from clef.statistics.ordinal import ordinal
from clef.statistics.policy import Policy
from clef.statistics.recalibration import recalibrations
from clef.statistics.risk import risk_coverage
from clef.statistics.slices import slices
from clef.statistics.summary import summarise
from clef.statistics.suspects import suspects
from tests.statistics.making import ANGRY, PAIR, TEAM, URGENT, drawn, each, outcome

REPORTS: dict[str, Callable[[Sequence[Outcome]], Any]] = {
    "summary": summarise,
    "summary by confidence": lambda rows: summarise(rows, bands_on="confidence"),
    "slices": slices,
    "classes": confusions,
    "ordinal": ordinal,
    "calibration": calibration,
    "calibration by question": calibrations,
    "recalibration": recalibrations,
    "risk": risk_coverage,
    "gates, target": lambda rows: gates(rows, TargetAccuracy(0.9)),
    "gates, budget": lambda rows: gates(rows, ReviewBudget(0.2)),
    "gates, cost": lambda rows: gates(rows, Cost(5, 1)),
    "guarantee": guaranteed_gates,
    "policy": lambda rows: Policy.of(gates(rows, TargetAccuracy(0.9))),
    "suspects": suspects,
    "comparison": lambda rows: compare(rows, rows) if any(one.example.label is not None for one in rows) else [],
}
SCALE = [outcome([0.1, 0.6, 0.2, 0.1], at % 4, URGENT, row=at + 2, extra={"x": "ab"[at % 2]}) for at in range(70)]
ROWS: dict[str, list[Outcome]] = {
    "nothing": [],
    "one right": each(([0.9, 0.1], 0)),
    "one wrong": each(([0.9, 0.1], 1)),
    "all failed": each((None, 0), (None, 1)),
    "all unlabelled": each(([0.9, 0.1], None), (None, None)),
    "all ties": each(*[([0.5, 0.5], 0)] * 60),
    "all right and certain": each(*[([1.0, 0.0], 0)] * 220),
    "all wrong and certain": each(*[([1.0, 0.0], 1)] * 220),
    "one state": [outcome([0.9, 0.1], at % 2, state="s", row=at + 2, extra={"x": "ab"[at % 2]}) for at in range(60)],
    "constant score": each(*[([0.1, 0.7, 0.1, 0.1], 1)] * 60, question=URGENT),
    "a scale": SCALE,
    "every type": [*drawn(80, 1), *drawn(80, 2, ANGRY), *drawn(80, 3, URGENT), outcome(None, 0, TEAM, row=900)],
    "one option wide": [outcome([1.0], 0, type(PAIR)("Only?", ["a"]), row=at + 2) for at in range(60)],
}


def plain(value: Any) -> bool:
    """Whether a value is made of JSON's own types and finite numbers only."""
    if isinstance(value, dict):
        return all(isinstance(key, str) and plain(item) for key, item in value.items())
    if isinstance(value, list):
        return all(plain(item) for item in value)
    return value is None or type(value) in (str, bool, int) or (type(value) is float and math.isfinite(value))


@pytest.mark.parametrize("rows", ROWS, ids=str)
@pytest.mark.parametrize("report", REPORTS, ids=str)
def test_it_is_json_without_nan(report: str, rows: str) -> None:
    found = REPORTS[report](ROWS[rows])
    shown = [one.to_dict() for one in found] if isinstance(found, (list, tuple)) else found.to_dict()
    assert plain(shown)
    assert json.loads(json.dumps(shown, allow_nan=False)) == shown


def nulls_without_reason(value: Any, where: str = "") -> list[str]:
    """Places where an estimate is null and nothing says why."""
    if isinstance(value, list):
        return [found for at, item in enumerate(value) for found in nulls_without_reason(item, f"{where}[{at}]")]
    if not isinstance(value, dict):
        return []
    missing = (
        [where] if "reason" in value and "value" in value and value["value"] is None and not value["reason"] else []
    )
    return missing + [found for key, item in value.items() for found in nulls_without_reason(item, f"{where}.{key}")]


@pytest.mark.parametrize("rows", ROWS, ids=str)
@pytest.mark.parametrize("report", REPORTS, ids=str)
def test_a_number_that_is_missing_says_why(report: str, rows: str) -> None:
    found = REPORTS[report](ROWS[rows])
    shown = [one.to_dict() for one in found] if isinstance(found, (list, tuple)) else found.to_dict()
    assert nulls_without_reason(shown) == []


def test_the_same_outcomes_give_the_same_report() -> None:
    rows = [*drawn(60, 1), *drawn(60, 2, ANGRY)]
    for report in REPORTS.values():
        assert report(rows) == report(rows)
