"""What the Ask page keeps of what was asked, over HTTP."""

import json
from typing import Any

import pytest
from starlette.testclient import TestClient

from clef.engines.builtin import BuiltinEngine
from clef.runs import asks
from clef.settings import load_settings
from clef.web.app import create_app


def draft(state: str = "The box came open.", **more: Any) -> str:
    questions = [{"type": "choice", "question": "Which team?", "answers": ["billing", "shipping"]}]
    return json.dumps({"state": state, "as": "text", "questions": questions, "how": "together"} | more)


def ask(client: TestClient, text: str) -> None:
    assert client.post("/ask", content=text).status_code == 200


def kept(client: TestClient, **query: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.get("/api/asks", params=query).json()["asks"]
    return found


def test_what_was_asked_is_listed_newest_first_and_opens_whole(client: TestClient) -> None:
    ask(client, draft("first"))
    ask(client, draft("second"))
    listed = kept(client)
    assert [line["words"].split()[0] for line in listed] == ["second", "first"]
    whole = client.get(f"/api/asks/{listed[1]['id']}").json()
    assert whole["draft"] == json.loads(draft("first"))
    assert {item["answer"] for item in whole["reply"]["results"][0]["answers"]} == {"billing", "shipping"}
    assert (whole["model"], whole["shape"]) == (whole["reply"]["model"], "isolated")
    opened = client.get(f"/ask/kept/{listed[1]['id']}").json()
    assert opened["draft"] == whole["draft"]
    assert f'data-ask="{listed[1]["id"]}"' in opened["answers"]


def test_it_is_there_after_a_restart() -> None:
    def started() -> TestClient:
        return TestClient(create_app(load_settings(), BuiltinEngine()), base_url="http://127.0.0.1:8000")

    with started() as client:
        ask(client, draft())
        client.patch("/api/asks", params={"keep": "false"})
    with started() as client:
        assert [line["questions"] for line in kept(client)] == [1]
        assert client.get("/api/asks").json()["keep"] is False


def test_the_same_asked_again_moves_up_and_is_not_doubled(client: TestClient) -> None:
    for state in ("one", "two", "one"):
        ask(client, draft(state))
    assert [line["words"].split()[0] for line in kept(client)] == ["one", "two"]


def test_a_search_looks_in_states_questions_and_answers(client: TestClient) -> None:
    ask(client, draft("100% cotton"))
    ask(client, draft("a parcel"))
    assert len(kept(client, search="0%")) == 1
    assert len(kept(client, search="which TEAM")) == 2
    assert len(kept(client, search="shipping")) == 2
    assert kept(client, search="nowhere") == []


def test_only_the_newest_are_kept(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asks, "MOST", 2)
    for state in ("one", "two", "three"):
        ask(client, draft(state))
    assert [line["words"].split()[0] for line in kept(client)] == ["three", "two"]
    monkeypatch.setattr(asks, "MOST_BYTES", 10)
    ask(client, draft("four"))
    assert [line["words"].split()[0] for line in kept(client)] == ["four"]


def test_one_or_all_are_deleted_and_an_unknown_one_is_not_found(client: TestClient) -> None:
    for state in ("one", "two", "three"):
        ask(client, draft(state))
    first = kept(client)[0]["id"]
    assert client.delete(f"/api/asks/{first}").json() == {"deleted": first}
    assert client.delete(f"/api/asks/{first}").status_code == 404
    assert client.get(f"/api/asks/{first}").status_code == 404
    assert client.get(f"/ask/kept/{first}").status_code == 404
    assert client.delete("/api/asks").json() == {"deleted": 2}
    assert kept(client) == []


def test_keeping_is_switched_off_and_what_was_kept_stays(client: TestClient) -> None:
    ask(client, draft("one"))
    assert client.patch("/api/asks", params={"keep": "false"}).json() == {"keep": False}
    ask(client, draft("two"))
    assert "data-ask" not in client.post("/ask", content=draft("two")).text
    answer = client.get("/api/asks").json()
    assert (answer["keep"], answer["kept"]) == (False, 1)
    client.patch("/api/asks", params={"keep": "true"})
    ask(client, draft("two"))
    assert len(kept(client)) == 2


def test_programs_leave_no_trace(client: TestClient) -> None:
    question = {"type": "noul", "instructions": "Is it?"}
    body = {"model": "clef", "state": "x", "questions": {"a": question}}
    assert client.post("/v1/systemone", json=body).status_code == 200
    asked = {"state": "x", "questions": [{"type": "noul", "question": "Is it?"}]}
    assert client.post("/api/predict", json=asked).status_code == 200
    assert kept(client) == []


def test_a_refused_request_is_not_kept(client: TestClient) -> None:
    assert client.post("/ask", content=draft("")).status_code == 400
    assert kept(client) == []


def test_half_a_character_and_markup_are_kept_as_text(client: TestClient) -> None:
    text = draft("<script>alert(1)</script>").replace("Which team?", "Which \\ud83d team?")
    ask(client, text)
    (line,) = kept(client)
    page = client.get("/ask/kept").text
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert client.get(f"/ask/kept/{line['id']}").status_code == 200
    assert client.get(f"/api/asks/{line['id']}").status_code == 200
