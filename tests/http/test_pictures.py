"""Images and videos of a request: checked before anything decodes them, and refused in words by who cannot see."""

import base64
from typing import Any

import pytest
from starlette.testclient import TestClient

from clef.engines.upstream import UpstreamEngine
from tests.fakes.pictures import look, png, url
from tests.fakes.system_one import SystemOne
from tests.http.conftest import Client

ASK: dict[str, Any] = {"model": "clef", "state": "s", "questions": {"a": {"type": "noul", "instructions": "?"}}}


@pytest.fixture
def seeing(client_of: Client, server: SystemOne) -> TestClient:
    server.handler = look
    return client_of(UpstreamEngine(server.address))


def test_images_and_videos_reach_a_server_that_takes_them(seeing: TestClient, server: SystemOne) -> None:
    images, videos = [url(png(2, 2)), url(png(3, 3))], [url(b"film", "video/mp4")]
    assert seeing.post("/v1/systemone", json=ASK | {"images": images, "videos": videos}).status_code == 200
    assert server.bodies[-1]["images"] == images
    assert server.bodies[-1]["videos"] == videos


def test_image_parts_of_messages_are_images(seeing: TestClient, server: SystemOne) -> None:
    part = {"type": "image_url", "image_url": {"url": url(png(2, 2))}}
    state = [{"role": "user", "content": [{"type": "text", "text": "look"}, part]}]
    assert seeing.post("/v1/systemone", json=ASK | {"state": state}).status_code == 200
    assert server.bodies[-1]["images"] == [url(png(2, 2))]
    assert server.bodies[-1]["state"][0]["content"][1] == {"type": "text", "text": "[image 1]"}


@pytest.mark.parametrize(
    ("change", "loc"),
    [
        ({"images": ["http://169.254.169.254/latest"]}, ["body", "images", 0]),
        ({"images": ["file:///etc/passwd"]}, ["body", "images", 0]),
        ({"images": [url(b"<svg/>", "image/svg+xml")]}, ["body", "images", 0]),
        ({"images": ["data:image/png;base64,@@@"]}, ["body", "images", 0]),
        ({"images": [url(png(60_000, 60_000))]}, ["body", "images", 0]),
        ({"images": [url(b"\x89PNG\r\n\x1a\n")]}, ["body", "images", 0]),
        ({"images": [url(png(2, 2))] * 9}, ["body", "images"]),
        ({"images": "x"}, ["body", "images"]),
        ({"videos": ["https://example.com/film.mp4"]}, ["body", "videos", 0]),
        ({"videos": [url(b"x", "video/mp4")] * 5}, ["body", "videos"]),
        (
            {"state": [{"content": [{"type": "image_url", "image_url": "file:///etc/passwd"}]}]},
            ["body", "state", 0, "content", 0],
        ),
        ({"assets": {"<image:1>": {"type": "image", "data_base64": "AAAA"}}}, ["body", "assets", "<image:1>"]),
        ({"assets": {"s": {"type": "image"}}}, ["body", "assets", "s"]),
        ({"assets": {"s": {"type": "image", "part": "asset-7"}}}, ["body", "assets", "s", "part"]),
        ({"assets": {"s": {"type": "film"}}}, ["body", "assets", "s"]),
        ({"assets": []}, ["body", "assets"]),
    ],
)
def test_what_is_no_image_is_refused_at_its_place_and_nothing_is_fetched(
    seeing: TestClient, server: SystemOne, change: dict[str, Any], loc: list[Any]
) -> None:
    response = seeing.post("/v1/systemone", json=ASK | change)
    assert response.status_code == 422
    assert loc in [detail["loc"] for detail in response.json()["detail"]]
    assert server.bodies == []


@pytest.mark.parametrize("change", [{"images": [url(png(2, 2))]}, {"videos": [url(b"film", "video/mp4")]}])
def test_a_model_that_reads_text_only_says_so(client: TestClient, change: dict[str, Any]) -> None:
    response = client.post("/v1/systemone", json=ASK | change)
    assert response.status_code == 400
    assert "reads" in response.json()["detail"]["message"]


def test_references_in_a_state_that_is_nested_too_deep_are_a_refusal_and_no_crash(seeing: TestClient) -> None:
    state: Any = "<image:1>"
    for _ in range(900):
        state = [state]
    assets = {"<image:1>": {"type": "image", "data_base64": base64.b64encode(png(2, 2)).decode()}}
    response = seeing.post("/v1/systemone", json=ASK | {"state": state, "assets": assets})
    assert response.status_code == 422


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"--x\r\n", "multipart/form-data"),
        (b"--x\r\nbroken", "multipart/form-data; boundary=x"),
        (
            b'--x\r\nContent-Disposition: form-data; name="other"\r\n\r\n{}\r\n--x--\r\n',
            "multipart/form-data; boundary=x",
        ),
    ],
)
def test_a_form_that_cannot_be_read_is_told_so(seeing: TestClient, content: bytes, kind: str) -> None:
    response = seeing.post("/v1/systemone", content=content, headers={"Content-Type": kind})
    assert response.status_code == 422
    assert "form" in response.json()["detail"][0]["msg"]


def test_the_images_of_a_table_reach_the_engine_and_bad_ones_do_not(seeing: TestClient, server: SystemOne) -> None:
    rows = [f'x,Q?,a,a|b,"{url(png(2, 2))}"', "y,Q?,a,a|b,file:///etc/passwd"]
    content = "\n".join(["context,question,answer,options,image", *rows]).encode()
    headers = {"Content-Type": "text/csv"}
    refused = seeing.post("/api/evaluate", content=content, headers=headers)
    assert refused.status_code == 400
    assert "image[0]" in refused.text
    assert seeing.post("/api/evaluate", content=content.rsplit(b"\n", 1)[0], headers=headers).status_code == 200
    assert [body["images"] for body in server.bodies if body["state"] == "x"] == [[url(png(2, 2))]]
    assert not [body for body in server.bodies if "passwd" in str(body)]


@pytest.mark.parametrize("state", [{}, {"state": ""}, {"state": " \n"}])
def test_an_image_may_be_all_there_is_to_decide_about(
    seeing: TestClient, server: SystemOne, state: dict[str, str]
) -> None:
    body = {"questions": [{"type": "noul", "question": "Is it a cat?"}], "images": [url(png(2, 2))]}
    assert seeing.post("/api/predict", json=body | state).status_code == 200
    assert server.bodies[-1]["state"] == state.get("state", "")
    assert "the state is empty" in seeing.post("/api/predict", json=body | state | {"images": []}).text
