"""What a stranger's page could make a person's browser send is refused; every answer is marked."""

import pytest
from starlette.testclient import TestClient

BODY = {"state": "s", "questions": [{"question": "?", "answers": ["a", "b"]}]}


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8000", "127.0.0.1.evil.example", "192.168.1.5:8000", ""]
)
def test_a_foreign_host_name_is_refused(client: TestClient, host: str) -> None:
    response = client.get("/api/health", headers={"Host": host})
    assert response.status_code == 403
    assert response.json()["error"]["code"] == "forbidden"


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:8000", "[::1]:8000"])
def test_names_of_this_machine_are_let_in(client: TestClient, host: str) -> None:
    assert client.get("/api/health", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:9999"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_a_change_from_another_origin_is_refused(client: TestClient, headers: dict[str, str]) -> None:
    assert client.post("/api/predict", json=BODY, headers=headers).status_code == 403


@pytest.mark.parametrize(
    "headers", [{}, {"Origin": "http://127.0.0.1:8000"}, {"Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": "none"}]
)
def test_programs_and_our_own_page_are_let_in(client: TestClient, headers: dict[str, str]) -> None:
    assert client.post("/api/predict", json=BODY, headers=headers).status_code == 200


@pytest.mark.parametrize("path", ["/", "/api/health", "/nothing-here", "/static/sample.csv"])
def test_every_answer_is_marked(client: TestClient, path: str) -> None:
    headers = client.get(path).headers
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"


def test_no_other_page_may_read_answers(client: TestClient) -> None:
    headers = client.get("/api/health", headers={"Origin": "https://evil.example"}).headers
    assert "access-control-allow-origin" not in headers


@pytest.mark.parametrize(("method", "path", "status"), [("GET", "/api/nothing", 404), ("DELETE", "/api/health", 405)])
def test_unknown_routes_have_the_one_error_body(client: TestClient, method: str, path: str, status: int) -> None:
    response = client.request(method, path)
    assert response.status_code == status
    assert set(response.json()["error"]) >= {"code", "message", "hint", "fault"}


def test_a_path_outside_the_static_files_is_not_read(client: TestClient) -> None:
    for path in ("/static/../app.py", "/static/%2e%2e/app.py", "/static//etc/passwd"):
        assert client.get(path).status_code == 404
