"""Every mark of every chart leads to exactly the rows that it counts, whatever probabilities they have."""

import math
from collections.abc import Iterator
from itertools import product
from typing import Any, get_args
from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient

from clef.reports.charts import reliability_chart
from clef.runs import browse
from clef.runs.narrowing import Labels, Show, Sort
from clef.statistics.calibration import calibration
from clef.web.chart_marks import of_mass, of_width, pressable
from clef.web.run_filter import PAGE_ROWS, Filter
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


def corrected(client: TestClient) -> str:
    """A run of the table in which a person made right rows wrong and wrong ones right, confirmed some, and gave labels
    to some without one.
    """
    run = evaluated(client, table())
    rows = client.get(f"/api/runs/{run}/rows", params={"sort": "row", "descending": False, "limit": 500}).json()["rows"]
    for place, row in enumerate(rows):
        if row["answers"] and (place % 4 == 0 or row["answer"] is None):
            label = row["answers"][place % 8 // 4]["answer"]
            said = client.put(f"/api/runs/{run}/rows/{row['position']}/label", json={"label": label})
            assert said.status_code == 200, said.text
    reviewed = client.get(f"/api/runs/{run}/rows", params={"show": "reviewed"}).json()["total"]
    assert reviewed > 20
    return run


def shown(client: TestClient, run: str, shows: str, labels: Labels = "own") -> int:
    """Rows that a filter leads to; the page reads the same address."""
    query = {**dict(parse_qsl(shows)), **({} if labels == "own" else {"labels": labels})}
    assert dict(parse_qsl(Filter.read(query).query()[1:])).items() >= query.items()
    found = client.get(f"/api/runs/{run}/rows", params={**query, "limit": 1})
    assert found.status_code == 200, found.text
    return int(found.json()["total"])


def drawings(client: TestClient, run: str, labels: Labels = "own") -> Iterator[tuple[str, list[dict[str, Any]]]]:
    for chart, found in client.get(f"/runs/{run}/charts", params={"labels": labels}).json().items():
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


@pytest.mark.parametrize("labels", get_args(Labels))
def test_by_either_labels_a_mark_counts_the_rows_that_it_leads_to(client: TestClient, labels: Labels) -> None:
    run = corrected(client)
    seen = {}
    for chart, marks in drawings(client, run, labels):
        some = marks[:: 6 if chart == "risk" else 1]
        rows = [one["checked" if chart == "risk" else "rows"] for one in some]
        assert [shown(client, run, one["shows"], labels) for one in some] == rows, chart
        seen[chart] = rows
    assert seen.keys() == {"reliability", "mass", "risk", "distribution", "confusion", "distance"}
    linked = "labels=table#rows" in client.get(f"/runs/{run}/numbers/mass", params={"labels": labels}).text
    assert linked == (labels == "table")


def test_a_row_is_shown_by_the_labels_that_are_asked_for(client: TestClient) -> None:
    before = evaluated(client, table())
    run = corrected(client)
    everything: dict[str, str | int] = {"sort": "row", "descending": "false", "limit": 500}
    for show in get_args(Show):
        if show == "reviewed":
            continue
        asked = {**everything, "show": show}
        as_it_was = client.get(f"/api/runs/{before}/rows", params=asked).json()
        put_back = client.get(f"/api/runs/{run}/rows", params={**asked, "labels": "table"}).json()
        parts = ("position", "answer", "correct")
        assert [[row[part] for part in parts] for row in put_back["rows"]] == [
            [row[part] for part in parts] for row in as_it_was["rows"]
        ]
        assert put_back["counts"] | {"reviewed": 0} == as_it_was["counts"]
    assert client.get(f"/api/runs/{run}/rows", params=everything).json()["counts"] != as_it_was["counts"]
    for narrowed in ({"label": "a"}, {"text": "b"}, {"question": "Which?", "prediction": "a"}, {"off": "1"}):
        by_table = client.get(f"/api/runs/{run}/rows", params={**narrowed, "labels": "table"}).json()["total"]
        assert by_table == client.get(f"/api/runs/{before}/rows", params=narrowed).json()["total"]


def test_a_correction_is_marked_in_the_row_whichever_labels_are_shown(client: TestClient) -> None:
    run = evaluated(client, table())
    at = f"/runs/{run}/rows/3"
    assert client.put(f"/api{at}/label", json={"label": "c"}).status_code == 200
    own, of_the_table = client.get(at).text, client.get(f"{at}?labels=table").text
    mark = '{} <span class="type">label</span>'
    assert mark.format("c") in own
    assert mark.format("a") in of_the_table
    assert '<option value="c" selected>' in own
    assert '<option value="c" selected>' in of_the_table  # what may be changed is the person's own
    page = client.get(f"/runs/{run}?labels=table&row=3").text
    assert "Numbers and rows go by the labels of the table" in page
    assert mark.format("a") in page


def test_an_address_with_a_row_leads_to_its_page_in_any_order(client: TestClient) -> None:
    failing = "".join(f"refuse {number},Which?,a,a|b|c,choice\n" for number in range(20))
    run = evaluated(client, table() + failing)
    for sort, descending in product(get_args(Sort), (True, False)):
        asked = {"sort": sort, "descending": str(descending).lower(), "limit": 500}
        rows = client.get(f"/api/runs/{run}/rows", params=asked).json()["rows"]
        order = {"sort": sort, "order": "desc" if descending else "asc"}
        for place in (0, PAGE_ROWS - 1, PAGE_ROWS, len(rows) - 1):
            position = rows[place]["position"]
            text = client.get(f"/runs/{run}", params={**order, "row": position}).text
            assert f'data-row="{position}" aria-expanded="true"' in text, (order, place)
            assert f"page {place // PAGE_ROWS + 1} of 2" in text, (order, place)
    failed = client.get(f"/api/runs/{run}/rows", params={"show": "failed"}).json()["rows"][0]["position"]
    apart = client.get(f"/runs/{run}", params={"show": "judged", "row": failed}).text
    assert "It is not among the rows of this filter" in apart


def test_rows_far_down_are_the_same_from_either_end(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    run = evaluated(client, table())
    ways = [{"sort": sort, "descending": way} for sort, way in product(get_args(Sort), ("true", "false"))]

    def read() -> list[list[int]]:
        return [
            [row["position"] for row in client.get(f"/api/runs/{run}/rows", params={**way, **part}).json()["rows"]]
            for way in ways
            for part in ({"offset": at, "limit": 7} for at in (0, 30, 60, 95, 99, 100, 400))
        ]

    from_the_front = read()
    monkeypatch.setattr(browse, "DEEP", 1)
    assert read() == from_the_front


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
