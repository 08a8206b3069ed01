"""The Ask page as a person uses it."""

import base64
import json
import re

import pytest
from playwright.sync_api import FilePayload, Page, expect

from tests.browser.conftest import NewPage, come_back
from tests.browser.staged import StagedEngine

pytestmark = pytest.mark.browser


def decide(page: Page) -> None:
    page.get_by_role("button", name="Decide").click()


def card(page: Page, position: int) -> str:
    return f".questions > li:nth-child({position})"


def test_every_type_of_question_is_answered_in_words_and_numbers(address: str, open_page: NewPage) -> None:
    page = open_page(f"{address}/")
    decide(page)
    answers = page.locator(".answer")
    expect(answers).to_have_count(3)
    expect(page.locator("#answers")).to_contain_text("ranks by its distance from a half")

    choice = answers.filter(has_text="Which team")
    expect(choice.locator(".verdict")).to_have_text(re.compile("billing|technical|shipping|other"))
    expect(choice.locator("tr")).to_have_count(5)
    expect(choice.locator("dt").filter(has_text="top probability")).to_be_visible()
    expect(choice.locator("dt").filter(has_text="confidence")).to_be_visible()

    noul = answers.filter(has_text="Is the customer angry?")
    expect(noul.locator(".bar.half")).to_have_count(1)
    expect(noul.locator("dt").filter(has_text="confidence")).to_have_count(0)

    score = answers.filter(has_text="How soon")
    expect(score.locator(".verdict")).to_have_text(re.compile(r"\d\.\d\d of 3"))
    expect(score.locator("tr th[scope=row]")).to_have_text(
        [re.compile("it can wait"), re.compile("this week"), re.compile("today"), re.compile("right now")]
    )
    expect(page.locator("#answers .foot")).to_contain_text("asked together")


def test_the_measures_are_explained_where_they_stand(address: str, open_page: NewPage) -> None:
    page = open_page(f"{address}/")
    decide(page)
    page.get_by_role("button", name="What is confidence?").first.click()
    expect(page.locator("#explain-confidence")).to_be_visible()
    expect(page.locator("#explain-confidence")).to_contain_text("not a probability")
    page.keyboard.press("Escape")
    expect(page.locator("#explain-confidence")).to_be_hidden()


def test_everything_can_be_done_with_the_keyboard(address: str, open_page: NewPage) -> None:
    page = open_page(f"{address}/")
    page.get_by_role("button", name="Examples").focus()
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Empty form").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_label("State", exact=True)).to_be_focused()
    page.keyboard.type("The box was open and half of it is missing.")
    page.get_by_label("Question 1", exact=True).focus()
    page.keyboard.type("What is it?")
    page.keyboard.press("Enter")
    page.keyboard.type("complaint")
    page.keyboard.press("Enter")
    page.keyboard.type("praise")
    page.keyboard.press("Enter")
    expect(page.get_by_label("Option 3 of question 1", exact=True)).to_be_focused()
    page.keyboard.type("question")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#answers-heading")).to_be_focused()
    expect(page.locator(".answer tr th[scope=row]")).to_have_count(3)


def test_questions_are_duplicated_moved_and_removed(address: str, open_page: NewPage) -> None:
    page = open_page(f"{address}/")
    cards = page.locator("question-card")
    page.get_by_role("button", name="Duplicate: question 1").click()
    expect(cards).to_have_count(4)
    expect(page.get_by_label("Question 2", exact=True)).to_have_value("Which team should handle this message?")
    page.get_by_label("Question 2", exact=True).fill("Second")
    page.get_by_role("button", name="Move up: question 2").click()
    expect(page.get_by_label("Question 1", exact=True)).to_have_value("Second")
    page.get_by_role("button", name="Remove: question 1").click()
    expect(cards).to_have_count(3)
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_label("Question 1", exact=True)).to_have_value("Second")


def test_a_question_is_moved_with_alt_and_an_arrow(address: str, open_page: NewPage) -> None:
    page = open_page(f"{address}/")
    page.get_by_label("Option 2 of question 1", exact=True).focus()
    page.keyboard.press("Alt+ArrowDown")
    expect(page.get_by_label("Option 2 of question 2", exact=True)).to_be_focused()
    page.keyboard.press("Alt+ArrowUp")
    page.keyboard.press("Alt+ArrowUp")
    expect(page.get_by_label("Question 1", exact=True)).to_have_value("Which team should handle this message?")


def test_an_error_keeps_the_form_and_stands_beside_its_field(address: str, open_page: NewPage) -> None:
    page = open_page(f"{address}/")
    option = page.get_by_label("Option 2 of question 1", exact=True)
    option.fill("")
    page.get_by_label("Question 2", exact=True).fill(" ")
    decide(page)
    expect(page.locator("#answers-heading")).to_be_focused()
    expect(page.locator("#answers .problems")).to_contain_text("question 1, option 2")
    expect(option).to_have_attribute("aria-invalid", "true")
    expect(page.locator(card(page, 1)).locator(".field-problem")).to_have_text("An option without a name")
    expect(page.locator(card(page, 2)).locator(".field-problem")).to_be_visible()
    expect(page.get_by_label("Option 1 of question 1", exact=True)).to_have_value("billing")

    page.get_by_role("button", name="question 1, option 2").click()
    expect(option).to_be_focused()
    page.keyboard.type("tech")
    expect(page.locator(card(page, 1)).locator(".field-problem")).to_have_count(0)
    page.get_by_label("Question 2", exact=True).fill("Angry?")
    decide(page)
    expect(page.locator(".answer")).to_have_count(3)


def test_answers_are_greyed_once_the_request_is_another(address: str, open_page: NewPage) -> None:
    page = open_page(f"{address}/")
    state = page.get_by_label("State", exact=True)
    before = state.input_value()
    decide(page)
    expect(page.locator(".stale-note")).to_be_hidden()
    state.fill("Something else")
    expect(page.locator(".stale-note")).to_be_visible()
    state.fill(before)
    expect(page.locator(".stale-note")).to_be_hidden()


def test_a_reload_loses_nothing(address: str, open_page: NewPage) -> None:
    page = open_page(f"{address}/")
    page.get_by_label("State", exact=True).fill("line one\nline two")
    page.get_by_label("Level 1 of question 3", exact=True).fill("soon")
    page.get_by_role("button", name="yes/no", exact=True).click()
    page.reload()
    expect(page.get_by_label("State", exact=True)).to_have_value("line one\nline two")
    expect(page.get_by_label("Level 1 of question 3", exact=True)).to_have_value("soon")
    expect(page.locator("question-card")).to_have_count(4)


def test_json_is_checked_where_it_stands(address: str, open_page: NewPage) -> None:
    page = open_page(f"{address}/")
    page.get_by_text("as JSON", exact=True).click()
    page.get_by_label("State", exact=True).fill('{\n  "a": 1,\n  "b" 2\n}')
    expect(page.locator("#json-check")).to_contain_text("line 3, column 7")
    decide(page)
    expect(page.locator("#answers .problems")).to_contain_text("line 3, column 7")
    page.get_by_label("State", exact=True).fill('{"a": 12345678901234567890}')
    expect(page.locator("#json-check")).to_be_empty()
    decide(page)
    expect(page.locator(".answer")).to_have_count(3)


def test_an_example_can_be_taken_back(address: str, open_page: NewPage) -> None:
    page = open_page(f"{address}/")
    page.get_by_label("State", exact=True).fill("mine")
    page.get_by_role("button", name="Examples").click()
    page.get_by_role("button", name="Check an invoice").click()
    expect(page.get_by_label("State", exact=True)).to_have_value(re.compile("Marlow"))
    expect(page.get_by_label("as JSON", exact=True)).to_be_checked()
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_label("State", exact=True)).to_have_value("mine")


def test_hostile_text_is_text(address: str, open_page: NewPage) -> None:
    hostile = '<img src=x onerror="document.title=1"><script>document.title=2</script>'
    page = open_page(f"{address}/", width=360)
    page.get_by_label("Option 1 of question 1", exact=True).fill(hostile)
    page.get_by_label("Option 2 of question 1", exact=True).fill("W" * 500)
    page.get_by_label("Question 2", exact=True).fill(f"{hostile} שלום")
    decide(page)
    expect(page.locator(".answer").filter(has_text="Which team")).to_contain_text(hostile)
    expect(page.locator(".answer img")).to_have_count(0)
    expect(page).to_have_title("Ask · clef")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_an_engine_that_is_not_ready_says_so_and_keeps_the_form(
    staged_address: str, stage: StagedEngine, open_page: NewPage
) -> None:
    stage.phase = "loading"
    page = open_page(f"{staged_address}/")
    expect(page.locator("#standing")).to_have_attribute("data-phase", "loading")
    expect(page.locator("#standing")).to_contain_text("loading the model")
    page.get_by_label("State", exact=True).fill("mine")
    decide(page)
    expect(page.locator("#answers .problems")).to_contain_text("still loading")
    expect(page.get_by_label("State", exact=True)).to_have_value("mine")
    stage.phase = "ready"
    come_back(page)
    expect(page.locator("#standing")).to_have_attribute("data-phase", "ready")
    decide(page)
    expect(page.locator(".answer")).to_have_count(3)


def test_a_slow_answer_can_be_stopped_and_a_tie_is_flagged(
    staged_address: str, stage: StagedEngine, open_page: NewPage
) -> None:
    stage.pause_s = 60
    page = open_page(f"{staged_address}/")
    page.get_by_label("State", exact=True).fill("a tie")
    decide(page)
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_role("button", name="Stop")).to_be_hidden()
    stage.pause_s = 0
    decide(page)
    expect(page.locator(".answer.tie")).to_have_count(3)
    expect(page.locator(".answer").filter(has_text="Which team").locator(".verdict")).to_contain_text("A tie")


def view(page: Page, name: str) -> None:
    page.locator(".views").get_by_text(name, exact=True).click()


def test_form_and_json_are_two_views_of_one_request(address: str, open_page: NewPage) -> None:
    page = open_page(f"{address}/")
    page.get_by_text("as JSON", exact=True).click()
    page.get_by_label("State", exact=True).fill('{"id": 12345678901234567890, "price": 1.50}')
    view(page, "JSON")
    request = page.get_by_label("Request", exact=True)
    expect(request).to_have_value(re.compile('"id": 12345678901234567890'))
    text = request.input_value()
    decide(page)
    expect(page.locator(".answer")).to_have_count(3)
    request.fill(text.replace("Is the customer angry?", "Is she <i>angry</i>?"))
    page.reload()
    expect(request).to_have_value(re.compile("<i>angry</i>"))
    view(page, "Form")
    expect(page.get_by_label("Question 2", exact=True)).to_have_value("Is she <i>angry</i>?")
    expect(page.get_by_label("as JSON", exact=True)).to_be_checked()
    expect(page.get_by_label("State", exact=True)).to_have_value(re.compile("12345678901234567890"))
    view(page, "JSON")
    expect(request).to_have_value(text.replace("Is the customer angry?", "Is she <i>angry</i>?"))


def test_json_that_the_form_cannot_show_stays_and_can_be_asked(address: str, open_page: NewPage) -> None:
    page = open_page(f"{address}/")
    view(page, "JSON")
    request = page.get_by_label("Request", exact=True)
    request.fill('{"state": "a",\n "questions": [}')
    expect(page.locator("#request-check")).to_contain_text("line 2, column 16")
    view(page, "Form")
    expect(page.locator("#answers .problems")).to_contain_text("line 2, column 16")
    expect(request).to_be_visible()
    request.fill('{"state": "a", "questions": [{"type": "noul", "question": {"ask": "Good?"}}]}')
    view(page, "Form")
    expect(page.locator("#answers .problems")).to_contain_text("no field")
    decide(page)
    expect(page.locator(".answer")).to_have_count(1)


def test_a_request_is_copied_as_code_and_as_a_link_that_brings_it_back(address: str, open_page: NewPage) -> None:
    page = open_page(f"{address}/")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_label("State", exact=True).fill('it\'s – "new" שלום')
    for name, part in (
        ("curl", f"curl {address}/api/predict"),
        ("Python with", f"upstream='{address}'"),
        ("Python, TypeSafe SDK", "from typesafe_sdk import TypeSafeClient"),
        ("JavaScript with fetch", "await fetch"),
        ("Link", "#ask="),
    ):
        page.get_by_role("button", name="Copy", exact=True).click()
        page.get_by_role("button", name=name).click()
        expect(page.locator("#copied")).to_contain_text("Copied as")
        page.wait_for_function("part => navigator.clipboard.readText().then((text) => text.includes(part))", arg=part)
    link = page.evaluate("navigator.clipboard.readText()")
    other = open_page(f"{address}/")
    other.get_by_label("State", exact=True).fill("mine")
    other.goto(link)
    expect(other.get_by_label("State", exact=True)).to_have_value('it\'s – "new" שלום')
    expect(other).not_to_have_url(re.compile("#"))
    other.get_by_role("button", name="Undo").click()
    expect(other.get_by_label("State", exact=True)).to_have_value("mine")
    other.goto(f"{address}/#ask=bm9wZQ")
    expect(other.locator(".undo")).to_contain_text("The link holds no request")
    expect(other.get_by_label("State", exact=True)).to_have_value("mine")


def test_code_that_cannot_be_copied_is_shown(address: str, open_page: NewPage) -> None:
    page = open_page(f"{address}/")
    page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(new Error('no')); }")
    page.get_by_role("button", name="Copy", exact=True).click()
    page.get_by_role("button", name="curl").click()
    expect(page.locator("#copy-by-hand textarea")).to_have_value(re.compile("^curl "))
    page.keyboard.press("Escape")
    expect(page.locator("#copy-by-hand")).to_be_hidden()


def test_tokens_are_counted_while_typing_and_questions_get_advice(address: str, open_page: NewPage) -> None:
    page = open_page(f"{address}/")
    expect(page.locator("#notes")).to_have_text(re.compile(r"\d+ of \d+ tokens"))
    page.get_by_label("State", exact=True).fill("word " * 3000)
    expect(page.locator("#notes .over")).to_contain_text("too long for this model")
    page.get_by_label("State", exact=True).fill("short")
    page.get_by_label("Question 2", exact=True).fill("Is it not good and is it new?")
    advice = page.locator(card(page, 2)).locator(".advice li")
    expect(advice).to_have_count(2)
    expect(advice.first).to_contain_text("two questions in one")
    page.get_by_label("Question 2", exact=True).fill("Is it good?")
    expect(advice).to_have_count(0)


def test_each_answer_alone_stands_beside_it_together(address: str, open_page: NewPage) -> None:
    page = open_page(f"{address}/")
    page.get_by_label("Ask the questions").select_option("alone")
    decide(page)
    expect(page.locator("#answers .foot")).to_contain_text("asked alone")
    page.get_by_label("Ask the questions").select_option("both")
    expect(page.locator(".stale-note")).to_be_visible()
    decide(page)
    expect(page.locator("#answers .foot")).to_contain_text("asked together, and each alone")
    choice = page.locator(".answer").filter(has_text="Which team")
    expect(choice.locator("thead")).to_contain_text("alone")
    expect(choice.locator("tbody tr, tr:has(th[scope=row])").first.locator(".figure")).to_have_count(3)
    expect(page.locator(".answer").filter(has_text="angry")).to_contain_text("alone: yes")
    page.reload()
    expect(page.get_by_label("Ask the questions")).to_have_value("both")


def asked(page: Page, state: str) -> str:
    """Ask about a state; the address that the answers have then."""
    before = page.url
    page.get_by_label("State", exact=True).fill(state)
    page.keyboard.press("Control+Enter")
    page.wait_for_url(lambda url: "?ask=" in url and url != before)
    return page.url


def test_what_was_asked_has_an_address_and_back_works(address: str, open_page: NewPage) -> None:
    page = open_page(f"{address}/")
    state = page.get_by_label("State", exact=True)
    first = asked(page, "The first of two states")
    asked(page, "The second of two states")
    page.go_back()
    expect(state).to_have_value("The first of two states")
    expect(page.locator(".answer")).to_have_count(3)
    expect(page.locator(".stale-note")).to_be_hidden()
    page.go_forward()
    expect(state).to_have_value("The second of two states")
    state.fill("Changed since")
    page.reload()
    expect(state).to_have_value("Changed since")
    expect(page.locator(".stale-note")).to_be_visible()
    other = open_page(first)
    expect(other.get_by_label("State", exact=True)).to_have_value("The first of two states")
    expect(other.locator("#answers .foot time")).to_be_visible()


def test_the_history_is_searched_opened_and_deleted_with_the_keyboard(address: str, open_page: NewPage) -> None:
    page = open_page(f"{address}/")
    asked(page, "An umbrella that leaks")
    asked(page, "A bicycle that rattles")
    page.get_by_role("button", name="History").focus()
    page.keyboard.press("Enter")
    drawer = page.get_by_role("dialog", name="Asked before")
    expect(drawer.get_by_role("searchbox")).to_be_focused()
    expect(drawer.locator(".asks li").first).to_contain_text("A bicycle")
    page.keyboard.type("umbrella")
    expect(drawer.locator(".asks li")).to_have_count(1)
    drawer.locator("[data-open]").focus()
    page.keyboard.press("Enter")
    expect(drawer).to_be_hidden()
    expect(page.get_by_label("State", exact=True)).to_have_value("An umbrella that leaks")
    expect(page.locator("#answers-heading")).to_be_focused()
    page.get_by_role("button", name="History").click()
    expect(drawer.locator(".asks li")).to_have_count(1)
    drawer.get_by_role("button", name="Delete: An umbrella").click()
    expect(drawer.locator(".asks li")).to_have_count(0)
    expect(drawer.get_by_role("searchbox")).to_be_focused()
    page.reload()
    expect(page.locator(".undo")).to_contain_text("not kept any more")


def test_two_tabs_see_one_history_and_each_keeps_its_own_form(address: str, open_page: NewPage) -> None:
    page = open_page(f"{address}/")
    other = page.context.new_page()
    other.goto(f"{address}/")
    asked(page, "Asked in the first tab")
    other.get_by_label("State", exact=True).fill("Typed in the second tab")
    other.get_by_role("button", name="History").click()
    expect(other.locator(".asks li").first).to_contain_text("Asked in the first tab")
    other.keyboard.press("Escape")
    page.reload()
    expect(page.get_by_label("State", exact=True)).to_have_value("Asked in the first tab")
    other.reload()
    expect(other.get_by_label("State", exact=True)).to_have_value("Typed in the second tab")


def test_the_history_is_switched_off_and_emptied(staged_address: str, open_page: NewPage) -> None:
    page = open_page(f"{staged_address}/")
    asked(page, "Kept at first")
    page.get_by_role("button", name="History").click()
    drawer = page.get_by_role("dialog", name="Asked before")
    keep = drawer.get_by_label("Keep what I ask")
    keep.uncheck()
    expect(drawer.get_by_role("status")).to_contain_text("ask")
    page.keyboard.press("Escape")
    page.get_by_label("State", exact=True).fill("Not to be kept")
    decide(page)
    expect(page.locator(".stale-note")).to_be_hidden()
    expect(page).to_have_url(f"{staged_address}/")
    page.get_by_role("button", name="History").click()
    expect(drawer.locator(".asks li").first).to_contain_text("Kept at first")
    drawer.get_by_role("button", name="Delete all").click()
    drawer.get_by_role("button", name="for good?").click()
    expect(drawer.get_by_role("status")).to_have_text("Nothing is kept.")
    keep.check()
    expect(drawer.get_by_role("status")).to_contain_text("stands here")


PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def picture(name: str, content: bytes = PNG, kind: str = "image/png") -> FilePayload:
    return {"name": name, "mimeType": kind, "buffer": content}


def drop_of(page: Page, name: str, event: str) -> None:
    """What the browser tells a page of a file that is dropped or pasted."""
    page.evaluate(
        """([name, kind, encoded]) => {
            const bytes = Uint8Array.from(atob(encoded), (c) => c.charCodeAt(0));
            const data = new DataTransfer();
            data.items.add(new File([bytes], name, { type: "image/png" }));
            const made = kind === "drop"
                ? new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true })
                : new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true });
            document.querySelector("#state").dispatchEvent(made);
        }""",
        [name, event, base64.b64encode(PNG).decode()],
    )


def names(page: Page) -> list[str]:
    return [str(image.get_attribute("alt")) for image in page.locator("state-images img").all()]


def test_images_come_by_choice_drop_and_paste_and_go_up_in_their_order(
    staged_address: str, stage: StagedEngine, open_page: NewPage
) -> None:
    page = open_page(f"{staged_address}/")
    page.locator("state-images input").set_input_files([picture("one.png"), picture("two.png")])
    expect(page.locator("state-images img")).to_have_count(2)
    drop_of(page, "three.png", "drop")
    expect(page.locator("state-images img")).to_have_count(3)
    drop_of(page, "four.png", "paste")
    expect(page.locator("state-images img")).to_have_count(4)
    page.get_by_role("button", name="Move earlier: image 4").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Move earlier: image 3")).to_be_focused()
    page.get_by_role("button", name="Remove: image 1").click()
    assert names(page) == ["two.png", "four.png", "three.png"]
    expect(page.locator("state-images img").first).to_have_js_property("naturalWidth", 1)
    page.reload()
    expect(page.locator("state-images img")).to_have_count(3)
    assert names(page) == ["two.png", "four.png", "three.png"]
    page.locator(".views").get_by_text("JSON", exact=True).click()
    expect(page.get_by_label("Request", exact=True)).to_have_value(re.compile("charged twice"))
    decide(page)
    expect(page.locator(".answer")).to_have_count(3)
    assert [image.startswith("data:image/png;base64,iVBOR") for image in stage.images] == [True, True, True]
    page.wait_for_url(re.compile("ask="))
    other = open_page(page.url)
    expect(other.locator("state-images img")).to_have_count(3)


def test_images_that_cannot_be_taken_are_told_with_the_reason(staged_address: str, open_page: NewPage) -> None:
    page = open_page(f"{staged_address}/")
    said = page.locator("state-images [role=status]")
    field = page.locator("state-images input")
    field.set_input_files([picture("big.png", PNG + bytes(16_000_001)), picture("notes.txt", b"x", "text/plain")])
    expect(said).to_have_text("big.png has 16.0 MB; 16 MB are the most. Make it smaller. notes.txt is no image.")
    field.set_input_files([picture("broken.webp", b"RIFF", "image/webp")])
    expect(said).to_have_text("broken.webp cannot be read. Give a PNG or JPEG.")
    field.set_input_files([picture("really.gif", PNG, "image/gif")])
    expect(said).to_have_text("really.gif is sent as PNG.")
    field.set_input_files([picture(f"{n}.png") for n in range(8)])
    expect(said).to_have_text("7.png is left out: 8 images are the most.")


def test_an_engine_that_reads_no_images_is_said_to_and_how_to_change_that(address: str, open_page: NewPage) -> None:
    page = open_page(f"{address}/")
    expect(page.locator("state-images")).to_contain_text("this one reads none")
    drop_of(page, "one.png", "drop")
    expect(page.get_by_role("alert")).to_contain_text("CLEF_IMAGES=1")
    expect(page.locator("state-images img")).to_have_count(0)
    page.get_by_role("alert").get_by_role("link", name="Engine").click()
    expect(page.locator("h1")).to_be_visible()


def test_each_kind_of_state_keeps_what_was_typed(address: str, open_page: NewPage) -> None:
    page = open_page(f"{address}/")
    state = page.get_by_label("State", exact=True)
    state.fill("Where is my parcel?")
    page.get_by_text("as chat", exact=True).click()
    expect(page.get_by_label("Message 1", exact=True)).to_have_value("Where is my parcel?")
    page.get_by_role("button", name="message", exact=True).click()
    expect(page.get_by_label("Message 2", exact=True)).to_be_focused()
    page.keyboard.type("On its way.")
    expect(page.get_by_label("Role of message 2")).to_have_value("assistant")
    page.get_by_text("as text", exact=True).click()
    expect(state).to_have_value("Where is my parcel?")
    page.reload()
    page.get_by_text("as chat", exact=True).click()
    expect(page.get_by_label("Message 2", exact=True)).to_have_value("On its way.")
    page.locator(".views").get_by_text("JSON", exact=True).click()
    expect(page.get_by_label("Request", exact=True)).to_have_value(re.compile('"role": "assistant"'))
    page.locator(".views").get_by_text("Form", exact=True).click()
    expect(page.get_by_label("Message 2", exact=True)).to_have_value("On its way.")
    page.get_by_label("Message 1", exact=True).fill("")
    decide(page)
    expect(page.locator("state-chat .field-problem")).to_have_text("Message 1 is empty")
    page.get_by_role("button", name="Remove message 1").click()
    decide(page)
    expect(page.locator(".answer")).to_have_count(3)


QUESTIONS = "tone:\n  question: What is the tone?\n  levels: [cold, warm]\nspam:\n  question: Is it spam?\n"


def test_a_question_file_is_opened_by_choice_and_by_drop_and_saved_again(address: str, open_page: NewPage) -> None:
    page = open_page(f"{address}/")
    chosen = FilePayload(name="mine.yaml", mimeType="application/yaml", buffer=QUESTIONS.encode())
    page.get_by_label("Open a file").set_input_files(chosen)
    expect(page.locator("question-card")).to_have_count(2)
    expect(page.get_by_label("Question 1", exact=True)).to_have_value("What is the tone?")
    expect(page.get_by_label("State", exact=True)).to_have_value(re.compile("charged twice"))
    expect(page.locator(".undo")).to_contain_text("mine.yaml")
    page.reload()
    with page.expect_download() as download:
        page.get_by_role("button", name="Save as a file").click()
    saved = download.value.path().read_text()
    assert "tone:" in saved and "spam:" in saved and "cold" in saved  # noqa: PT018

    page.get_by_role("button", name="Remove: question 1").click()
    dropped(page, "again.yml", saved)
    expect(page.get_by_label("Question 1", exact=True)).to_have_value("What is the tone?")
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("question-card")).to_have_count(1)
    expect(page.locator("state-images img")).to_have_count(0)

    dropped(page, "wrong.yaml", QUESTIONS.replace("levels", "lvels"))
    expect(page.get_by_role("alert")).to_contain_text("line 3")
    expect(page.locator("#answers-heading")).to_be_focused()
    expect(page.locator("question-card")).to_have_count(1)


def dropped(page: Page, name: str, text: str) -> None:
    data = page.evaluate_handle(
        "([name, text]) => { const data = new DataTransfer(); data.items.add(new File([text], name)); return data }",
        [name, text],
    )
    page.locator("#view-questions").dispatch_event("drop", {"dataTransfer": data})


def test_questions_are_dragged_into_another_order_and_back_with_escape(address: str, open_page: NewPage) -> None:
    page = open_page(f"{address}/", height=1500)
    expect(page.locator("#notes")).to_contain_text("tokens")  # the last thing to come
    asked = page.locator("[data-part=question]")
    first, second, third = (one.input_value() for one in asked.all())
    page.get_by_label("Option 1 of question 2", exact=True).or_(
        page.get_by_label("Question 2", exact=True)
    ).first.focus()

    def grab(position: int) -> None:
        page.locator(".grip").nth(position).hover()
        page.mouse.down()

    def carry(position: int) -> None:
        box = page.locator(card(page, position)).bounding_box()
        assert box
        page.mouse.move(box["x"] + 30, box["y"] + box["height"] - 10, steps=8)

    grab(0)
    carry(3)
    page.mouse.up()
    expect(page.locator(".dragged")).to_have_count(0)
    assert [one.input_value() for one in asked.all()] == [second, third, first]
    expect(page.get_by_label("Question 3", exact=True)).to_have_value(first)
    page.get_by_text("JSON", exact=True).first.click()
    request = json.loads(page.get_by_role("textbox", name="Request").input_value())
    assert [question["question"] for question in request["questions"]] == [second, third, first]
    page.get_by_text("Form", exact=True).click()

    grab(2)
    page.mouse.move(100, 300, steps=8)
    expect(page.get_by_label("Question 3", exact=True)).to_have_count(1)
    page.keyboard.press("Escape")
    page.mouse.up()
    assert [one.input_value() for one in asked.all()] == [second, third, first]
    page.reload()
    assert [one.input_value() for one in asked.all()] == [second, third, first]


def test_a_question_is_dragged_with_a_finger(address: str, open_page: NewPage) -> None:
    page = open_page(f"{address}/", width=360, height=1900)
    expect(page.locator("#notes")).to_contain_text("tokens")  # the last thing to come
    asked = page.locator("[data-part=question]")
    before = [one.input_value() for one in asked.all()]
    start, end = page.locator(".grip").nth(1).bounding_box(), page.locator(card(page, 1)).bounding_box()
    assert start and end  # noqa: PT018
    touch = page.context.new_cdp_session(page)
    x, y = start["x"] + 5, start["y"] + 10

    def finger(kind: str, *points: float) -> None:
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": x, "y": at} for at in points]})

    finger("touchStart", y)
    expect(page.locator(".dragged")).to_have_count(1)
    for step in range(1, 11):
        finger("touchMove", y + (end["y"] + 5 - y) * step / 10)
    finger("touchEnd")
    expect(page.locator(".dragged")).to_have_count(0)
    assert [one.input_value() for one in asked.all()] == [before[1], before[0], before[2]]
