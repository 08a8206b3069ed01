"""Evaluate and the page of a run, as a person uses them."""

import csv
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from clef.web.assets import STATIC
from tests.browser.conftest import NewPage
from tests.browser.staged import StagedEngine

pytestmark = pytest.mark.browser

HEADER = "context,question,answer,options"


def choose(page: Page, name: str, text: str) -> None:
    page.set_input_files("#file", {"name": name, "mimeType": "text/csv", "buffer": text.encode()})


def run(page: Page) -> None:
    page.get_by_role("button", name="Evaluate", exact=True).click()


def table(*states: str) -> str:
    return "\n".join([HEADER, *(f"{state},Is it good?,yes,yes;no" for state in states)]) + "\n"


def test_the_sample_is_evaluated_and_its_results_downloaded(address: str, open_page: NewPage, tmp_path: Path) -> None:
    page = open_page(f"{address}/evaluate")
    page.get_by_role("button", name="Try the sample").click()
    expect(page.locator("[data-part=facts]")).to_contain_text("33 rows · 6 questions · 1 without a label")
    run(page)
    page.wait_for_url(re.compile(r"/runs/\w+#result"))
    expect(page.locator("#result")).to_be_focused()
    expect(page.locator(".headline-figure")).to_have_text(re.compile(r"\d+\.\d % right"))
    expect(page.locator(".headline-words")).to_contain_text("of 32 answered rows")
    expect(page.locator(".headline-words")).to_contain_text("1 row has no label")
    expect(page.locator(".by-question .tall")).to_have_count(6)
    expect(page.locator(".rows > tbody > tr:not(.details)")).to_have_count(33)

    with page.expect_download() as waiting:
        page.get_by_role("link", name="Download results").click()
    waiting.value.save_as(tmp_path / "results.csv")
    rows = list(csv.reader((tmp_path / "results.csv").read_text("utf-8-sig").splitlines(keepends=True)))
    assert len(rows) == 34


def test_rows_are_ranked_filtered_and_opened(address: str, open_page: NewPage) -> None:
    page = open_page(f"{address}/evaluate")
    choose(page, "sample.csv", (STATIC / "sample.csv").read_text("utf-8"))
    run(page)
    page.wait_for_url(re.compile(r"/runs/\w+#result"))
    rows = page.locator(".rows > tbody > tr:not(.details)")
    wrong = page.locator(".chip").filter(has_text="wrong")
    count = int(wrong.locator("b").inner_text())
    wrong.click()
    expect(page.locator(".chip[aria-current]")).to_contain_text("wrong")
    expect(rows).to_have_count(count)
    expect(page.locator(".rows tr.right")).to_have_count(0)
    expect(page.locator("#rows-heading")).to_be_focused()
    assert "show=wrong" in page.url

    page.get_by_role("link", name="Is the writer asking for money back?").click()
    page.wait_for_url(re.compile("question=2"))
    expect(page.locator(".chip.removable")).to_contain_text("money back")
    page.go_back()
    page.wait_for_url(re.compile("show=wrong$"))
    expect(rows).to_have_count(count)

    first = rows.first.get_by_role("button")
    first.focus()
    page.keyboard.press("Enter")
    expect(first).to_have_attribute("aria-expanded", "true")
    expect(page.locator(".drawer .state")).to_be_visible()
    expect(page.locator(".drawer .distribution tr").first).to_be_visible()
    page.keyboard.press("Enter")
    expect(page.locator(".drawer")).to_be_hidden()


def test_every_problem_of_a_table_is_listed_and_the_good_rows_can_be_run(
    address: str, open_page: NewPage, tmp_path: Path
) -> None:
    page = open_page(f"{address}/evaluate")
    bad = [f"text {number},Is it good?,perhaps,yes;no" for number in range(25)]
    choose(page, "bad.csv", table("fine", "also fine") + "\n".join(bad) + "\n")
    expect(page.locator("problem-list h3")).to_have_text("25 problems in this table")
    expect(page.locator("problem-list tbody tr")).to_have_count(20)
    expect(page.locator("problem-list tbody tr").first).to_contain_text("perhaps")
    expect(page.locator("problem-list tbody tr").first.locator("td").first).to_have_text("4")
    expect(page.get_by_role("button", name="Evaluate", exact=True)).to_be_disabled()
    with page.expect_download() as waiting:
        page.get_by_role("link", name="Download all of them").click()
    waiting.value.save_as(tmp_path / "problems.csv")
    assert len((tmp_path / "problems.csv").read_text("utf-8-sig").splitlines()) == 26
    page.get_by_role("button", name="Run the 2 good rows").click()
    page.wait_for_url(re.compile(r"/runs/\w+#result"))
    expect(page.locator(".headline-words")).to_contain_text("of 2 answered rows")
    expect(page.locator(".headline-words")).to_contain_text("cannot say more")


def test_a_paste_is_read_and_kept_after_an_error(address: str, open_page: NewPage) -> None:
    page = open_page(f"{address}/evaluate")
    page.get_by_role("button", name="Paste").click()
    page.get_by_label("Rows, with their header").fill("just,some\nwords,here\n")
    page.get_by_role("button", name="Use this").click()
    expect(page.locator("problem-list h3")).to_be_focused()
    expect(page.get_by_label("Rows, with their header")).to_have_value("just,some\nwords,here\n")
    page.get_by_label("Rows, with their header").fill(table("naïve – schön"))
    page.get_by_role("button", name="Use this").click()
    expect(page.locator("[data-part=preview]")).to_contain_text("naïve – schön")
    page.reload()
    expect(page.locator("#pasted")).to_have_value(re.compile("naïve – schön"))


def test_a_run_can_be_stopped_and_what_is_done_stays(
    staged_address: str, stage: StagedEngine, open_page: NewPage
) -> None:
    stage.pause_s = 0.05
    page = open_page(f"{staged_address}/evaluate")
    choose(page, "long.csv", table(*(f"text {number}" for number in range(2000))))
    run(page)
    progress = page.get_by_role("progressbar", name="Rows done")
    expect(progress).to_be_visible()
    expect(page.locator("run-progress [data-part=done]")).to_have_text(re.compile(r"\d\d of 2\s000 rows"))
    expect(page.locator("run-progress [data-part=pace]")).to_have_text(re.compile("rows a second · .* left"))
    expect(page.locator("run-progress [data-part=so-far]")).to_have_text("100.0 % right so far")
    page.get_by_role("button", name="Stop").click()
    page.wait_for_url(re.compile(r"/runs/\w+#result"))
    expect(page.locator("#run > .flag")).to_contain_text("rows were asked")
    expect(page.locator(".rows > tbody > tr:not(.details)").first).to_be_visible()
    asked = stage.asked
    page.goto(f"{staged_address}/runs")
    expect(page.locator("tbody tr").first).to_contain_text("stopped early")
    assert asked < 2000
    assert stage.asked <= asked + 4


def test_failures_and_ties_are_counted_apart(staged_address: str, open_page: NewPage) -> None:
    page = open_page(f"{staged_address}/evaluate")
    choose(page, "mixed.csv", table("good", "refuse this", "a tie", "fine", "refuse that"))
    run(page)
    page.wait_for_url(re.compile(r"/runs/\w+#result"))
    expect(page.locator(".headline-words")).to_contain_text("2 labelled rows failed and are not counted")
    expect(page.locator(".headline-words")).to_contain_text("1 row is tied")
    page.locator(".chip").filter(has_text="wrong").click()
    page.locator(".chip").filter(has_text="errors").click()  # at once: the last click counts
    expect(page.locator(".rows > tbody > tr:not(.details)")).to_have_count(2)
    expect(page.locator(".rows .failure").first).to_contain_text("this text was refused")
    page.locator(".chip").filter(has_text="ties").click()
    expect(page.locator(".rows > tbody > tr.unsure")).to_have_count(1)


def test_a_run_under_way_is_followed_in_another_tab(
    staged_address: str, stage: StagedEngine, open_page: NewPage
) -> None:
    stage.pause_s = 0.1
    page = open_page(f"{staged_address}/evaluate")
    choose(page, "long.csv", table(*(f"text {number}" for number in range(160))))
    run(page)
    link = page.get_by_role("link", name="See the rows so far")
    expect(link).to_have_attribute("href", re.compile(r"/runs/\w+"))
    other = page.context.new_page()
    other.goto(f"{staged_address}{link.get_attribute('href')}")
    expect(other.locator("#run > .flag")).to_contain_text("of 160 rows so far")
    row = other.locator("[data-row]").first
    row.click()
    stage.pause_s = 0
    page.wait_for_url(re.compile(r"/runs/\w+#result"))
    expect(other.locator(".drawer")).to_be_visible()
    row.click()
    expect(other.locator("#run > .flag")).to_have_count(0)
    expect(other.locator(".headline-words")).to_contain_text("160 of 160")
    expect(other.locator("[hx-trigger='every 3s']")).to_have_count(0)


def test_a_server_that_is_gone_leaves_the_table_chosen(address: str, open_page: NewPage) -> None:
    page = open_page(f"{address}/evaluate")
    choose(page, "fine.csv", table("fine"))
    expect(page.get_by_role("button", name="Evaluate", exact=True)).to_be_enabled()
    page.route("**/api/evaluate*", lambda route: route.abort())
    run(page)
    expect(page.locator("problem-list h3")).to_have_text("Clef stopped answering")
    expect(page.locator("[data-part=name]")).to_have_text("fine.csv")
    page.unroute("**/api/evaluate*")
    run(page)
    page.wait_for_url(re.compile(r"/runs/\w+#result"))
