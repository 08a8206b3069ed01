"""Runs over HTTP: made, watched, looked through, stopped, exported, put away and brought back."""

import json
import time
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web
from starlette.testclient import TestClient

from clef.engines.upstream import UpstreamEngine
from clef.web.tables import drawn
from tests.fakes.scripted import examples
from tests.fakes.system_one import SystemOne, even
from tests.http.conftest import Client

TABLE = "context,question,answer,options,source\n" + "".join(
    f"message {n},Which team?,{'ab'[n % 2]},a|b,mail\n" for n in range(20)
)


def create(client: TestClient, table: str = TABLE, **parameters: str) -> dict[str, Any]:
    response = client.post("/api/runs", content=table.encode(), params={"name": "support.csv"} | parameters)
    assert response.status_code == 201, response.text
    return dict(response.json())


def finished(client: TestClient, run_id: str) -> dict[str, Any]:
    lines = client.get(f"/api/runs/{run_id}/events").text.splitlines()
    assert json.loads(lines[-1])["state"] == "finished"
    return dict(client.get(f"/api/runs/{run_id}").json())


def test_a_run_goes_on_by_itself_and_has_its_numbers(client: TestClient) -> None:
    made = create(client, note="first try")
    run = finished(client, made["id"])
    assert (run["rows"], run["done"], run["state"], run["note"]) == (20, 20, "finished", "first try")
    assert run["summary"]["answered"] == 20
    assert run["summary"]["low"] <= run["summary"]["accuracy"] <= run["summary"]["high"]
    assert [found["id"] for found in client.get("/api/runs").json()["runs"]] == [made["id"]]


def test_progress_ends_at_exactly_all_rows(client_of: Client, server: SystemOne) -> None:
    client = client_of(UpstreamEngine(server.address))
    made = create(client)
    events = [json.loads(line) for line in client.get(f"/api/runs/{made['id']}/events").text.splitlines()]
    assert all(event["done"] <= event["rows"] == 20 for event in events)
    assert (events[-1]["state"], events[-1]["done"]) == ("finished", 20)


@pytest.mark.parametrize(
    ("query", "total"),
    [
        ({"show": "all"}, 20),
        ({"show": "wrong"}, 10),
        ({"show": "right"}, 10),
        ({"show": "failed"}, 0),
        ({"label": "b"}, 10),
        ({"prediction": "a"}, 20),
        ({"prediction": "b"}, 0),
        ({"text": "MESSAGE 1"}, 11),
        ({"text": "100%"}, 0),
        ({"low": "0.5", "high": "1"}, 20),
        ({"low": "0.7"}, 0),
        ({"question": "Which team?", "label": "a", "show": "wrong"}, 0),
        ({"question": "another"}, 0),
    ],
)
def test_rows_are_filtered_in_the_store(
    client_of: Client, server: SystemOne, query: dict[str, str], total: int
) -> None:
    client = client_of(UpstreamEngine(server.address))
    run = finished(client, create(client)["id"])
    body = client.get(f"/api/runs/{run['id']}/rows", params=query).json()
    assert body["total"] == len(body["rows"]) == total


def test_rows_are_sorted_and_paged(client: TestClient) -> None:
    run = finished(client, create(client)["id"])
    query = {"sort": "row", "descending": "false", "limit": "7", "offset": "7"}
    body = client.get(f"/api/runs/{run['id']}/rows", params=query).json()
    assert [row["row"] for row in body["rows"]] == list(range(9, 16))
    ranks = client.get(f"/api/runs/{run['id']}/rows").json()["rows"]
    confidences = [row["confidence"] for row in ranks]
    assert confidences == sorted(confidences, reverse=True)
    assert body["counts"]["all"] == 20


@pytest.mark.parametrize("query", [{"sort": "state; drop table runs"}, {"limit": "501"}, {"low": "2"}, {"show": "x"}])
def test_what_no_filter_can_mean_is_400_in_words(client: TestClient, query: dict[str, str]) -> None:
    run = finished(client, create(client)["id"])
    response = client.get(f"/api/runs/{run['id']}/rows", params=query)
    assert response.status_code == 400
    assert next(iter(query)) in response.text


def test_one_row_has_all_of_its_state_and_columns(client: TestClient) -> None:
    long = "word " * 200
    run = finished(client, create(client, f"context,question,answer,options,source\n{long},Q?,a,a|b,mail\n")["id"])
    row = client.get(f"/api/runs/{run['id']}/rows/0").json()
    assert row["state"] == long or row["state"] == long.strip()
    assert len(row["context"]) == 300
    assert row["extra"] == {"source": "mail"}
    assert client.get(f"/api/runs/{run['id']}/rows/99").status_code == 404


def test_failed_rows_are_retried(client_of: Client, server: SystemOne) -> None:
    async def fail(server: SystemOne, body: dict[str, Any]) -> web.StreamResponse:
        if body["state"] == "message 3":
            return web.json_response({"error": {"message": "scores are not finite"}}, status=500)
        return web.json_response(even(body))

    async def mended(server: SystemOne, body: dict[str, Any]) -> web.StreamResponse:
        return web.json_response(even(body))

    server.handler = fail
    client = client_of(UpstreamEngine(server.address))
    run = finished(client, create(client)["id"])
    assert (run["failed"], run["summary"]["failed"]) == (1, 1)
    server.handler = mended
    client.post(f"/api/runs/{run['id']}/retry")
    assert finished(client, run["id"])["failed"] == 0
    assert finished(client, run["id"])["summary"]["answered"] == 20


def test_a_run_is_stopped_and_resumed(client_of: Client, server: SystemOne) -> None:
    import asyncio

    async def slow(server: SystemOne, body: dict[str, Any]) -> web.StreamResponse:
        await asyncio.sleep(0.05)
        return web.json_response(even(body))

    server.handler = slow
    client = client_of(UpstreamEngine(server.address), eval_concurrency=1)
    made = create(client)
    deadline = time.monotonic() + 10
    while client.get(f"/api/runs/{made['id']}").json()["done"] < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    stopped = client.post(f"/api/runs/{made['id']}/cancel").json()
    assert stopped["state"] == "stopped"
    assert 2 <= stopped["done"] < 20
    client.post(f"/api/runs/{made['id']}/resume")
    assert finished(client, made["id"])["done"] == 20
    assert client.post(f"/api/runs/{made['id']}/resume").status_code == 400


def test_the_next_run_of_the_same_table_uses_the_answers(client_of: Client, server: SystemOne) -> None:
    client = client_of(UpstreamEngine(server.address))
    finished(client, create(client)["id"])
    asked = len(server.bodies)
    again = finished(client, create(client)["id"])
    assert again["cached"] == 20
    assert len(server.bodies) <= asked + 1  # a look whether the server is there
    assert finished(client, create(client, cache="false")["id"])["cached"] == 0


@pytest.mark.parametrize("format_", ["csv", "jsonl", "parquet"])
def test_export(client: TestClient, format_: str) -> None:
    run = finished(client, create(client)["id"])
    response = client.get(f"/api/runs/{run['id']}/export", params={"format": format_})
    assert response.status_code == 200
    assert f"support-results.{format_}" in response.headers["content-disposition"]
    assert len(response.content) > 500


def test_delete_and_undo(client: TestClient) -> None:
    run = finished(client, create(client)["id"])
    restore = client.delete(f"/api/runs/{run['id']}").json()["restore"]
    assert client.get("/api/runs").json()["runs"] == []
    assert client.post(restore).status_code == 200
    assert len(client.get("/api/runs").json()["runs"]) == 1


def test_names_and_notes_change_and_are_searched(client: TestClient) -> None:
    run = finished(client, create(client)["id"])
    client.patch(f"/api/runs/{run['id']}", params={"name": "May", "note": "100% real"})
    for search, count in (("may", 1), ("100%", 1), ("june", 0), ("%", 1), ("_", 0)):
        assert len(client.get("/api/runs", params={"search": search}).json()["runs"]) == count


@pytest.mark.parametrize("path", ["", "/rows", "/rows/0", "/events", "/export"])
def test_a_run_that_is_not_there_is_404(client: TestClient, path: str) -> None:
    assert client.get(f"/api/runs/none{path}").status_code == 404


def test_runs_are_there_after_a_restart(client_of: Client, tmp_path: Any) -> None:
    first = client_of(data_dir=tmp_path)
    run = finished(first, create(first)["id"])
    first.__exit__(None, None, None)
    second = client_of(data_dir=tmp_path)
    assert second.get(f"/api/runs/{run['id']}").json()["summary"] == run["summary"]


def test_rows_that_are_too_long_are_listed_before_the_start_and_never_sent(client: TestClient) -> None:
    table = TABLE + "word " * 700 + ",Which team?,a,a|b,mail\n"
    planned = client.post("/api/runs/plan", content=table.encode()).json()
    sent = {"rows": 21, "requests": 21, "max_tokens": 512, "seconds": None}
    assert planned == sent | {"too_long": [{"row": 22, "tokens": 700, "limit": 512}]}
    run = finished(client, create(client, table)["id"])
    assert run["failed"] == 1
    (row,) = client.get(f"/api/runs/{run['id']}/rows", params={"show": "failed"}).json()["rows"]
    assert row["error"]["message"].startswith("too long: 700 of 512 tokens")
    assert row["elapsed_ms"] == 0


def test_a_plan_counts_the_requests_that_are_sent(client: TestClient) -> None:
    twice = TABLE + "".join(TABLE.splitlines(keepends=True)[1:])
    for table, shape, requests in ((TABLE, "isolated", 20), (twice, "isolated", 20), (twice, "joint", 20)):
        planned = client.post("/api/runs/plan", content=table.encode(), params={"shape": shape}).json()
        assert planned["requests"] == requests


def test_a_table_without_labels_is_labelled_when_asked_for(client: TestClient) -> None:
    table = "context,question,options\nrefund me,Which team?,billing|technical\n"
    assert client.post("/api/runs", content=table.encode()).status_code == 400
    run = finished(client, create(client, table, labels="optional")["id"])
    assert (run["summary"]["unlabelled"], run["summary"]["accuracy"]) == (1, None)
    (row,) = client.get(f"/api/runs/{run['id']}/rows").json()["rows"]
    assert row["prediction"] in ("billing", "technical")


def test_columns_that_were_named_once_are_remembered_for_the_header(client: TestClient) -> None:
    table = "mail,ask,right\nrefund me,Angry?,yes\nthank you,Angry?,no\n"
    assert client.post("/api/runs", content=table.encode()).status_code == 400
    named = ["state:mail", "question:ask", "label:right"]
    assert client.post("/api/runs", content=table.encode(), params={"columns": named}).status_code == 201
    preview = client.post("/api/tables/preview", content=table.encode()).json()
    assert (preview["problems"], preview["facts"]["used"]) == ([], 2)
    assert preview["warnings"][0]["code"] == "remembered"
    assert client.post("/api/runs", content=table.encode()).status_code == 201


def test_the_report_is_one_file(client: TestClient) -> None:
    run = finished(client, create(client)["id"])
    response = client.get(f"/api/runs/{run['id']}/report", params={"redact": "true"})
    assert "support-report.html" in response.headers["content-disposition"]
    assert "of 20 answered rows" in response.text
    assert "message 3" not in response.text


def test_a_run_may_be_called_otherwise_than_its_file(client: TestClient) -> None:
    assert create(client, title="Support, May")["name"] == "Support, May"
    assert create(client, title=" ")["name"] == "support.csv"


def test_only_some_rows_are_asked_where_that_is_wanted(client: TestClient) -> None:
    made = create(client, rows="7", seed="3")
    assert (made["rows"], made["facts"]["drawn"], made["facts"]["seed"]) == (7, 7, 3)
    assert finished(client, made["id"])["done"] == 7
    assert "drawn" not in create(client, rows="400")["facts"]
    plan = client.post("/api/runs/plan", params={"name": "t.csv", "rows": "7"}, content=TABLE).json()
    assert (plan["rows"], plan["requests"], plan["max_tokens"]) == (7, 7, 512)
    assert client.post("/api/runs/plan", params={"rows": "0"}, content=TABLE).status_code == 400


def test_a_plan_tells_how_long_it_takes_once_the_model_has_a_pace(client: TestClient) -> None:
    def seconds() -> float | None:
        told: float | None = client.post("/api/runs/plan", params={"name": "t.csv"}, content=TABLE).json()["seconds"]
        return told

    assert seconds() is None
    finished(client, create(client)["id"])
    measured = seconds()
    assert measured is not None
    assert 0 < measured < 5


def test_the_same_seed_draws_the_same_rows_in_their_order() -> None:
    there = [replace(example, row=2 + number // 2) for number, example in enumerate(examples(40))]
    first = drawn(there, 5, 1)
    assert first == drawn(there, 5, 1)
    assert any(drawn(there, 5, seed) != first for seed in range(2, 9))
    rows = [example.row for example in first]
    assert rows == sorted(rows)
    assert len(rows) == 2 * len(set(rows)) == 10
