"""The list of runs as a page, over HTTP."""

import pytest
from starlette.testclient import TestClient

from tests.http.test_runs import create, finished


@pytest.fixture
def listed(client: TestClient) -> TestClient:
    """A client of a clef with three runs."""
    for title in ("b", "A", "c"):
        finished(client, create(client, title=title)["id"])
    return client


def names(client: TestClient, **query: str) -> list[str]:
    page = client.get("/runs", params=query)
    assert page.status_code == 200
    return [part.partition("<")[0] for part in page.text.split('dir="auto">')[1:] if part[:1] in "bAc"]


def test_an_address_holds_order_search_and_state(listed: TestClient) -> None:
    assert names(listed) == ["c", "A", "b"]
    assert names(listed, sort="name") == ["A", "b", "c"]
    assert names(listed, sort="name", order="desc") == ["c", "b", "A"]
    assert sorted(names(listed, sort="right")) == ["A", "b", "c"]
    assert names(listed, search="a") == ["A"]
    assert names(listed, show="finished", sort="started", order="asc") == ["b", "A", "c"]
    assert names(listed, show="live") == []


@pytest.mark.parametrize("query", [{"sort": "x"}, {"show": "'"}, {"page": "-1"}, {"page": "9" * 30}, {"order": "?"}])
def test_an_address_that_makes_no_sense_is_the_list(listed: TestClient, query: dict[str, str]) -> None:
    assert names(listed, **query) == ["c", "A", "b"]


def test_there_are_words_for_a_list_without_runs(client: TestClient) -> None:
    assert "No run yet." in client.get("/runs").text
    finished(client, create(client)["id"])
    assert "No run is called" in client.get("/runs?search=nowhere").text
    assert "No run is ended early." in client.get("/runs?show=cut").text
