"""The images of a run's rows: shown by addresses of their own, and nothing else is to be had there."""

import base64
import json

import pytest
from starlette.testclient import TestClient

from clef.engines.upstream import UpstreamEngine
from tests.fakes.pictures import look, png, url
from tests.fakes.system_one import SystemOne
from tests.http.conftest import Client
from tests.http.test_runs import finished
from tests.tables.test_files import packed

TABLE = f'image,label\n"{url(png(2, 2))}",cat\n"{url(png(3, 2))}",dog\n"{url(png(4, 2))}",dog\n'


@pytest.fixture
def seeing(client_of: Client, server: SystemOne) -> TestClient:
    server.handler = look
    return client_of(UpstreamEngine(server.address))


@pytest.fixture
def run(seeing: TestClient) -> str:
    parameters = {"columns": "question:=Which animal?"}
    response = seeing.post("/api/runs", content=TABLE.encode(), headers={"Content-Type": "text/csv"}, params=parameters)
    assert response.status_code == 201, response.text
    return str(response.json()["id"])


def test_an_image_of_a_row_has_an_address(seeing: TestClient, run: str) -> None:
    finished(seeing, run)
    page = seeing.get(f"/runs/{run}").text
    for position in range(3):
        address = f"/runs/{run}/rows/{position}/images/1"
        assert f'src="{address}"' in page
        shown = seeing.get(address)
        assert (shown.status_code, shown.headers["content-type"]) == (200, "image/png")
        assert shown.headers["x-content-type-options"] == "nosniff"
        assert shown.content == png(2 + position, 2)
        for fragment in (f"rows/{position}", f"review/{position}"):
            assert f'src="{address}"' in seeing.get(f"/runs/{run}/{fragment}").text
    assert base64.b64encode(png(2, 2)).decode() not in page


@pytest.mark.parametrize("place", ["rows/0/images/0", "rows/0/images/2", "rows/3/images/1", "rows/0/images/-1"])
def test_what_is_no_image_of_the_run_is_not_there(seeing: TestClient, run: str, place: str) -> None:
    finished(seeing, run)
    assert seeing.get(f"/runs/{run}/{place}").status_code == 404
    assert seeing.get(f"/runs/other/{place}").status_code == 404


def test_the_first_rows_of_a_table_say_how_many_images_they_have(seeing: TestClient) -> None:
    parameters = {"columns": "question:=Which animal?"}
    headers = {"Content-Type": "text/csv"}
    preview = seeing.post("/api/tables/preview", content=TABLE.encode(), headers=headers, params=parameters).json()
    assert [example["images"] for example in preview["examples"]] == [1, 1, 1]
    assert preview["facts"]["roles"]["images"] == "image"


def test_an_archive_of_images_in_folders_is_previewed_and_asked(seeing: TestClient) -> None:
    body = packed({f"{label}/{n}.png": png(2 + n, 2) for label in ("cat", "dog") for n in range(2)})
    parameters = {"name": "pets.zip", "columns": "question:=Which animal?"}
    preview = seeing.post("/api/tables/preview", content=body, params=parameters).json()
    assert preview["problems"] == []
    assert preview["facts"]["format"] == "zip"
    made = seeing.post("/api/runs", content=body, params=parameters)
    assert made.status_code == 201, made.text
    finished(seeing, made.json()["id"])
    exported = seeing.get(f"/api/runs/{made.json()['id']}/export?format=jsonl").text
    assert sorted(json.loads(line)["file"] for line in exported.splitlines()) == [
        "cat/0.png",
        "cat/1.png",
        "dog/0.png",
        "dog/1.png",
    ]
    assert seeing.get(f"/runs/{made.json()['id']}/rows/0/images/1").content == png(2, 2)
    labelled = {**parameters, "labels": "optional"}
    assert seeing.post("/api/tables/preview", content=body, params=labelled).status_code == 200
