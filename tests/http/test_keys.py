"""Access keys: who gets in, how a browser gets a session, and what guessing leads to."""

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from clef.engines.builtin import BuiltinEngine
from clef.errors import SettingsError
from clef.settings import load_settings
from clef.web.app import create_app
from clef.web.keys import ADDRESSES, SESSION_S, WRONG_KEYS, Keys, Throttle, Throttled, Unauthorized
from clef.web.reach import reach_of
from tests.http.conftest import Client, served

KEY, OTHER = "a-key-of-some-length", "another-key-for-ci"
BOTH = f"anna:{KEY},ci:{OTHER}"
ASK = {"state": "s", "questions": [{"question": "?", "answers": ["a", "b"]}]}
ASK_V1 = {"model": "clef", "state": "s", "questions": {"a": {"type": "noul", "instructions": "?"}}}
OURS = {"Origin": "http://127.0.0.1:8000"}


@pytest.fixture
def keyed(client_of: Client, monkeypatch: pytest.MonkeyPatch) -> TestClient:
    monkeypatch.setenv("CLEF_API_KEY", BOTH)
    client = client_of()
    client.follow_redirects = False
    return client


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


@pytest.mark.parametrize(
    "headers", [bearer(KEY), bearer(OTHER), {"x-api-key": KEY}, {"authorization": f"bearer {KEY}"}]
)
def test_each_key_opens_the_api(keyed: TestClient, headers: dict[str, str]) -> None:
    assert keyed.post("/api/predict", json=ASK, headers=headers).status_code == 200
    assert keyed.post("/v1/systemone", json=ASK_V1, headers=headers).status_code == 200


@pytest.mark.parametrize(
    "headers", [{}, bearer("wrong"), bearer(""), {"x-api-key": KEY[:-1]}, {"Authorization": "Basic eDp5"}]
)
@pytest.mark.parametrize("path", ["/api/health", "/api/runs", "/api/nothing", "/openapi.json", "/v1/models"])
def test_without_one_the_api_is_shut(keyed: TestClient, path: str, headers: dict[str, str]) -> None:
    response = keyed.get(path, headers=headers)
    assert response.status_code == 401
    assert response.headers["www-authenticate"] == "Bearer"
    if path.startswith("/v1"):
        assert response.json()["detail"]["error_type"] == "authentication_error"
        assert response.headers["x-typesafe-request-id"]
    else:
        assert response.json()["error"]["code"] == "unauthorized"
    assert KEY not in response.text


def test_nothing_is_asked_for_on_this_machine_unless_a_key_is_set(client: TestClient) -> None:
    assert client.get("/api/health").status_code == 200
    assert client.get("/api/health", headers=bearer("anything")).status_code == 200
    assert client.get("/sign-in", follow_redirects=False).headers["location"] == "/"


def test_a_local_program_has_its_own_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEF_API_KEY", KEY)
    app = create_app(load_settings(), BuiltinEngine(), local_token="token-of-this-process")
    with TestClient(app, base_url="http://127.0.0.1:8000") as client:
        assert client.get("/api/health", headers=bearer("token-of-this-process")).status_code == 200
        assert client.get("/api/health").status_code == 401


def sign_in(client: TestClient, **fields: str) -> Any:
    return client.post("/sign-in", data={"key": KEY, **fields}, headers=OURS)


def test_a_browser_is_led_to_the_sign_in_page_and_back(keyed: TestClient) -> None:
    led = keyed.get("/runs?state=failed")
    assert (led.status_code, led.headers["location"]) == (303, "/sign-in?then=%2Fruns%3Fstate%3Dfailed")
    page = keyed.get(led.headers["location"])
    assert 'value="/runs?state=failed"' in page.text
    back = sign_in(keyed, then="/runs?state=failed")
    assert (back.status_code, back.headers["location"]) == (303, "/runs?state=failed")
    assert keyed.get("/runs?state=failed").status_code == 200
    assert keyed.post("/api/predict", json=ASK, headers=OURS).status_code == 200


def test_the_cookie_is_for_this_page_alone(keyed: TestClient) -> None:
    cookie = sign_in(keyed).headers["set-cookie"]
    assert {"HttpOnly", "SameSite=strict", "Path=/"} <= set(cookie.split("; "))
    assert "Secure" not in cookie
    assert KEY not in cookie


def test_behind_https_the_cookie_is_secure(monkeypatch: pytest.MonkeyPatch) -> None:
    import httpx2

    monkeypatch.setenv("CLEF_API_KEY", KEY)
    with served(BuiltinEngine()) as address:
        response = httpx2.get(f"{address}/?key={KEY}", headers={"X-Forwarded-Proto": "https"})
    assert "Secure" in response.headers["set-cookie"]


def test_the_printed_link_signs_in_and_leaves_a_clean_address(keyed: TestClient) -> None:
    for _ in range(2):  # and again by somebody who is signed in
        led = keyed.get(f"/runs?state=failed&key={KEY}")
        assert (led.status_code, led.headers["location"]) == (303, "/runs?state=failed")
        assert led.headers["cache-control"] == "no-store"
        assert keyed.get("/runs").status_code == 200
    keyed.cookies.clear()
    wrong = keyed.get("/?key=wrong")
    assert wrong.status_code == 401
    assert "not one that clef knows" in wrong.text
    assert "set-cookie" not in wrong.headers


@pytest.mark.parametrize(
    "then", ["//evil.example", "https://evil.example/", "/\\evil.example", "javascript:alert(1)", ""]
)
def test_signing_in_leads_nowhere_else(keyed: TestClient, then: str) -> None:
    assert sign_in(keyed, then=then).headers["location"] == "/"


def test_signing_out_ends_the_session_even_for_a_copy_of_it(keyed: TestClient) -> None:
    sign_in(keyed)
    assert "Sign out" in keyed.get("/").text
    copy = dict(keyed.cookies)
    assert keyed.post("/sign-out", headers=OURS).headers["location"] == "/sign-in"
    assert not keyed.cookies
    keyed.cookies.update(copy)
    assert keyed.get("/api/health").status_code == 401


def test_a_change_with_a_session_has_to_come_from_the_page(keyed: TestClient) -> None:
    sign_in(keyed)
    assert keyed.post("/api/predict", json=ASK).status_code == 403
    assert keyed.post("/api/predict", json=ASK, headers={"Origin": "https://evil.example"}).status_code == 403
    assert keyed.post("/api/predict", json=ASK, headers={"Sec-Fetch-Site": "same-origin"}).status_code == 200


def test_a_link_on_another_site_finds_the_session_on_its_second_way(keyed: TestClient) -> None:
    foreign = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    first = keyed.get("/runs", headers=foreign)
    assert first.status_code == 200
    assert 'http-equiv="refresh"' in first.text
    assert keyed.get("/runs", headers={**foreign, "Sec-Fetch-Site": "same-origin"}).status_code == 303


def test_a_fragment_without_a_session_leads_the_page_to_signing_in(keyed: TestClient) -> None:
    response = keyed.get("/engine/standing", headers={"HX-Request": "true"})
    assert (response.status_code, response.headers["hx-redirect"]) == (401, "/sign-in")


def test_guessing_is_throttled_and_a_stale_key_is_not(keyed: TestClient) -> None:
    for _ in range(3 * WRONG_KEYS):
        assert keyed.get("/api/health", headers=bearer("a-stale-key-in-a-script")).status_code == 401
    assert keyed.get("/api/health", headers=bearer(KEY)).status_code == 200
    for n in range(WRONG_KEYS):
        keyed.get("/api/health", headers=bearer(f"guess {n}"))
    waits = keyed.get("/api/health", headers=bearer(KEY))
    assert waits.status_code == 429
    assert int(waits.headers["retry-after"]) > 0
    assert "Wait" in sign_in(keyed).text


def test_the_wait_ends_and_memory_is_bounded() -> None:
    now = 0.0
    throttle = Throttle(lambda: now)
    for n in range(WRONG_KEYS):
        throttle.count("10.0.0.1", bytes([n]) * 8)
    with pytest.raises(Throttled):
        throttle.check("10.0.0.1")
    throttle.check("10.0.0.2")
    now = 61.0
    throttle.check("10.0.0.1")
    for n in range(2 * ADDRESSES):
        throttle.count(f"{n >> 8}.{n & 255}.0.1", b"12345678")
    assert len(throttle._tries) <= ADDRESSES
    for n in range(WRONG_KEYS):  # one customer has 2^64 of these
        throttle.count(f"2001:db8::{n:x}", bytes([n]) * 8)
    with pytest.raises(Throttled):
        throttle.check("2001:db8::ffff")


def test_a_session_ends_with_its_time_its_key_and_any_change_to_it() -> None:
    now = 1000.0
    keys = Keys({"anna": KEY, "ci": OTHER}, lambda: now)
    session = keys.session("anna")
    assert keys.session_name(session) == "anna"
    assert keys.session_name(session.replace("anna", "ci")) is None
    assert Keys({"anna": OTHER}, lambda: now).session_name(session) is None
    for broken in ("", ".", "anna", "anna.x.y.z", session[:-1], "é.1.2.3"):
        assert keys.session_name(broken) is None
    now += SESSION_S
    assert keys.session_name(session) is None


def test_every_key_is_compared_whether_or_not_one_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    import hmac

    compared: list[bytes] = []
    real = hmac.compare_digest

    def counting(a: Any, b: Any) -> bool:
        compared.append(b)
        return bool(real(a, b))

    monkeypatch.setattr("clef.web.keys.hmac.compare_digest", counting)
    keys = Keys({str(n): f"key number {n} of many" for n in range(5)})
    keys.name_of("key number 0 of many", "here")
    with pytest.raises(Unauthorized):
        keys.name_of("wrong", "here")
    assert len(compared) == 10


def test_beyond_this_machine_a_key_is_made_and_kept_for_the_user_alone(tmp_path: Path) -> None:
    reach = reach_of(load_settings(host="0.0.0.0", data_dir=tmp_path / "new"))
    path = tmp_path / "new" / "access.key"
    assert reach.made_key == path.read_text().strip()
    assert len(str(reach.made_key)) >= 32
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert reach_of(load_settings(host="0.0.0.0", data_dir=tmp_path / "new")).made_key == reach.made_key
    os.chmod(path, 0o644)
    with pytest.raises(SettingsError, match="others"):
        reach_of(load_settings(host="0.0.0.0", data_dir=tmp_path / "new"))


@pytest.mark.parametrize(
    ("options", "hosts", "foreign"),
    [
        ({}, ["localhost", "127.0.0.1:1", "[::1]"], ["10.0.0.9", "box.example", "", "[::1", "a b"]),
        ({"host": "0.0.0.0"}, ["10.0.0.9:8000", "[fe80::1]", "localhost"], ["evil.example", "10.0.0.9.evil.example"]),
        ({"allowed_hosts": "clef.example.com"}, ["CLEF.example.com:443"], ["example.com", "x.clef.example.com"]),
        ({"allowed_hosts": "*.example.com"}, ["a.example.com"], ["example.com", "evilexample.com"]),
    ],
)
def test_the_names_it_answers_to(options: dict[str, str], hosts: list[str], foreign: list[str]) -> None:
    reach = reach_of(load_settings(**options))
    assert [host for host in hosts if not reach.answers_to(host)] == []
    assert [host for host in foreign if reach.answers_to(host)] == []
    assert bool(reach.keys) == bool(options)


@pytest.mark.parametrize(
    ("value", "said"),
    [("short", "16"), (f"a:{KEY},a:{OTHER}", "taken"), (f"a b:{KEY}", "letters"), (f"local:{KEY}", "taken")],
)
def test_a_key_that_cannot_be_used_is_told_without_telling_it(
    monkeypatch: pytest.MonkeyPatch, value: str, said: str
) -> None:
    monkeypatch.setenv("CLEF_API_KEY", value)
    with pytest.raises(SettingsError) as caught:
        load_settings()
    assert said in caught.value.message
    assert value not in str(caught.value)
    assert KEY not in str(caught.value)


Cors = Callable[..., TestClient]


@pytest.fixture
def shared(client_of: Client, monkeypatch: pytest.MonkeyPatch) -> TestClient:
    monkeypatch.setenv("CLEF_API_KEY", KEY)
    return client_of(cors_origins="https://app.example.com")


def test_a_named_origin_may_call_the_api_with_a_key_and_never_with_a_session(shared: TestClient) -> None:
    origin = {"Origin": "https://app.example.com"}
    asked = shared.options("/v1/systemone", headers={**origin, "Access-Control-Request-Method": "POST"})
    assert asked.status_code == 204
    assert "authorization" in asked.headers["access-control-allow-headers"]
    done = shared.post("/v1/systemone", json=ASK_V1, headers={**origin, **bearer(KEY)})
    assert done.status_code == 200
    assert done.headers["access-control-allow-origin"] == "https://app.example.com"
    assert "access-control-allow-credentials" not in done.headers
    assert shared.post("/v1/systemone", json=ASK_V1, headers=origin).status_code == 401
    assert shared.post("/sign-in", data={"key": KEY}, headers=origin).status_code == 403


def test_an_origin_that_is_not_named_may_not(shared: TestClient) -> None:
    origin = {"Origin": "https://evil.example"}
    assert "access-control-allow-origin" not in shared.get("/v1/models", headers={**origin, **bearer(KEY)}).headers
    assert shared.post("/v1/systemone", json=ASK_V1, headers={**origin, **bearer(KEY)}).status_code == 403
