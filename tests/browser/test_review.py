"""Reviewing a run, one row at a time and by keys alone: what is said is kept, counted, undone and taken away."""

import csv
import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import NewPage
from tests.browser.runs import graded, make_run, send
from tests.browser.test_everywhere import barriers

pytestmark = pytest.mark.browser
HOSTILE = "<img src=x onerror=document.title=1>"
AT_WORK = re.compile(r"/review\?.*\brow=")
"""The review names its row in the address once it listens to keys; what is pressed before is lost."""


def test_a_run_is_reviewed_by_keys_alone_and_the_numbers_follow(
    staged_address: str, open_page: NewPage, tmp_path: Path
) -> None:
    run = make_run(staged_address, graded(12), name="graded.csv")  # 9 right; rows 1, 3 and 5 are wrong
    page = open_page(f"{staged_address}/runs/{run}?show=wrong")
    page.get_by_role("link", name="Review", exact=True).click()
    page.wait_for_url(AT_WORK)
    heading = page.locator("[data-part=heading]")
    done = page.locator("[data-part=done]")
    expect(done).to_have_text("0 of 3")
    expect(heading).to_have_text("Row 3")
    page.keyboard.press("Enter")
    expect(heading).to_have_text("Row 5")
    expect(heading).to_be_focused()
    expect(page.locator("[data-part=tally]")).to_have_text("1 corrected")
    page.keyboard.press("s")
    expect(heading).to_have_text("Row 7")
    page.wait_for_url(re.compile("show=wrong&row=5"))
    page.keyboard.press("k")
    expect(heading).to_have_text("Row 5")
    page.keyboard.press("3")
    expect(heading).to_have_text("Row 7")
    page.keyboard.press("l")
    expect(page.get_by_role("heading", name="That was all of them.")).to_be_focused()
    expect(page.locator("[data-part=sum]")).to_contain_text("2 corrected · 1 confirmed")
    page.keyboard.press("u")
    expect(heading).to_have_text("Row 7")
    expect(page.locator("[data-part=tally]")).to_have_text("2 corrected")
    page.reload()
    expect(done).to_have_text("0 of 1")
    page.keyboard.press("l")
    with page.expect_download() as waiting:
        page.get_by_role("link", name="Download the corrected table").click()
    waiting.value.save_as(tmp_path / "corrected.csv")
    with (tmp_path / "corrected.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["answer"] for row in rows[1:6:2]] == ["billing", "returns", "shipping"]
    assert [row["review"] for row in rows[:6]] == ["", "corrected", "", "corrected", "", "confirmed"]
    page.get_by_role("link", name="See the numbers").click()
    expect(page.locator(".headline-words")).to_contain_text("10 of 12")
    expect(page.locator(".reviewed")).to_contain_text("2 labels corrected by you, 1 confirmed")


def test_rows_without_labels_get_them_in_review(staged_address: str, open_page: NewPage) -> None:
    rows = [[f"{HOSTILE} {number} p=0.{60 + number}", HOSTILE, "", f"{HOSTILE}|b", HOSTILE] for number in range(3)]
    run = make_run(staged_address, rows)
    page = open_page(f"{staged_address}/runs/{run}", width=360)
    expect(page.locator(".headline-figure")).to_have_text("No accuracy")
    page.get_by_role("link", name="Review", exact=True).click()
    page.wait_for_url(AT_WORK)
    expect(page.locator(".state")).to_contain_text(HOSTILE)
    expect(page.get_by_role("button", name="The label is right")).to_be_disabled()
    page.get_by_label("Note, kept with your next answer").fill(f"{HOSTILE} note")
    page.locator("[data-part=heading]").focus()
    for key, left in (("Enter", "1 of 3"), ("2", "2 of 3"), ("Enter", "3 of 3")):
        page.keyboard.press(key)
        expect(page.locator("[data-part=done]")).to_have_text(left)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert page.title() != "1"
    said = send(f"{staged_address}/api/runs/{run}/corrections")
    assert (said["reviewed"], said["corrected"], said["corrections"][0]["note"]) == (3, 3, f"{HOSTILE} note")
    page.get_by_role("link", name="See the numbers").click()
    expect(page.locator(".headline-words")).to_contain_text("2 of 3")


def test_what_cannot_be_kept_is_said_and_the_row_stays(staged_address: str, open_page: NewPage) -> None:
    run = make_run(staged_address, graded(4))
    page = open_page(f"{staged_address}/runs/{run}/review", intercepted=True)
    page.route("**/label", lambda route: route.abort())
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("clef does not answer")
    expect(page.locator("[data-part=done]")).to_have_text("0 of 4")
    page.unroute("**/label")
    page.keyboard.press("Enter")
    expect(page.locator("[data-part=done]")).to_have_text("1 of 4")
    send(f"{staged_address}/api/runs/{run}", "DELETE")
    page.goto(f"{staged_address}/runs/none/review")
    expect(page.locator("main")).to_contain_text("No run")


def test_labels_to_check_lead_into_the_review(staged_address: str, open_page: NewPage) -> None:
    rows = graded(30)
    rows[28][2] = "returns"  # p = 0.97, and the table says otherwise
    run = make_run(staged_address, rows)
    page = open_page(f"{staged_address}/runs/{run}")
    page.get_by_role("link", name="Row 30", exact=True).last.click()
    expect(page.locator(".drawer .state")).to_contain_text("message 28 ")
    page.get_by_role("link", name="Check 1 label").click()
    expect(page.locator("[data-part=heading]")).to_have_text("Row 30")
    expect(page.locator("[data-part=done]")).to_have_text("0 of 1")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_barrier_in_review(staged_address: str, open_page: NewPage, theme: str) -> None:
    run = make_run(staged_address, graded(2))
    width = 360 if theme == "dark" else 1440
    page = open_page(f"{staged_address}/runs/{run}/review", width=width, theme=theme, watched=False)
    assert barriers(page) == ""
    page.keyboard.press("s")
    page.keyboard.press("s")
    expect(page.locator("[data-part=end]")).to_be_visible()
    assert barriers(page) == ""
    assert page.evaluate("document.documentElement.scrollWidth") <= width
