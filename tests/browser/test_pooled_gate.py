"""One gate for all questions, where each row asks its own: shown by itself, moved, saved, and switched."""

import re

import pytest
from playwright.sync_api import Page, expect

from clef.web import words
from tests.browser.conftest import NewPage
from tests.browser.runs import make_run, send
from tests.browser.test_everywhere import barriers

pytestmark = pytest.mark.browser

ROWS = 160


@pytest.fixture(scope="module")
def run_id(_staged_address: str) -> str:
    """A run in which every row asks a question of its own; the surer half is right."""
    rows = [
        [f"n {n} p={0.51 + n / 400:.4f}", f"Which team, {n}?", "ab"[n < ROWS // 2 and n % 2 == 0], "a|b|c"]
        for n in range(ROWS)
    ]
    return make_run(_staged_address, rows, header=("context", "question", "answer", "options"))


def rows_of(page: Page, rows: int) -> None:
    expect(page.locator(".chips [role=status]")).to_have_text(re.compile(rf"of {rows}$"))


def test_questions_that_have_labels_only_together_share_one_gate(
    staged_address: str, run_id: str, open_page: NewPage
) -> None:
    page = open_page(f"{staged_address}/runs/{run_id}")
    expect(page.locator("gate-slider")).to_have_count(1)
    expect(page.get_by_role("radio", name="all questions")).to_be_checked()
    expect(page.locator(".pooled")).to_contain_text("No question has the 50 labels")
    expect(page.locator(".pooled")).to_contain_text("takes them to be alike")
    expect(page.locator("gate-slider")).to_contain_text("On rows not used to choose it")
    slider = page.get_by_role("slider", name=f"Gate of all {ROWS} choice questions")
    slider.press("End")
    expect(page.locator("[data-part=errors]")).to_have_text(str(ROWS // 4))
    for _ in range(60):
        slider.press("ArrowLeft")
    acted = int(re.findall(r"^\d+", page.locator("[data-part=rows]").inner_text())[0])
    assert acted == ROWS - 60
    page.get_by_role("link", name="to check 60", exact=True).click()
    rows_of(page, 60)
    let_through = int(page.locator("[data-part=errors]").inner_text())
    page.get_by_role("link", name=f"wrong, not checked {let_through}").click()
    rows_of(page, let_through)
    page.get_by_role("textbox", name="Policy").fill("for all")
    page.get_by_role("button", name="Save as policy").click()
    expect(page.locator("[data-part=said]")).to_contain_text("Saved")
    policy = send(f"{staged_address}/api/policies/for%20all")
    pooled = policy.get("policy", policy)["pooled"]["choice"]
    assert words.threshold(pooled["thresholds"]["all"]) in page.locator("[data-part=at]").inner_text()
    assert pooled["measured"]["set_by_hand"] == ["all"]
    assert pooled["measured"]["pooled"] == ROWS
    acts = send(f"{staged_address}/api/runs/{run_id}?policy=for%20all")["gate"]
    assert acts["act"] == acted


def test_each_question_or_all_of_them_is_a_choice_that_the_address_holds(
    staged_address: str, run_id: str, open_page: NewPage
) -> None:
    page = open_page(f"{staged_address}/runs/{run_id}?labels=own")
    page.get_by_role("radio", name="each question").check(force=True)
    expect(page.locator(".gate-sum")).to_contain_text("a question needs 50")
    expect(page).to_have_url(re.compile("pool=each"))
    page.reload()
    expect(page.get_by_role("radio", name="each question")).to_be_checked()
    page.get_by_role("radio", name="all questions").check(force=True)
    expect(page.locator("gate-slider")).to_have_count(1)
    expect(page.locator(".pooled")).not_to_contain_text("No question has")
    page.get_by_role("radio", name="review budget").check(force=True)
    expect(page.get_by_label("Rows you check at most")).to_be_visible()
    expect(page).to_have_url(re.compile("pool=all"))
    expect(page).to_have_url(re.compile("gate=review"))
    expect(page.get_by_role("radio", name="all questions")).to_be_checked()


def test_one_question_has_no_such_choice_and_many_questions_are_folded(
    staged_address: str, run_id: str, open_page: NewPage
) -> None:
    page = open_page(f"{staged_address}/runs/{run_id}", watched=False)  # axe adds styles that the policy refuses
    expect(page.locator("gate-slider")).to_have_count(1)
    assert barriers(page, charts=False) == ""
    page.emulate_media(color_scheme="dark")
    page.set_viewport_size({"width": 360, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    expect(page.get_by_text(f"{ROWS - 12} more questions")).to_be_visible()
    one = make_run(staged_address, [[f"n {n} p=0.7", "Which?", "a", "a|b|c"] for n in range(60)], header=HEADER)
    page.goto(f"{staged_address}/runs/{one}")
    expect(page.locator("gate-slider")).to_have_count(1)
    expect(page.get_by_role("radio", name="all questions")).to_have_count(0)


HEADER = ("context", "question", "answer", "options")
