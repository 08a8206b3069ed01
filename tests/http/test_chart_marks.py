"""Every mark of every chart leads to exactly the rows that it counts, whatever probabilities they have."""

import math
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient

from clef.reports.charts import reliability_chart
from clef.statistics.calibration import calibration
from clef.web.chart_marks import of_mass, of_width, pressable
from clef.web.run_filter import Filter
from tests.browser.staged import StagedEngine
from tests.http.conftest import Client
from tests.http.test_pages import evaluated
from tests.reports.test_charts import PALETTE
from tests.statistics.making import each, steady

EDGES = [p for k in range(8, 15) for p in (math.nextafter(k / 15, 0), k / 15, math.nextafter(k / 15, 1))]
LEVELS = ("can wait", "this week", "today", "right now")


def table() -> str:
    """Rows at every edge of the bins and beside it, equal ones, sure ones, ties, failures, rows without a label; a
    score with every distance; two questions of one kind.
    """
    lines = ["context,question,answer,options,type"]
    for number, top in enumerate([*EDGES, *EDGES, 0.97, 0.97, 0.97, 0.6, 0.5, 0.9999999]):
        lines.append(f"row {number} p={top!r},Which?,{'abc'[number % 3]},a|b|c,choice")
    lines += [f"tie {number},Which?,{'ab'[number % 2]},a|b|c,choice" for number in range(5)]
    lines += [f"refuse {number},Which?,a,a|b|c,choice" for number in range(3)]
    lines += [f"none {number} p=0.8,Which?,,a|b|c,choice" for number in range(4)]
    for number in range(20):
        last = " the last" if number % 2 else ""
        lines.append(f"n {number} p=0.{55 + number},How soon{last}?,{LEVELS[number % 4]},{'|'.join(LEVELS)},score")
        lines.append(f"n {number} p=0.{55 + number},Is it{last}?,{'yes' if number % 3 else 'no'},,noul")
    return "\n".join(lines) + "\n"


@pytest.fixture
def client(client_of: Client) -> TestClient:
    return client_of(StagedEngine())


def shown(client: TestClient, run: str, shows: str) -> int:
    """Rows that a filter leads to; the page reads the same address."""
    query = dict(parse_qsl(shows))
    assert dict(parse_qsl(Filter.read(query).query()[1:])).items() >= query.items()
    found = client.get(f"/api/runs/{run}/rows", params={**query, "limit": 1})
    assert found.status_code == 200, found.text
    return int(found.json()["total"])


def drawings(client: TestClient, run: str) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    for chart, found in client.get(f"/runs/{run}/charts").json().items():
        for drawing in found:
            yield chart, drawing["spec"]["data"]["values"]


def test_what_a_mark_counts_is_what_its_filter_shows_and_no_row_is_lost_or_doubled(client: TestClient) -> None:
    run = evaluated(client, table())
    judged = client.get(f"/api/runs/{run}").json()["summary"]["count"]
    assert judged == len(EDGES) * 2 + 6 + 5 + 40
    of_one = {"confusion": (len(EDGES) * 2 + 11, 10), "distance": (10,)}
    seen = set()
    for chart, marks in drawings(client, run):
        seen.add(chart)
        if chart == "risk":
            continue
        counts = [shown(client, run, one["shows"]) for one in marks]
        assert counts == [one["rows"] for one in marks], chart
        assert sum(counts) in of_one.get(chart, (judged,)), chart
    assert seen == {"reliability", "mass", "risk", "distribution", "confusion", "distance"}


def test_a_place_of_the_risk_curve_leads_to_what_a_gate_there_does(client: TestClient) -> None:
    run = evaluated(client, table())
    judged = client.get(f"/api/runs/{run}").json()["summary"]["count"]
    (marks,) = (marks for chart, marks in drawings(client, run) if chart == "risk")
    assert len(marks) > 30
    for one in marks[::4]:
        assert shown(client, run, one["shows"]) == one["checked"] == judged - one["acted"]
        sure = f"show=judged&sure={one['threshold']!r}"
        assert shown(client, run, sure) == one["acted"]
        assert shown(client, run, sure.replace("judged", "wrong")) == one["wrong"]


def test_the_numbers_of_a_chart_are_links_with_the_counts_of_its_marks(client: TestClient) -> None:
    run = evaluated(client, table())
    for chart, marks in drawings(client, run):
        text = client.get(f"/runs/{run}/numbers/{chart}").text
        assert 'class="numbers"' in text, chart
        if chart not in ("confusion", "distance"):
            assert text.count("data-shows") == len(marks) * (3 if chart == "risk" else 1)
    assert "nothing to show" in client.get(f"/runs/{run}/numbers/distance?at=99").text
    assert client.get(f"/runs/{run}/numbers/pie").status_code in (400, 422)
    assert client.get("/runs/none/numbers/risk").status_code == 404


@steady
@given(st.lists(st.floats(0.5, 1) | st.sampled_from(EDGES), min_size=1, max_size=120))
def test_bins_of_either_kind_hold_each_row_once_by_their_ends(tops: list[float]) -> None:
    measured = calibration(each(*(([top, 1 - top], 0) for top in tops)))
    for error, shows in ((measured.error, of_width), (measured.error_equal_mass, of_mass)):
        assert error is not None
        spec = pressable(reliability_chart(error, PALETTE), shows)
        held = []
        for one in spec["data"]["values"]:
            chosen = Filter.read(dict(parse_qsl(one["shows"])))
            inside = [t for t in tops if t >= (chosen.low or 0) and (chosen.high is None or t < chosen.high)]
            assert len(inside) == one["rows"]
            held += inside
        assert sorted(held) == sorted(tops)
