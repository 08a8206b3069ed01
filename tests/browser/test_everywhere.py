"""What holds on every page and in every state: no barrier, no sideways scrolling, no promise broken."""

import gzip
import re
from collections.abc import Callable

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, Response, expect

from tests.browser.conftest import NewPage, come_back
from tests.browser.staged import StagedEngine
from tests.browser.test_ask import picture
from tests.browser.test_evaluate import choose, run, run_to_the_end, table

pytestmark = pytest.mark.browser

ASK_BYTES = 60_000
"""Budget of the Ask page, everything it loads, gzipped."""


def as_it_comes(page: Page) -> None:
    pass


def answered(page: Page) -> None:
    page.keyboard.press("Control+Enter")
    expect(page.locator(".answer")).to_have_count(3)


def stale(page: Page) -> None:
    answered(page)
    page.locator("#state").fill("other")
    expect(page.locator(".stale-note")).to_be_visible()


def with_problems(page: Page) -> None:
    page.get_by_label("Option 2 of question 1", exact=True).fill("")
    page.locator("#state").fill("")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#answers .problems")).to_be_visible()


def with_examples(page: Page) -> None:
    page.get_by_role("button", name="Examples").click()
    expect(page.locator("#examples")).to_be_visible()


def as_request_json(page: Page) -> None:
    page.locator(".views").get_by_text("JSON", exact=True).click()
    page.get_by_label("Request", exact=True).fill("{")
    expect(page.locator("#request-check")).to_contain_text("line 1")


def compared(page: Page) -> None:
    page.get_by_label("Question 1", exact=True).fill("Which team is it and what is wrong?")
    expect(page.locator(".advice li").first).to_be_visible()
    page.get_by_label("Ask the questions").select_option("both")
    answered(page)


def copying(page: Page) -> None:
    page.get_by_role("button", name="Copy", exact=True).click()
    expect(page.locator("#copy")).to_be_visible()


def explained(page: Page) -> None:
    answered(page)
    page.get_by_role("button", name="What is margin?").first.click()
    expect(page.locator("#explain-margin")).to_be_visible()


def in_a_chat(page: Page) -> None:
    page.get_by_text("as chat", exact=True).click()
    page.get_by_role("button", name="message", exact=True).click()
    page.locator("state-images input").set_input_files([picture("one.png")])
    expect(page.get_by_role("alert")).to_be_visible()


def with_history(page: Page) -> None:
    answered(page)
    page.get_by_role("button", name="History").click()
    expect(page.locator(".asks li").first).to_be_visible()


def previewed(page: Page) -> None:
    page.get_by_role("button", name="Try the sample").click()
    expect(page.locator("[data-part=preview]")).to_be_visible()
    page.get_by_text("What the table needs").click()
    page.get_by_text("Read it differently").click()
    page.get_by_role("button", name="Paste").click()


def refused(page: Page) -> None:
    choose(page, "bad.csv", table("fine") + "text,Is it good?,perhaps,yes;no\n" * 25)
    expect(page.locator("problem-list h3")).to_be_visible()


def evaluated(page: Page) -> None:
    page.get_by_role("button", name="Try the sample").click()
    run_to_the_end(page)
    expect(page.locator("run-charts[data-state=drawn]")).to_be_visible()
    page.locator("[data-row]").first.click()
    expect(page.locator(".drawer")).to_be_visible()


def filtered(page: Page) -> None:
    evaluated(page)
    page.locator(".chips .chip").filter(has_text="failed").click()
    expect(page.locator("#rows .empty")).to_be_visible()


def exporting(page: Page) -> None:
    evaluated(page)
    page.get_by_role("button", name="Rename").click()
    page.get_by_role("button", name="Export").click()
    expect(page.get_by_role("link", name="Parquet")).to_be_visible()


def deleted(page: Page) -> None:
    evaluated(page)
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_role("button", name="Undo")).to_be_visible()


def with_keys(page: Page) -> None:
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()


def listed(page: Page) -> None:
    evaluated(page)
    page.get_by_role("link", name="Runs").click()
    page.locator("[data-choice]").first.check()
    expect(page.locator("tbody tr").first).to_be_visible()


STATES: dict[str, tuple[str, Callable[[Page], None]]] = {
    "ask": ("/", as_it_comes),
    "ask answered": ("/", answered),
    "ask stale": ("/", stale),
    "ask with problems": ("/", with_problems),
    "ask with examples": ("/", with_examples),
    "ask as json": ("/", as_request_json),
    "ask compared": ("/", compared),
    "ask copying": ("/", copying),
    "ask explained": ("/", explained),
    "ask in a chat": ("/", in_a_chat),
    "ask with history": ("/", with_history),
    "evaluate": ("/evaluate", as_it_comes),
    "evaluate previewed": ("/evaluate", previewed),
    "evaluate refused": ("/evaluate", refused),
    "run": ("/evaluate", evaluated),
    "run filtered": ("/evaluate", filtered),
    "run exporting": ("/evaluate", exporting),
    "runs": ("/evaluate", listed),
    "runs deleted": ("/evaluate", deleted),
    "engine": ("/engine", as_it_comes),
    "engine with keys": ("/engine", with_keys),
    "missing": ("/runs/none", as_it_comes),
}


def barriers(page: Page, *, charts: bool = True) -> str:
    """What axe finds, as a report; nothing where all is well. Charts are many marks and take it seconds."""
    # preload: axe would fetch the layered base style sheet from a wrong address, to no use.
    context = None if charts else {"exclude": [["run-charts"]]}
    found = Axe().run(page, context=context, options={"preload": False})
    return str(found.generate_report()) if found.violations_count else ""


@pytest.mark.parametrize("state", STATES)
def test_no_barrier_in_either_theme_and_nothing_wider_than_a_small_phone(
    address: str, open_page: NewPage, state: str
) -> None:
    path, go = STATES[state]
    page = open_page(f"{address}{path}", watched=False)  # axe itself adds styles that the policy refuses
    go(page)
    assert barriers(page, charts=state == "run") == ""
    page.emulate_media(color_scheme="dark")
    page.set_viewport_size({"width": 360, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert barriers(page, charts=state == "run") == ""


def test_everything_can_be_done_on_a_small_phone(address: str, open_page: NewPage) -> None:
    page = open_page(f"{address}/", width=360, theme="dark")
    answered(page)
    page.get_by_role("link", name="Evaluate", exact=True).click()
    evaluated(page)
    page.locator(".chips .chip").filter(has_text="wrong").click()
    expect(page.locator(".rows tr.wrong").first).to_be_visible()
    page.get_by_role("link", name="Engine", exact=True).click()
    expect(page.locator("h1")).to_contain_text("ready")


def test_no_barrier_while_a_run_is_under_way(staged_address: str, stage: StagedEngine, open_page: NewPage) -> None:
    stage.pause_s = 0.2
    page = open_page(f"{staged_address}/evaluate", watched=False)
    choose(page, "long.csv", table(*(f"text {number}" for number in range(400))))
    run(page)
    expect(page.get_by_role("progressbar")).to_be_visible()
    found = barriers(page)
    page.get_by_role("button", name="Stop").click()
    expect(page.locator("run-progress")).to_have_count(0)
    assert found == ""


def test_the_keys_are_listed_but_not_while_typing(address: str, open_page: NewPage) -> None:
    page = open_page(f"{address}/")
    keys = page.get_by_role("dialog", name="Keys")
    page.get_by_label("State", exact=True).press("?")
    expect(keys).to_be_hidden()
    page.get_by_role("button", name="Keys").click()
    expect(keys).to_contain_text("decide")
    page.keyboard.press("Escape")
    expect(keys).to_be_hidden()
    page.locator("body").press("?")
    expect(keys).to_be_visible()


def test_the_theme_is_switched_and_remembered(address: str, open_page: NewPage) -> None:
    page = open_page(f"{address}/", theme="light")
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    switch = page.locator("theme-switch button")
    expect(switch).to_have_attribute("aria-label", re.compile("Theme: system"))
    switch.click()
    switch.click()
    expect(switch).to_have_attribute("aria-label", re.compile("Theme: dark"))
    dark = page.evaluate(ground)
    assert dark != light
    page.goto(f"{address}/evaluate")
    assert page.evaluate(ground) == dark
    page.locator("theme-switch button").click()
    assert page.evaluate(ground) == light


def test_a_clef_that_is_gone_is_said_to_be(address: str, open_page: NewPage) -> None:
    page = open_page(f"{address}/", intercepted=True)
    page.route("**/engine/standing", lambda route: route.abort())
    page.route("**/ask", lambda route: route.abort())
    answered_not = page.locator("#answers .problems")
    page.keyboard.press("Control+Enter")
    expect(answered_not).to_contain_text("clef does not answer")
    come_back(page)
    expect(page.locator("#standing")).to_contain_text("clef does not answer")
    page.unroute("**/engine/standing")
    come_back(page)
    expect(page.locator("#standing")).to_contain_text("sparrow")


def test_the_built_in_model_says_what_it_is(address: str, open_page: NewPage) -> None:
    page = open_page(f"{address}/")
    expect(page.locator(".notice")).to_contain_text("2 MB")
    page.get_by_role("link", name="Use a real model").click()
    expect(page.locator("main")).to_contain_text("clef serve --model PATH.gguf")


def test_the_ask_page_is_within_its_weight(address: str, open_page: NewPage) -> None:
    responses: list[Response] = []
    page = open_page("about:blank", watched=False)
    page.on("response", lambda response: responses.append(response))  # noqa: PLW0108 - it needs a function
    page.goto(f"{address}/", wait_until="networkidle")
    assert len(responses) >= 6
    weights = {response.url: len(gzip.compress(response.body(), 6)) for response in responses}
    assert sum(weights.values()) <= ASK_BYTES, weights


def test_a_browser_that_is_offline_keeps_everything_and_goes_on(staged_address: str, open_page: NewPage) -> None:
    page = open_page(f"{staged_address}/")
    page.locator("#state").fill("Typed before the line went")
    page.context.set_offline(True)
    page.keyboard.press("Control+Enter")
    expect(page.locator("#answers .problems")).to_contain_text("Your form is as you left it")
    page.get_by_role("button", name="History").click()
    expect(page.locator("#kept .problems")).to_contain_text("clef does not answer")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Copy", exact=True).click()
    page.locator("[data-copy=curl]").click()
    expect(page.locator("#copied")).to_contain_text("clef does not answer")
    page.context.set_offline(False)
    expect(page.locator("#state")).to_have_value("Typed before the line went")
    answered(page)


@pytest.mark.parametrize("path", ["/", "/evaluate", "/runs"])
def test_every_page_works_while_the_engine_is_down(
    staged_address: str, stage: StagedEngine, open_page: NewPage, path: str
) -> None:
    stage.phase = "failed"
    page = open_page(f"{staged_address}{path}", watched=False)
    expect(page.locator("#standing")).to_contain_text("failed")
    if path == "/":
        page.keyboard.press("Control+Enter")
        expect(page.locator("#answers .problems")).to_contain_text("try again in a minute", ignore_case=True)
    if path == "/evaluate":
        choose(page, "t.csv", table("fine"))
        expect(page.get_by_role("button", name="Evaluate", exact=True)).to_be_enabled()
    assert barriers(page) == ""


def test_a_table_is_evaluated_with_the_keyboard_alone(staged_address: str, open_page: NewPage) -> None:
    page = open_page(f"{staged_address}/evaluate")

    def tab_to(name: str) -> None:
        for _ in range(30):
            page.keyboard.press("Tab")
            said = page.evaluate(
                "document.activeElement.getAttribute('aria-label') ?? document.activeElement.innerText"
            )
            if said and said.strip() == name:
                return
        pytest.fail(f"{name} is not reached")

    tab_to("Paste")
    page.keyboard.press("Enter")
    expect(page.locator("#pasted")).to_be_focused()
    page.keyboard.insert_text(table("typed"))
    tab_to("Use this")
    page.keyboard.press("Enter")
    expect(page.locator("[data-part=ready]")).to_contain_text("1 row")
    tab_to("Evaluate")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("/runs/"))


def test_text_from_right_to_left_is_set_so(staged_address: str, open_page: NewPage) -> None:
    page = open_page(f"{staged_address}/", width=360)
    page.locator("#state").fill("החבילה הגיעה פתוחה 📦")
    page.get_by_label("Question 1", exact=True).fill("ما المشكلة؟")
    answered(page)
    for field in (page.locator("#state"), page.get_by_label("Question 1", exact=True)):
        assert field.evaluate("field => getComputedStyle(field).direction") == "rtl"
    asked = page.locator(".asked [dir=auto]").filter(has_text="ما")
    assert asked.evaluate("words => getComputedStyle(words).direction") == "rtl"
    page.get_by_role("button", name="History").click()
    expect(page.locator(".asks b").first).to_contain_text("החבילה")
    assert page.locator(".asks b").first.evaluate("words => getComputedStyle(words).direction") == "rtl"
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


@pytest.mark.parametrize("path", ["/", "/evaluate", "/runs"])
def test_a_very_large_screen_keeps_lines_readable_and_nothing_moves(
    address: str, open_page: NewPage, path: str
) -> None:
    page = open_page(f"{address}{path}", width=3840)
    if path == "/":
        answered(page)
    box = page.locator("main").bounding_box()
    assert box is not None
    assert box["width"] <= 1200
    assert abs(box["x"] - (3840 - box["x"] - box["width"])) <= 20
    assert page.evaluate("document.getAnimations().length") == 0
