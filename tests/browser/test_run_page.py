"""What a person does on the page of a run: set a gate, open and send a row, say what is right, look at slices."""

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from clef.web import words
from tests.browser.conftest import NewPage
from tests.browser.runs import graded, make_run, send, start_run
from tests.browser.staged import StagedEngine
from tests.browser.test_everywhere import barriers

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def run_id(_staged_address: str) -> str:
    """A run of graded rows that no test changes."""
    return make_run(_staged_address, graded())


def status(page: Page) -> str:
    return page.locator(".chips [role=status]").inner_text()


def test_a_gate_is_moved_without_a_request_and_its_rows_are_shown(
    staged_address: str, run_id: str, open_page: NewPage
) -> None:
    page = open_page(f"{staged_address}/runs/{run_id}")
    slider = page.get_by_role("slider", name="Gate of Which team?")
    expect(page.locator(".gate-sum")).to_contain_text(re.compile(r"You need not check \d+ % of the rows"))
    expect(page.locator("gate-slider")).to_contain_text("On rows not used to choose it")
    expect(page.locator("gate-slider")).to_contain_text("the honest number")
    expect(page.locator("gate-slider")).to_contain_text("which is optimistic")
    expect(page.locator("[data-part=mark]")).to_be_visible()
    recommended = slider.input_value()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    slider.focus()
    page.keyboard.press("End")
    expect(page.locator("[data-part=coverage]")).to_have_text("100 %")
    expect(page.locator("[data-part=errors]")).to_have_text("60")
    expect(page.locator("[data-part=accuracy]")).to_have_text("75.0 %")
    expect(page.locator("[data-part=at]")).to_contain_text("optimistic")
    page.keyboard.press("Home")
    expect(page.locator("[data-part=coverage]")).to_have_text("0 %")
    assert slider.get_attribute("aria-valuetext") == "Check everything"
    page.get_by_role("button", name="Back to the recommended gate").click()
    assert slider.input_value() == recommended
    expect(slider).to_be_focused()
    assert [url for url in asked if not url.endswith("/engine/standing")] == []  # that one comes every 4 s

    for _ in range(20):
        page.keyboard.press("ArrowRight")
    acted = int(re.match(r"\d+", page.locator("[data-part=rows]").inner_text())[0])  # type: ignore[index]
    page.get_by_role("link", name=f"to check {240 - acted}", exact=True).click()
    expect(page.locator(".chips [role=status]")).to_have_text(re.compile(f"of {240 - acted}$"))
    expect(page.locator(".chip.removable").filter(has_text="unsure below")).to_be_visible()
    let_through = page.locator("[data-part=errors]").inner_text()
    page.get_by_role("link", name=f"wrong, not checked {let_through}").click()
    expect(page.locator(".chips [role=status]")).to_have_text(re.compile(f"of {let_through}$"))
    expect(page.locator(".chip[aria-current]")).to_contain_text("wrong")


def test_on_a_small_phone_the_figures_of_a_gate_stand_one_below_the_other_and_an_answer_is_not_broken(
    staged_address: str, open_page: NewPage
) -> None:
    levels = ("this week", "today", "right now")
    rows = [[f"n {n} p=0.{510 + n}", "How soon?", levels[0], "|".join(levels[::-1]), "score"] for n in range(80)]
    header = ("context", "question", "answer", "options", "type")
    page = open_page(f"{staged_address}/runs/{make_run(staged_address, rows, header=header)}")
    page.set_viewport_size({"width": 360, "height": 800})
    figures = page.locator("gate-slider .gate-figures > div")
    expect(figures).to_have_count(3)
    boxes = [box for at in range(3) if (box := figures.nth(at).bounding_box())]
    assert len({box["x"] for box in boxes}) == 1
    assert max(box["height"] for box in boxes) < 50
    prediction = page.locator(".rows .together").first
    expect(prediction).to_contain_text("right now")
    box = prediction.bounding_box()
    assert box is not None
    assert box["height"] < 30  # one line
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_a_gate_that_was_set_by_hand_becomes_a_policy(
    staged_address: str, run_id: str, open_page: NewPage, tmp_path: Path
) -> None:
    page = open_page(f"{staged_address}/runs/{run_id}")
    page.get_by_role("slider").press("ArrowRight")
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Download it").click()
    waiting.value.save_as(tmp_path / "policy.json")
    policy = json.loads((tmp_path / "policy.json").read_text("utf-8"))
    threshold = policy["questions"]["Which team?"]["thresholds"]["all"]
    assert words.threshold(threshold) in page.locator("[data-part=at]").inner_text()
    assert policy["questions"]["Which team?"]["measured"]["set_by_hand"] == ["all"]
    page.get_by_role("textbox", name="Policy").fill("by hand")
    page.get_by_role("button", name="Save as policy").click()
    expect(page.locator("run-gates [data-part=said]")).to_contain_text("Saved")
    kept = send(f"{staged_address}/api/policies/by hand".replace(" ", "%20"))
    assert kept["policy"]["questions"]["Which team?"]["thresholds"]["all"] == threshold
    page.get_by_role("button", name="Save as policy").click()
    expect(page.locator("run-gates [data-part=said]")).to_contain_text("already")
    page.reload()
    page.get_by_role("button", name="Export").click()
    with page.expect_download() as download:
        page.get_by_role("link", name="by the policy by hand").click()
    assert re.search(r"\b(act|review)\b", Path(download.value.path()).read_text())


def test_a_gate_is_chosen_by_accuracy_budget_or_cost_and_the_address_holds_it(
    staged_address: str, run_id: str, open_page: NewPage
) -> None:
    page = open_page(f"{staged_address}/runs/{run_id}")
    page.get_by_text("review budget", exact=True).click()
    page.get_by_label("Rows you check at most").fill("50")
    page.get_by_label("Rows you check at most").press("Tab")
    page.wait_for_url(re.compile("gate=review-0.5"))
    expect(page.locator("[data-part=coverage]")).to_have_text("50 %")
    page.get_by_text("cost", exact=True).click()
    expect(page.locator("[data-part=cost]")).to_be_visible()
    page.get_by_label("A wrong answer costs").fill("0")
    page.get_by_label("A wrong answer costs").press("Tab")
    expect(page.locator("[data-part=cost]")).to_have_text("0.00")
    page.wait_for_url(re.compile("gate=cost-0-1"))
    page.locator(".chips .chip").filter(has_text="wrong").click()
    page.wait_for_url(re.compile("show=wrong"))
    expect(page).to_have_url(re.compile("gate=cost-0-1"))
    page.reload()
    expect(page.get_by_label("A wrong answer costs")).to_have_value("0")
    page.goto(f"{staged_address}/runs/{run_id}?gate=accuracy-nonsense")
    expect(page.get_by_label("Of what is not checked")).to_have_value("95")


def test_a_gate_with_too_few_labels_is_refused_or_called_provisional(staged_address: str, open_page: NewPage) -> None:
    few = make_run(staged_address, graded(40))
    page = open_page(f"{staged_address}/runs/{few}")
    expect(page.locator(".gate-sum")).to_contain_text("a question needs 50 on different states, and this one has 40")
    expect(page.locator("gate-slider, .save-policy")).to_have_count(0)
    expect(page.get_by_role("slider")).to_have_count(0)
    some = make_run(staged_address, graded(120))
    page.goto(f"{staged_address}/runs/{some}")
    expect(page.locator("gate-slider h3")).to_contain_text("provisional")
    expect(page.locator("gate-slider")).to_contain_text("200 make it dependable")


def test_a_yes_no_question_has_two_gates(staged_address: str, open_page: NewPage) -> None:
    rows = [
        [f"message {number} p={0.5 + 0.49 * number / 120:.4f}", "Is it good?", "yes" if number > 40 else "no", "noul"]
        for number in range(120)
    ]
    run = make_run(staged_address, rows, header=("context", "question", "answer", "type"))
    page = open_page(f"{staged_address}/runs/{run}")
    expect(page.locator("gate-slider")).to_have_count(2)
    expect(page.locator("gate-slider .type").first).to_have_text("says yes")
    expect(page.get_by_role("slider")).to_have_count(1)
    expect(page.locator("gate-slider").nth(1)).to_contain_text("No gate: 0 labels")


def test_a_row_has_an_address_that_opens_it_on_its_page(staged_address: str, run_id: str, open_page: NewPage) -> None:
    page = open_page(f"{staged_address}/runs/{run_id}?sort=row&order=asc")
    page.locator("[data-row]").nth(3).click()
    page.wait_for_url(re.compile(r"row=3$"))
    expect(page.locator(".drawer .state")).to_have_text(re.compile("^message 3 "))
    page.get_by_role("link", name="Ask again").click()
    expect(page.locator("#state")).to_have_value(re.compile("^message 3 "))
    page.go_back()
    expect(page.locator(".drawer .state")).to_have_text(re.compile("^message 3 "))
    page.locator("[data-row='3']").click()
    expect(page.locator(".drawer")).to_be_hidden()
    expect(page).not_to_have_url(re.compile("row="))

    page.goto(f"{staged_address}/runs/{run_id}?sort=row&order=asc&row=217")
    expect(page.locator(".drawer .state")).to_have_text(re.compile("^message 217 "))
    assert status(page) == "201–240 of 240"
    for said in ("asked alone", "stage-9B", "mail", "top probability"):
        expect(page.locator(".drawer")).to_contain_text(said)
    page.goto(f"{staged_address}/runs/{run_id}?show=wrong&row=217")
    expect(page.locator(".apart")).to_contain_text("not among the rows of this filter")
    expect(page.locator(".apart .state")).to_have_text(re.compile("^message 217 "))
    page.goto(f"{staged_address}/runs/{run_id}?row=99999")
    assert status(page) == "1–100 of 240"


def test_a_label_is_corrected_in_a_row_and_the_numbers_go_by_it_until_it_is_undone(
    staged_address: str, open_page: NewPage
) -> None:
    run = make_run(staged_address, graded(60))
    page = open_page(f"{staged_address}/runs/{run}?show=wrong&sort=row&order=asc")
    expect(page.locator(".headline-words")).to_contain_text("45 of 60")
    page.locator("[data-row]").first.click()
    page.get_by_role("button", name="Accept the prediction").click()
    expect(page.locator(".headline-words")).to_contain_text("46 of 60")
    expect(page.locator(".reviewed")).to_contain_text("1 label corrected by you. Numbers and rows go by them.")
    expect(page.locator(".apart")).to_contain_text("Corrected by you; the table says “shipping”")
    page.get_by_role("link", name="Go by the table’s labels").click()
    expect(page.locator(".headline-words")).to_contain_text("45 of 60")
    expect(page.locator(".chips .chip[aria-current]")).to_have_text("wrong 15")
    page.get_by_role("link", name="Go by my labels").click()
    expect(page.locator(".headline-words")).to_contain_text("46 of 60")
    page.locator(".chips .chip").filter(has_text="reviewed").click()
    expect(page.locator(".chips [role=status]")).to_have_text("1–1 of 1")
    page.locator("[data-row]").first.click()
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(".headline-words")).to_contain_text("45 of 60")
    expect(page.locator(".reviewed")).to_have_count(0)
    assert send(f"{staged_address}/api/runs/{run}/corrections")["corrections"] == []


def test_slices_name_rows_that_differ_and_lead_to_them(staged_address: str, run_id: str, open_page: NewPage) -> None:
    page = open_page(f"{staged_address}/runs/{run_id}")
    slices = page.locator("#slices")
    expect(slices.get_by_role("heading", name="channel")).to_be_visible()
    expect(slices.locator("tbody tr").first).to_contain_text("differs")
    slices.get_by_role("link", name="chat").click()
    page.wait_for_url(re.compile("column=channel&value=chat"))
    count = slices.locator("tbody tr").filter(has_text="chat").locator("td").last.inner_text()
    total = re.search(r"of (\d+)", count)
    assert total
    expect(page.locator(".chips [role=status]")).to_have_text(re.compile(f"of {total[1]}$"))
    page.locator(".chip.removable").click()
    expect(page.locator(".chips [role=status]")).to_have_text(re.compile("of 240$"))


def test_an_engine_that_goes_away_in_mid_run_is_told_and_the_run_goes_on(
    staged_address: str, stage: StagedEngine, open_page: NewPage
) -> None:
    stage.pause_s = 0.05
    run = start_run(staged_address, graded(200))
    page = open_page(f"{staged_address}/runs/{run}")
    expect(page.locator("run-progress [data-part=pace]")).to_contain_text("rows a second")
    stage.phase = "loading"
    pace = page.locator("run-progress [data-part=pace]")
    expect(pace).to_have_text("waiting for the engine: The model is being read.")
    page.reload()
    expect(page.locator("run-progress [data-part=done]")).to_contain_text("of 200 rows")
    stage.phase, stage.pause_s = "ready", 0.0
    expect(page.locator("run-progress")).to_have_count(0)
    expect(page.locator(".headline-words")).to_contain_text("of 200 answered rows")
    assert send(f"{staged_address}/api/runs/{run}")["failed"] == 0


def test_a_run_that_is_deleted_in_another_tab_says_so_and_is_brought_back(
    staged_address: str, stage: StagedEngine, open_page: NewPage
) -> None:
    stage.pause_s = 0.05
    run = start_run(staged_address, graded(200))
    page = open_page(f"{staged_address}/runs/{run}")
    expect(page.get_by_role("progressbar", name="Rows done")).to_be_visible()
    send(f"{staged_address}/api/runs/{run}", "DELETE")
    expect(page.locator(".flag")).to_contain_text("This run is deleted")
    page.get_by_role("button", name="Bring it back").click()
    expect(page.get_by_role("button", name="Ask the other")).to_be_visible()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_barrier_on_a_run_with_gates_slices_and_an_open_row(
    staged_address: str, run_id: str, open_page: NewPage, theme: str
) -> None:
    width = 360 if theme == "dark" else 1440
    page = open_page(f"{staged_address}/runs/{run_id}?gate=cost-10-1&row=3", width=width, theme=theme, watched=False)
    expect(page.locator("gate-slider [data-part=cost]")).not_to_be_empty()
    expect(page.locator("#slices h2").first).to_be_visible()
    assert barriers(page, charts=False) == ""
    assert page.evaluate("document.documentElement.scrollWidth") <= width
