"""Comparing runs: the sentence, the differences, and the rows that changed."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import NewPage
from tests.browser.runs import graded, make_run
from tests.browser.test_everywhere import barriers

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def two(_staged_address: str) -> tuple[str, str]:
    """A run, and one in which a question is worded so that the engine always takes the last option."""
    rows = graded(40)
    first = make_run(_staged_address, rows, name="before")
    other = [[row[0], "Which team, the last?", *row[2:]] for row in rows]
    return first, make_run(_staged_address, other, name="after <b>bold</b>")


def test_two_runs_are_chosen_and_compared_row_by_row(
    staged_address: str, two: tuple[str, str], open_page: NewPage
) -> None:
    page = open_page(f"{staged_address}/runs/{two[0]}")
    page.get_by_role("link", name="Compare").click()
    expect(page.locator("input[type=checkbox]:checked")).to_have_count(1)
    page.locator("label.check", has_text="after <b>bold</b>").click()
    page.get_by_role("button", name="Compare").click()
    expect(page.locator(".verdict")).to_contain_text(re.compile("fixed.*broken.*: (not )?decisive"))
    expect(page.locator(".pairing")).to_contain_text(re.compile("rows"))
    expect(page.locator(".differences tbody tr").first).to_contain_text("all")
    expect(page.locator("svg.forest").first).to_be_visible()
    expect(page.locator(".pairing")).to_contain_text("worded differently")
    count = int(page.locator(".chips .chip", has_text="broken").inner_text().split()[-1])
    assert count == 30
    page.locator(".chips .chip", has_text="broken").click()
    page.wait_for_url(re.compile("show=broken"))
    expect(page.locator(".flips tbody tr")).to_have_count(count)
    page.reload()
    expect(page.locator(".chip[aria-current]")).to_contain_text("broken")
    page.locator(".flips tbody a").first.click()
    page.wait_for_url(re.compile(rf"/runs/{two[0]}\?row=\d+"))
    expect(page.locator(".drawer .state")).to_be_visible()


def test_the_difference_of_a_question_leads_to_its_rows(staged_address: str, open_page: NewPage) -> None:
    def rows(team: str) -> list[list[str]]:
        asked = [(row, team) for row in graded(6)] + [(row, "Which one?") for row in graded(4)]
        return [[row[0], question, *row[2:]] for row, question in asked]

    first, second = (make_run(staged_address, rows(team), name=team) for team in ("Which?", "Which, the last?"))
    page = open_page(f"{staged_address}/compare?run={first}&run={second}")
    assert page.locator(".flips tbody tr").count() > 0
    page.locator(".differences").get_by_role("link", name="Which one?").press("Enter")
    page.wait_for_url(re.compile("question=Which"))
    expect(page.locator(".chip.removable")).to_contain_text("Which one?")
    expect(page.locator(".flips tbody tr")).to_have_count(0)


def test_three_runs_are_compared_after_holm_and_unlike_ones_say_why(
    staged_address: str, two: tuple[str, str], open_page: NewPage
) -> None:
    other = make_run(staged_address, [["quite another text", "Which team?", "a", "a|b", ""]], name="other")
    page = open_page(f"{staged_address}/compare?run={two[0]}&run={two[1]}&run={other}")
    expect(page.locator("main")).to_contain_text("3 pairs are compared, so their p values are raised after Holm")
    expect(page.locator(".pairing")).to_have_count(3)
    expect(page.locator("main")).to_contain_text("no labelled row in common")
    page.goto(f"{staged_address}/compare?run={two[0]}&run=none")
    expect(page.locator("main")).to_contain_text("No run")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_barrier_in_a_comparison(staged_address: str, two: tuple[str, str], open_page: NewPage, theme: str) -> None:
    width = 360 if theme == "dark" else 1440
    page = open_page(f"{staged_address}/compare?run={two[0]}&run={two[1]}", width=width, theme=theme, watched=False)
    assert barriers(page) == ""
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.goto(f"{staged_address}/compare")
    assert barriers(page) == ""
