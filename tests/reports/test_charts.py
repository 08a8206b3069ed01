"""Charts are plain data: what they show is what was counted, in the colours given, with nothing fetched."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from clef.reports.charts import (
    SCHEMA,
    Palette,
    Spec,
    confusion_chart,
    distribution_chart,
    questions_chart,
    reliability_chart,
    risk_coverage_chart,
    score_error_chart,
)
from clef.statistics.calibration import calibration
from clef.statistics.classes import confusions
from clef.statistics.gates import gates
from clef.statistics.ladder import ReviewBudget
from clef.statistics.risk import risk_coverage
from clef.statistics.summary import summarise
from tests.statistics.making import ANGRY, TEAM, URGENT, drawn, each, outcome

NAMES = ("ink", "quiet-ink", "line", "surface", "act", "right", "wrong", "bar", "bar-wins")
TOKENS = {f"--{name}": f"#0000{place:02x}" for place, name in enumerate(NAMES)}
PALETTE = Palette.of(TOKENS)
ROWS = [*drawn(300, 1), *drawn(200, 2, ANGRY), *drawn(200, 3, URGENT)]
TEAMS = ROWS[:300]


def all_charts() -> dict[str, Spec]:
    error = calibration(ROWS).error
    assert error is not None
    cut = gates(TEAMS, ReviewBudget(0.4)).questions[0].cuts[0]
    return {
        "reliability": reliability_chart(error, PALETTE),
        "risk": risk_coverage_chart(risk_coverage(TEAMS), PALETTE, cut),
        "confusion": confusion_chart(confusions(ROWS)[0], PALETTE),
        "distribution": distribution_chart(ROWS, PALETTE),
        "questions": questions_chart(summarise(ROWS).questions, PALETTE),
        "score": score_error_chart(ROWS, "How urgent?", PALETTE),
    }


CHARTS = all_charts()


def parts(value: Any) -> Iterator[dict[str, Any]]:
    """Every object in a specification."""
    if isinstance(value, dict):
        yield value
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for child in children:
        yield from parts(child)


@pytest.mark.parametrize("name", CHARTS)
def test_it_is_a_whole_specification_with_its_data_and_no_address(name: str) -> None:
    spec = CHARTS[name]
    text = json.dumps(spec, allow_nan=False)
    assert spec["$schema"] == SCHEMA
    assert text.count("://") == 1
    assert not any("url" in part or "transform" in part for part in parts(spec))
    assert spec["data"]["values"]
    assert spec["description"]


@pytest.mark.parametrize("name", CHARTS)
def test_every_field_that_is_drawn_is_in_the_data(name: str) -> None:
    def check(view: dict[str, Any], inherited: list[dict[str, Any]]) -> int:
        rows = view["data"]["values"] if "data" in view else inherited
        drawn_fields = {part["field"] for part in parts(view.get("encoding", {})) if "field" in part}
        assert drawn_fields <= set(rows[0]), drawn_fields - set(rows[0])
        return len(drawn_fields) + sum(check(child, rows) for child in view.get("layer", []))

    assert check(CHARTS[name], []) >= 2


@pytest.mark.parametrize("name", CHARTS)
def test_every_colour_is_one_of_the_tokens(name: str) -> None:
    found = {value for part in parts(CHARTS[name]) for value in [*part.values()] if isinstance(value, str)}
    found |= {colour for part in parts(CHARTS[name]) for colour in part.get("range", [])}
    colours = {value for value in found if value.startswith("#")}
    assert len(colours) >= 2
    assert colours <= set(TOKENS.values())


def test_a_missing_token_is_an_error_at_once() -> None:
    with pytest.raises(KeyError, match="wrong"):
        Palette.of({name: colour for name, colour in TOKENS.items() if name != "--wrong"})


def test_reliability_counts_every_row() -> None:
    assert sum(row["rows"] for row in CHARTS["reliability"]["data"]["values"]) == len(ROWS)


def test_the_gate_stands_where_it_acts() -> None:
    cut = gates(TEAMS, ReviewBudget(0.4)).questions[0].cuts[0]
    texts = [part for part in parts(CHARTS["risk"]) if "threshold" in part and "label" in part]
    assert [(one["coverage"], one["threshold"]) for one in texts][:1] == [(cut.coverage.value, cut.threshold)]
    assert len(risk_coverage_chart(risk_coverage(TEAMS), PALETTE)["layer"]) == len(CHARTS["risk"]["layer"]) - 2
    refused = gates(TEAMS[:20], ReviewBudget(0.4)).questions[0].cuts[0]
    assert len(risk_coverage_chart(risk_coverage(TEAMS), PALETTE, refused)["layer"]) == len(CHARTS["risk"]["layer"]) - 2


def test_the_cells_of_a_confusion_add_up_and_many_classes_lose_their_numbers() -> None:
    cells = CHARTS["confusion"]["data"]["values"]
    assert sum(cell["rows"] for cell in cells) == 300
    assert (
        sum(cell["rows"] for cell in cells if cell["label"] == cell["prediction"]) == summarise(TEAMS).overall.correct
    )
    many = type(TEAM)("Which of many?", [f"n{at:02}" for at in range(21)])
    rows = [outcome([1.0 if k == at else 0.0 for k in range(21)], at, many, row=at + 2) for at in range(21)]
    assert [layer["mark"]["type"] for layer in confusion_chart(confusions(rows)[0], PALETTE)["layer"]] == ["rect"]


def test_few_classes_stand_level_and_many_do_not() -> None:
    few = CHARTS["confusion"]["layer"][0]["encoding"]["x"]["axis"]
    many = type(TEAM)("Which of many?", [f"n{at:02}" for at in range(7)])
    rows = [outcome([1.0 if k == at else 0.0 for k in range(7)], at, many, row=at + 2) for at in range(7)]
    turned = confusion_chart(confusions(rows)[0], PALETTE)["layer"][0]["encoding"]["x"]["axis"]
    assert few["labelAngle"] == 0
    assert "labelAngle" not in turned
    assert {CHARTS["confusion"]["config"][part]["titleFontSize"] for part in ("axis", "legend")} == {13}


def test_right_and_wrong_of_the_distribution_are_stacked_without_holes() -> None:
    values = CHARTS["distribution"]["data"]["values"]
    assert sum(row["rows"] for row in values if row["outcome"] == "right") == summarise(ROWS).overall.correct
    assert sum(row["rows"] for row in values) == len(ROWS)
    for right, wrong in zip(values[::2], values[1::2], strict=True):
        assert (right["start"], right["end"], wrong["end"]) == (0, wrong["start"], right["rows"] + wrong["rows"])


def test_score_errors_are_levels_above_and_below() -> None:
    rows = each(([0, 0, 0, 1.0], 0), ([0, 1.0, 0, 0], 1), ([0, 1.0, 0, 0], 2), question=URGENT)
    values = score_error_chart(rows, "How urgent?", PALETTE)["data"]["values"]
    assert [(row["error"], row["rows"], row["outcome"]) for row in values] == [
        (-1, 1, "wrong"),
        (0, 1, "right"),
        (3, 1, "wrong"),
    ]


def test_questions_without_an_answered_row_are_left_out() -> None:
    rows = [*each(([0.9, 0.1], 0)), outcome(None, 0, TEAM, row=9)]
    assert len(questions_chart(summarise(rows).questions, PALETTE)["data"]["values"]) == 1


@pytest.mark.parametrize("name", CHARTS)
def test_vega_lites_own_schema_accepts_it(name: str) -> None:
    altair = pytest.importorskip("altair", reason="altair checks specifications where it is installed")
    altair.Chart.from_dict(CHARTS[name])
