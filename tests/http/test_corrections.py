"""Labels that a person gives to rows: the numbers go by them, they can be taken back, and they leave as a table."""

import csv
import io
from typing import Any

import pytest
from aiohttp import web
from starlette.testclient import TestClient

from clef.engines.upstream import UpstreamEngine
from tests.fakes.system_one import SystemOne
from tests.http.conftest import Client
from tests.http.test_runs import create, finished

HOSTILE = "=HYPERLINK(1)<script>"
TABLE = "context,question,answer,options,source\n" + "".join(
    f"message {n},Which team?,{'ab'[n % 2] if n < 8 else ''},a|b|{HOSTILE},{('mail', '')[n % 2]}\n" for n in range(10)
)


@pytest.fixture
def client(client_of: Client, server: SystemOne) -> TestClient:
    async def handler(server: SystemOne, body: dict[str, object]) -> web.StreamResponse:
        if body["state"] == "ping":
            return web.json_response({"model": "m", "answers": {"q1": {"type": "noul", "noul": 0.5}}})
        probabilities = {"a": 0.8, "b": 0.15, HOSTILE: 0.05}
        answer = {"type": "choice", "choice": "a", "probabilities": probabilities}
        return web.json_response({"model": "m", "answers": {"q1": answer}})

    server.handler = handler
    return client_of(UpstreamEngine(server.address))


@pytest.fixture
def run(client: TestClient) -> str:
    return str(finished(client, create(client, TABLE)["id"])["id"])


def say(client: TestClient, run: str, position: int, label: str, note: str = "") -> dict[str, object]:
    response = client.put(f"/api/runs/{run}/rows/{position}/label", json={"label": label, "note": note})
    assert response.status_code == 200, response.text
    return dict(response.json())


def test_numbers_and_filters_go_by_the_labels_of_a_person(client: TestClient, run: str) -> None:
    def standing() -> tuple[int, int, int]:
        summary = client.get(f"/api/runs/{run}").json()["summary"]
        rows = client.get(f"/api/runs/{run}/rows", params={"show": "wrong"}).json()
        return summary["correct"], summary["count"], rows["total"]

    assert standing() == (4, 8, 4)
    said = say(client, run, 1, "a", "was a typo")
    assert said == {
        "reviewed": 1,
        "corrected": 1,
        "correction": said["correction"] | {"was": "b", "label": "a", "changed": True, "note": "was a typo", "row": 3},  # type: ignore[operator]
    }
    assert standing() == (5, 8, 3)
    assert say(client, run, 0, "a")["corrected"] == 1
    assert say(client, run, 9, "b")["corrected"] == 2
    assert standing() == (5, 9, 4)
    assert say(client, run, 1, "b")["corrected"] == 1
    assert standing() == (4, 9, 5)
    found = client.get(f"/api/runs/{run}/rows", params={"reviewed": "true"}).json()
    assert sorted(row["position"] for row in found["rows"]) == [0, 1, 9]
    assert found["counts"]["reviewed"] == 3
    for position in (0, 1, 9):
        assert client.delete(f"/api/runs/{run}/rows/{position}/label").status_code == 200
    assert standing() == (4, 8, 4)
    assert client.get(f"/api/runs/{run}/corrections").json() == {"reviewed": 0, "corrected": 0, "corrections": []}


def test_the_corrected_table_can_be_run_again_and_opens_safely(client: TestClient, run: str) -> None:
    say(client, run, 1, HOSTILE, "=cmd()")
    say(client, run, 2, "a")
    text = client.get(f"/api/runs/{run}/corrections", params={"format": "csv"}).content.decode("utf-8-sig")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["review"] for row in rows[:4]] == ["", "corrected", "confirmed", ""]
    assert rows[1]["label_in_table"] == "b"
    assert rows[2]["label_in_table"] == "a"
    assert rows[1]["source"] == ""
    assert rows[0]["source"] == "mail"
    assert all(not cell.startswith("=") for row in rows for cell in row.values())
    again = finished(client, create(client, text)["id"])
    found = client.get(f"/api/runs/{again['id']}/rows", params={"sort": "row", "descending": "false"}).json()["rows"]
    assert [row["answer"] for row in found[:3]] == ["a", HOSTILE, "a"]


@pytest.mark.parametrize(
    ("path", "body", "status", "said"),
    [
        ("0/label", {"label": "c"}, 400, "no answer of this question"),
        ("0/label", {"label": 3}, 400, "expected a label as text"),
        ("0/label", ["a"], 400, "expected a label as text"),
        ("10/label", {"label": "a"}, 404, "no row at place 10"),
        (f"{2**70}/label", {"label": "a"}, 404, "no row at place"),
    ],
)
def test_what_is_no_label_is_refused_in_words(
    client: TestClient, run: str, path: str, body: object, status: int, said: str
) -> None:
    response = client.put(f"/api/runs/{run}/rows/{path}", json=body)
    assert (response.status_code, said in response.text) == (status, True), response.text


def test_there_is_nothing_to_undo_where_nothing_was_said(client: TestClient, run: str) -> None:
    assert client.delete(f"/api/runs/{run}/rows/0/label").status_code == 404
    assert client.put("/api/runs/none/rows/0/label", json={"label": "a"}).status_code == 404


def test_rows_are_narrowed_by_a_column_of_the_table(client: TestClient, run: str) -> None:
    for value, total in (("mail", 5), ("", 5), ("Mail", 0), ("%", 0)):
        found = client.get(f"/api/runs/{run}/rows", params={"column": "source", "value": value}).json()
        assert found["total"] == total
    narrow = {"column": "source", "value": "mail", "text": "message 4"}
    found = client.get(f"/api/runs/{run}/rows", params=narrow).json()
    assert found["total"] == 1
    assert client.get(f"/api/runs/{run}/rows", params={"column": 'x"]', "value": "mail"}).json()["total"] == 0


@pytest.mark.parametrize("place", [10**6, 2**31, 2**63, 10**30])
def test_a_place_that_no_row_has_is_not_found_however_large(client: TestClient, run: str, place: int) -> None:
    address = f"/api/runs/{run}/rows/{place}"
    asked = [
        client.get(address),
        client.put(f"{address}/label", json={"label": "a"}),
        client.delete(f"{address}/label"),
    ]
    asked += [client.get(f"/runs/{run}/rows/{place}"), client.get(f"/runs/{run}/review/{place}")]
    assert [response.status_code for response in asked] == [404] * len(asked)


@pytest.mark.parametrize("narrowed", [{}, {"low": 0.5}, {"label": "b"}, {"text": "row"}, {"question": "q"}])
def test_each_count_is_what_its_filter_leads_to(client: TestClient, run: str, narrowed: dict[str, Any]) -> None:
    say(client, run, 1, "a")
    found = client.get(f"/api/runs/{run}/rows", params=narrowed).json()
    assert set(found["counts"]) > {"unlabelled", "reviewed", "wrong"}
    for show, count in found["counts"].items():
        shown = client.get(f"/api/runs/{run}/rows", params=narrowed | {"show": show}).json()
        assert (show, shown["total"], len(shown["rows"])) == (show, count, count)
