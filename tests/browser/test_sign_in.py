"""Signing in with a key, working, and signing out, as a person at a browser does it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from clef.engines.builtin import BuiltinEngine
from tests.browser.conftest import NewPage, served

pytestmark = pytest.mark.browser
KEY = "a-key-of-some-length"


@pytest.fixture
def keyed_address(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    monkeypatch.setenv("CLEF_API_KEY", KEY)
    with served(BuiltinEngine(), tmp_path) as address:
        yield address


def test_a_person_signs_in_decides_and_signs_out(open_page: NewPage, keyed_address: str) -> None:
    page = open_page(f"{keyed_address}/runs", watched=False)  # axe adds styles that the policy refuses
    expect(page).to_have_url(f"{keyed_address}/sign-in?then=%2Fruns")
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    page.get_by_label("Access key").fill("not the key")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("not one that clef knows")
    page.get_by_label("Access key").fill(KEY)
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{keyed_address}/runs")
    page.goto(f"{keyed_address}/?key={KEY}")
    expect(page).to_have_url(f"{keyed_address}/")
    page.keyboard.press("Control+Enter")
    expect(page.locator(".answer").first).to_be_visible()
    page.get_by_role("button", name="Sign out").click()
    expect(page).to_have_url(f"{keyed_address}/sign-in")
    page.goto(keyed_address)
    expect(page).to_have_url(f"{keyed_address}/sign-in")
