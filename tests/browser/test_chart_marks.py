"""What is pressed in a chart is shown in the rows, with a mouse, with the keyboard and on a phone."""

import json
import re
import urllib.request
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import NewPage
from tests.browser.runs import graded, make_run
from tests.browser.test_everywhere import barriers

pytestmark = pytest.mark.browser

HEADER = ("context", "question", "answer", "options", "type")
LEVELS = "can wait|this week|today|right now"


@pytest.fixture(scope="module")
def run_id(_staged_address: str) -> str:
    """A run of a choice and a score, with a tie, a failure and a row without a label."""
    rows = [[f"n {n} p={0.51 + n / 250:.4f}", "Which team?", "ab"[n % 3 == 0], "a|b|c", "choice"] for n in range(120)]
    rows += [[f"n {n}", "How soon?", LEVELS.split("|")[n % 4], LEVELS, "score"] for n in range(40)]
    rows += [["a tie", "Which team?", "a", "a|b|c", "choice"], ["refuse", "Which team?", "a", "a|b|c", "choice"]]
    rows += [["p=0.9 no label", "Which team?", "", "a|b|c", "choice"]]
    return make_run(_staged_address, rows, header=HEADER)


@pytest.fixture
def page(staged_address: str, run_id: str, open_page: NewPage) -> Page:
    found = open_page(f"{staged_address}/runs/{run_id}")
    expect(found.locator("run-charts[data-state=drawn]")).to_be_visible()
    return found


def marks(page: Page, chart: str, at: int = 0) -> list[dict[str, Any]]:
    """What a chart of the page counts."""
    with urllib.request.urlopen(page.url.split("?")[0] + "/charts") as response:
        found: list[dict[str, Any]] = json.load(response)[chart][at]["spec"]["data"]["values"]
    return found


def shows(page: Page, rows: int, chip: str) -> None:
    """The rows are these many, one filter says why, and they are in view."""
    expect(page.locator(".chips [role=status]")).to_have_text(re.compile(rf"of {rows}$"))
    expect(page.locator(".chip.removable").filter(has_text=chip)).to_be_visible()
    expect(page.locator("#rows-heading")).to_be_in_viewport()


def press(mark: Locator, **position: float) -> None:
    mark.scroll_into_view_if_needed()
    mark.click(force=True, position=position or None)  # type: ignore[arg-type]  # x and y, or nothing


def test_what_is_pressed_is_shown_in_the_rows_and_back_takes_it_back(page: Page) -> None:
    everything = page.locator(".chips [role=status]").inner_text()
    bins = marks(page, "reliability")
    press(page.locator("[data-part=reliability] svg .mark-symbol path").nth(2))
    shows(page, bins[2]["rows"], "top probability")
    expect(page).to_have_url(re.compile(re.escape(f"low={bins[2]['from']}")))
    page.go_back()
    expect(page.locator(".chips [role=status]")).to_have_text(everything)
    expect(page.locator(".chip.removable")).to_have_count(0)
    expect(page.locator("run-charts[data-state=drawn]")).to_be_visible()

    press(page.locator("[data-part=reliability] svg .mark-rect path").nth(1))
    shows(page, bins[1]["rows"], "top probability")
    bars = marks(page, "distribution")
    at = next(at for at, bar in enumerate(bars) if bar["outcome"] == "wrong" and bar["rows"] > 2)
    press(page.locator("[data-part=distribution] svg .mark-rect path").nth(at))
    shows(page, bars[at]["rows"], "top probability")
    expect(page.locator(".chip[aria-current]")).to_contain_text("wrong")
    cells = marks(page, "confusion")
    at = next(at for at, cell in enumerate(cells) if cell["rows"] and cell["label"] != cell["prediction"])
    press(page.locator("[data-part=confusion] svg .mark-rect path").nth(at), x=4, y=4)
    shows(page, cells[at]["rows"], "predicted")
    errors = marks(page, "distance")
    press(page.locator("[data-part=distance] svg .mark-rect path").nth(0))
    shows(page, errors[0]["rows"], "below" if errors[0]["error"] < 0 else "the label's level")


def test_a_place_of_the_risk_curve_shows_what_it_leaves_to_be_checked(page: Page) -> None:
    points = marks(page, "risk")
    curve = page.locator("[data-part=risk] svg .background").first
    curve.scroll_into_view_if_needed()
    box = curve.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + box["height"] / 2)
    page.mouse.click(box["x"] + box["width"] * 0.5, box["y"] + box["height"] / 2)
    page.wait_for_url(re.compile("unsure="))
    threshold = float(re.findall(r"unsure=([\d.]+)", page.url)[0])
    (point,) = (one for one in points if one["threshold"] == threshold)
    assert abs(point["coverage"] - 0.5) < 0.05
    shows(page, point["checked"], "unsure below")


def test_a_place_of_the_risk_curve_offers_the_gate_to_stand_there_without_a_mouse(
    staged_address: str, open_page: NewPage
) -> None:
    page = open_page(f"{staged_address}/runs/{make_run(staged_address, graded())}")
    risk = page.locator("[data-chart=risk]")
    risk.locator("summary").press("Enter")
    checked = risk.get_by_role("link", name=re.compile("left to check")).nth(60)
    rows = int(checked.inner_text())
    checked.press("Enter")
    shows(page, rows, "unsure below")
    page.get_by_role("button", name=re.compile(r"Set the gate to 0\.\d+")).press("Enter")
    slider = page.get_by_role("slider")
    expect(slider).to_be_focused()
    expect(slider).to_be_in_viewport()
    expect(page.locator("gate-slider [data-part=at]")).to_contain_text("on the rows at hand")
    expect(page.locator("gate-slider [data-part=below]")).to_have_text(f"to check {rows}")
    page.keyboard.press("ArrowRight")
    expect(page.locator("gate-slider [data-part=below]")).to_have_text(f"to check {rows - 1}")


def test_the_rows_below_a_gate_are_those_it_counts_and_the_review_has_them(page: Page) -> None:
    gate = page.locator("gate-slider").filter(has_text="Which team?")
    gate.get_by_role("slider").press("End")
    for _ in range(45):
        gate.get_by_role("slider").press("ArrowLeft")
    chip = gate.locator("[data-part=below]")
    rows = int(re.findall(r"\d+", chip.inner_text())[0])
    assert rows > 40
    chip.click()
    shows(page, rows, "unsure below")
    expect(page.locator(".chip.removable").filter(has_text="Which team?")).to_be_visible()
    gate.get_by_role("link", name="Review those to check").click()
    expect(page.locator("[data-part=done]")).to_have_text(f"0 of {rows}")


def test_bins_of_equal_counts_are_pressed_as_well(page: Page) -> None:
    page.get_by_role("combobox", name="Bins").select_option("mass")
    bins = marks(page, "mass")
    expect(page.locator("[data-part=reliability] svg .mark-symbol path")).to_have_count(len(bins))
    press(page.locator("[data-part=reliability] svg .mark-symbol path").nth(-2 % len(bins)))
    shows(page, bins[-2]["rows"], "top probability")


def test_the_bar_of_a_question_and_of_a_band_lead_to_the_rows_they_count(page: Page) -> None:
    press(page.locator(".by-question a .bar").nth(0))
    shows(page, 121, "Which team?")
    press(page.locator("#bands ~ table a .bar").nth(0))
    counted = page.locator("#bands ~ table tr:has(a) .figure").nth(1).inner_text()
    shows(page, int(re.findall(r"of (\d+)", counted)[0]), "top probability")


def test_a_search_narrows_what_a_mark_leads_to_and_the_form_says_what_is_shown(page: Page) -> None:
    at, bar = next(
        (at, bar) for at, bar in enumerate(marks(page, "distribution")) if bar["outcome"] == "right" and bar["rows"] > 4
    )
    press(page.locator("[data-part=distribution] svg .mark-rect path").nth(at))
    shows(page, bar["rows"], "top probability")
    page.get_by_role("searchbox").fill("n 2")
    page.wait_for_url(re.compile("text=n"))
    expect(page).to_have_url(re.compile("low="))
    expect(page).to_have_url(re.compile("show=right"))
    expect(page.locator(".chip.removable")).to_have_count(2)
    expect(page.get_by_role("searchbox")).to_be_focused()
    press(page.locator(".by-question a .bar").nth(1))
    shows(page, 40, "How soon?")
    expect(page.locator("#filters [name=question]")).to_have_value("How soon?")
    expect(page.get_by_role("searchbox")).to_have_value("")
    page.locator("#filters [name=question]").select_option("")
    expect(page.locator(".chips [role=status]")).to_have_text(re.compile("of 161$"))


def test_the_numbers_of_a_chart_do_the_same_without_a_mouse(page: Page) -> None:
    numbers = page.locator("[data-chart=reliability]")
    numbers.locator("summary").press("Enter")
    link = numbers.get_by_role("link").first
    expect(link).to_be_visible()
    page.keyboard.press("Tab")
    expect(link).to_be_focused()
    rows = int(link.inner_text())
    page.keyboard.press("Enter")
    shows(page, rows, "top probability")
    expect(page.locator("#rows-heading")).to_be_focused()
    page.get_by_role("combobox", name="Bins").select_option("mass")
    expect(numbers.get_by_role("link")).to_have_count(len(marks(page, "mass")))
    risk = page.locator("[data-chart=risk]")
    risk.locator("summary").press("Enter")
    wrong = risk.get_by_role("link", name=re.compile("wrong among them")).last
    rows = int(wrong.inner_text())
    wrong.press("Enter")
    shows(page, rows, "sure from")


def test_no_barrier_in_the_numbers_and_nothing_wider_than_a_small_phone(
    staged_address: str, run_id: str, open_page: NewPage
) -> None:
    page = open_page(f"{staged_address}/runs/{run_id}", watched=False)  # axe adds styles that the policy refuses
    expect(page.locator("run-charts[data-state=drawn]")).to_be_visible()
    for numbers in page.locator(".chart-numbers").all():
        numbers.locator("summary").click()
        expect(numbers.locator("table.numbers")).to_be_visible()
    assert barriers(page) == ""
    page.emulate_media(color_scheme="dark")
    page.set_viewport_size({"width": 360, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert barriers(page) == ""
