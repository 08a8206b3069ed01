"""POST /api/evaluate: a CSV in, NDJSON out; a bad one refused whole; a client that leaves stops the work."""

import asyncio
import json
import random
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest
from aiohttp import web
from starlette.testclient import TestClient

from clef.engines.upstream import UpstreamEngine
from tests.fakes.system_one import SystemOne, even
from tests.http.conftest import Client, served

TABLE = """context,question,answer,options
I was charged twice,Which team?,billing,billing|technical
The app crashes,Which team?,technical,billing|technical
Hello,Which team?,,billing|technical
"""
CSV = {"Content-Type": "text/csv"}


def lines(client: TestClient, table: str | bytes, **parameters: str) -> list[dict[str, Any]]:
    content = table.encode() if isinstance(table, str) else table
    response = client.post("/api/evaluate", content=content, headers=CSV, params=parameters)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"].startswith("application/x-ndjson")
    return [json.loads(line) for line in response.text.splitlines()]


def test_start_rows_and_summary(client: TestClient) -> None:
    start, *rows, summary = lines(client, TABLE, name="support.csv")
    assert (start["type"], start["rows"], start["labelled"], start["unlabelled"]) == ("start", 3, 2, 1)
    assert [row["type"] for row in rows] == ["row"] * 3
    assert sorted(row["row"] for row in rows) == [2, 3, 4]
    assert [row["done"] for row in rows] == [1, 2, 3]
    unlabelled = next(row for row in rows if row["row"] == 4)
    assert (unlabelled["answer"], unlabelled["correct"], unlabelled["answer_probability"]) == (None, None, None)
    assert summary["type"] == "summary"
    assert (summary["answered"], summary["unlabelled"], summary["rows"]) == (2, 1, 3)
    assert summary["correct"] == sum(row["correct"] is True for row in rows)
    assert summary["accuracy"] == summary["correct"] / 2


def test_each_row_has_every_probability(client: TestClient) -> None:
    row = lines(client, TABLE)[1]
    assert {answer["answer"] for answer in row["answers"]} == {"billing", "technical"}
    assert sum(answer["probability"] for answer in row["answers"]) == pytest.approx(1)
    assert row["prediction"] == row["answers"][0]["answer"]


def test_an_invalid_table_is_400_with_every_problem_and_nothing_is_asked(client_of: Client, server: SystemOne) -> None:
    table = "context,question,answer,options\n,Which?,a,a|b\ntext,,a,a|b\ntext,Which?,zzz,a|b\n"
    response = client_of(UpstreamEngine(server.address)).post("/api/evaluate", content=table.encode(), headers=CSV)
    assert response.status_code == 400
    found = response.json()["error"]["problems"]
    assert sorted({problem["row"] for problem in found}) == [2, 3, 4]
    assert server.bodies == []


def test_the_good_rows_of_a_bad_table_run_when_asked_for(client: TestClient) -> None:
    table = "context,question,answer,options\n,Which?,a,a|b\ntext,Which?,b,a|b\n"
    start, *rows, summary = lines(client, table, bad_rows="skip")
    assert (start["rows"], start["skipped"]) == (1, 1)
    assert [row["row"] for row in rows] == [3]
    assert summary["rows"] == 1


@pytest.mark.parametrize("body", [b"", b"\n\n", b"context,question,answer\n", b"\x00\x01\x02", b"hello"])
def test_a_body_that_is_no_table_is_400_in_words(client: TestClient, body: bytes) -> None:
    response = client.post("/api/evaluate", content=body, headers=CSV)
    assert response.status_code == 400
    assert response.json()["error"]["message"]


def test_an_upload_over_the_limit_is_413_with_the_limit(client_of: Client) -> None:
    response = client_of(max_body=2000).post("/api/evaluate", content=TABLE.encode() * 100, headers=CSV)
    assert response.status_code == 413
    assert "0.002 MB" in response.json()["error"]["message"]


def test_an_upload_that_does_not_say_its_length_is_stopped_at_the_limit(client_of: Client) -> None:
    def pieces() -> Iterator[bytes]:
        for _ in range(100):
            yield TABLE.encode()

    response = client_of(max_body=2000).post("/api/evaluate", content=pieces(), headers=CSV)
    assert response.status_code == 413
    assert "0.002 MB" in response.json()["error"]["message"]


def test_too_many_rows_is_413_with_the_limit(client_of: Client) -> None:
    response = client_of(max_rows=2).post("/api/evaluate", content=TABLE.encode(), headers=CSV)
    assert response.status_code == 413
    assert "2" in response.json()["error"]["message"]


def test_a_row_that_is_too_long_fails_alone_and_is_asked_once(client_of: Client, server: SystemOne) -> None:
    message = "input (900 tokens) is too large to process. increase the physical batch size (current batch size: 512)"

    async def handler(server: SystemOne, body: dict[str, Any]) -> web.StreamResponse:
        if body["state"] == "The app crashes":
            return web.json_response({"error": {"message": message, "type": "server_error"}}, status=500)
        return web.json_response(even(body))

    server.handler = handler
    *rows, summary = lines(client_of(UpstreamEngine(server.address)), TABLE)[1:]
    failed = [row for row in rows if row["error"]]
    assert [(row["row"], row["error"]["code"]) for row in failed] == [(3, "too_long")]
    assert "900 of 512" in failed[0]["error"]["message"]
    assert failed[0]["correct"] is None
    assert (summary["failed"], summary["accuracy"], summary["accuracy_with_failures"]) == (1, 1.0, 0.5)
    assert sum(body["state"] == "The app crashes" for body in server.bodies) == 1


def test_an_engine_that_goes_away_cuts_the_stream_and_says_why(client_of: Client) -> None:
    *_, last = lines(client_of(UpstreamEngine("http://127.0.0.1:9")), TABLE)
    assert last["type"] == "cut"
    assert "CLEF_UPSTREAM" in last["reason"]
    assert (last["done"], last["rows"]) == (0, 3)


def test_results_can_be_downloaded_in_the_tables_order(client: TestClient) -> None:
    run = lines(client, TABLE, name="support.csv")[0]["run"]
    response = client.get(f"/api/runs/{run}/export")
    assert response.status_code == 200
    assert "support-results.csv" in response.headers["content-disposition"]
    text = response.content.decode("utf-8-sig")
    assert text.startswith("row,context,question,options,answer,prediction,confidence,answer_probability,correct,error")
    assert len(text.strip().splitlines()) == 4
    assert client.get("/api/runs/none/export").status_code == 404


def test_a_preview_asks_no_model(client_of: Client, server: SystemOne) -> None:
    client = client_of(UpstreamEngine(server.address))
    response = client.post("/api/tables/preview", content=(TABLE + "x,Which team?,zzz,billing|technical\n").encode())
    assert response.status_code == 200
    body = response.json()
    assert set(body) == {"facts", "examples", "problems", "warnings"}
    assert [problem["row"] for problem in body["problems"]] == [5]
    first = body["examples"][0]
    assert (first["row"], first["options"], first["label"]) == (2, ["billing", "technical"], "billing")
    assert server.bodies == []


def test_a_form_may_carry_the_table_and_a_file_of_questions(client: TestClient) -> None:
    questions = {
        "team": {"type": "choice", "instructions": "Which team?", "criteria": {"billing": None, "technical": None}},
        "angry": {"type": "noul", "instructions": "Angry?"},
    }
    table = "text,expected_team,expected_angry\nrefund me,billing,no\nit crashes!,technical,yes\n"
    files = {"table": ("wide.csv", table.encode()), "questions": ("questions.json", json.dumps(questions).encode())}
    body = client.post("/api/tables/preview", files=files).json()
    assert (body["problems"], body["facts"]["examples"]) == ([], 4)
    response = client.post("/api/evaluate", files=files)
    assert json.loads(response.text.splitlines()[-1])["answered"] == 4
    assert client.post("/api/tables/preview", files={"other": ("x.csv", b"x")}).status_code == 400
    broken = {"table": ("wide.csv", table.encode()), "questions": ("q.json", b"{")}
    assert client.post("/api/tables/preview", files=broken).status_code == 400


def test_ten_thousand_random_bodies_give_no_5xx(client: TestClient) -> None:
    chance = random.Random(3)
    heads = [b"", b"context,question,answer,options\n", b"\xff\xfe", b"PK\x03\x04", b"{", b"[", b"PAR1", b"sep=;\n"]
    for _ in range(10_000):
        body = chance.choice(heads) + chance.randbytes(chance.randrange(40))
        response = client.post("/api/tables/preview", content=body, headers=CSV)
        assert response.status_code < 500, body


def test_a_client_that_leaves_stops_the_work(server: SystemOne) -> None:
    async def slow(server: SystemOne, body: dict[str, Any]) -> web.StreamResponse:
        await asyncio.sleep(0.1)
        return web.json_response(even(body))

    server.handler = slow
    rows = "".join(f"text {n},True or not?,yes,yes|no\n" for n in range(200))
    table = ("context,question,answer,options\n" + rows).encode()
    with served(UpstreamEngine(server.address), eval_concurrency=4) as address:
        host, _, port = address.removeprefix("http://").partition(":")
        with socket.create_connection((host, int(port))) as client:
            head = f"POST /api/evaluate HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Length: {len(table)}\r\n\r\n"
            client.sendall(head.encode() + table)
            seen = b""
            while seen.count(b'"type":"row"') < 10:
                seen += client.recv(65536)
        asked = len(server.bodies)
        deadline = time.monotonic() + 1.5
        while time.monotonic() < deadline:
            assert len(server.bodies) <= asked + 4
            time.sleep(0.05)
        assert server.in_flight == 0
        assert server.most_in_flight == 4
