"""Evaluate and the page of a run, as a person uses them."""

import csv
import io
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from clef.web.bundles import STATIC
from tests.browser.conftest import NewPage
from tests.browser.staged import StagedEngine

pytestmark = pytest.mark.browser

HEADER = "context,question,answer,options"


def choose(page: Page, name: str, text: str) -> None:
    page.set_input_files("#file", {"name": name, "mimeType": "text/csv", "buffer": text.encode()})


def run(page: Page) -> None:
    """Press the button; the run's page comes at once."""
    page.get_by_role("button", name="Evaluate", exact=True).click()
    page.wait_for_url(re.compile(r"/runs/\w+#result"))


def run_to_the_end(page: Page) -> None:
    run(page)
    expect(page.locator("run-progress")).to_have_count(0)


def table(*states: str) -> str:
    return "\n".join([HEADER, *(f"{state},Is it good?,yes,yes;no" for state in states)]) + "\n"


def test_the_sample_is_evaluated_and_its_results_downloaded(address: str, open_page: NewPage, tmp_path: Path) -> None:
    page = open_page(f"{address}/evaluate")
    page.get_by_role("button", name="Try the sample").click()
    expect(page.locator("[data-part=facts]")).to_contain_text("33 rows · 6 questions · 1 without a label")
    expect(page.locator("[data-part=ready]")).to_have_text("33 rows, 33 requests · all within 512 tokens")
    run_to_the_end(page)
    expect(page.locator(".headline-figure")).to_have_text(re.compile(r"\d+\.\d % right"))
    expect(page.locator(".headline-words")).to_contain_text("of 32 answered rows")
    expect(page.locator(".headline-words")).to_contain_text("1 row has no label")
    expect(page.locator(".by-question .tall")).to_have_count(6)
    expect(page.locator(".rows > tbody > tr:not(.details)")).to_have_count(33)

    for name, lines in (("CSV", 34), ("JSON lines", 33)):
        page.get_by_role("button", name="Export").click()
        with page.expect_download() as waiting:
            page.get_by_role("link", name=name).click()
        waiting.value.save_as(tmp_path / "results")
        text = (tmp_path / "results").read_text("utf-8-sig")
        assert len(list(csv.reader(text.splitlines(keepends=True))) if name == "CSV" else text.splitlines()) == lines
        page.keyboard.press("Escape")


def test_a_run_has_the_name_and_the_shape_that_were_chosen_and_uses_earlier_answers(
    staged_address: str, stage: StagedEngine, open_page: NewPage
) -> None:
    page = open_page(f"{staged_address}/evaluate")
    two = [f"{state},{question},yes,yes;no" for state in ("one", "two") for question in ("Good?", "New?")]
    rows = "\n".join([HEADER, *two])
    choose(page, "t.csv", rows)
    expect(page.locator("[data-part=ready]")).to_contain_text("4 rows, 4 requests")
    page.get_by_text("together", exact=True).click()
    expect(page.locator("[data-part=ready]")).to_contain_text("4 rows, 2 requests")
    page.get_by_label("Name", exact=True).fill("<b>Support</b>, May")
    run_to_the_end(page)
    expect(page.locator("h1")).to_have_text("<b>Support</b>, May")
    expect(page.locator("#whole")).to_contain_text("questions of a row asked together")
    assert stage.asked == 2

    page.goto(f"{staged_address}/evaluate")
    choose(page, "t.csv", rows)
    page.get_by_text("together", exact=True).click()
    run_to_the_end(page)
    expect(page.locator("#whole")).to_contain_text("The answers of 4 rows came from earlier runs")
    assert stage.asked == 2

    page.get_by_role("button", name="Rename").click()
    expect(page.get_by_label("Name of the run")).to_be_focused()
    page.keyboard.type("Second")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("Second")
    page.reload()
    expect(page.locator("h1")).to_have_text("Second")


def test_rows_are_ranked_filtered_and_opened(address: str, open_page: NewPage) -> None:
    page = open_page(f"{address}/evaluate")
    choose(page, "sample.csv", (STATIC / "sample.csv").read_text("utf-8"))
    run_to_the_end(page)
    rows = page.locator(".rows > tbody > tr:not(.details)")
    wrong = page.locator(".chips .chip").filter(has_text="wrong")
    count = int(wrong.locator("b").inner_text())
    wrong.click()
    expect(page.locator(".chip[aria-current]")).to_contain_text("wrong")
    expect(rows).to_have_count(count)
    expect(page.locator(".rows tr.right")).to_have_count(0)
    expect(page.locator("#rows-heading")).to_be_focused()
    expect(page).to_have_url(re.compile("show=wrong"))

    page.get_by_role("link", name="Is the writer asking for money back?").click()
    page.wait_for_url(re.compile("question=Is"))
    expect(page.locator(".chip.removable")).to_contain_text("money back")
    expect(page.locator("#filters [name=question]")).to_have_value("Is the writer asking for money back?")
    page.go_back()
    page.wait_for_url(re.compile("show=wrong(#rows)?$"))
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
    expect(page.locator("run-progress")).to_have_count(0)
    expect(page.locator(".headline-words")).to_contain_text("of 2 answered rows")
    expect(page.locator(".headline-words")).to_contain_text("cannot say more")


def test_a_table_is_read_as_the_person_says(address: str, open_page: NewPage) -> None:
    page = open_page(f"{address}/evaluate")
    text = "Nachricht;Frage;Urteil\nschön;Gut?;ja\nlahm;Gut?;nein\n"
    page.set_input_files(
        "#file", {"name": "t.csv", "mimeType": "text/csv", "buffer": text.encode("windows-1251", "replace")}
    )
    expect(page.locator("problem-list")).to_contain_text("no column for the question")
    for role, column in (
        ("What is decided about", "Nachricht"),
        ("The question", "Frage"),
        ("The right answer", "Urteil"),
    ):
        page.get_by_label(role, exact=True).select_option(column)
    expect(page.get_by_label("The right answer", exact=True)).to_be_focused()
    expect(page.locator("problem-list")).to_be_empty()
    expect(page.locator("[data-part=preview]")).to_contain_text("lahm")
    page.get_by_label("Encoding", exact=True).select_option("utf-16")
    expect(page.locator("problem-list h3")).to_be_visible()
    page.get_by_label("Encoding", exact=True).select_option("windows-1251")
    expect(page.locator("[data-part=facts]")).to_contain_text("2 rows")
    run_to_the_end(page)
    expect(page.locator(".headline-words")).to_contain_text("2 answered rows")


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


def test_a_run_outlives_its_page_and_can_be_stopped_and_resumed(
    staged_address: str, stage: StagedEngine, open_page: NewPage
) -> None:
    stage.pause_s = 0.05
    page = open_page(f"{staged_address}/evaluate")
    choose(page, "long.csv", table(*(f"text {number} of a long run" for number in range(2000))))
    run(page)
    progress = page.get_by_role("progressbar", name="Rows done")
    expect(progress).to_be_visible()
    expect(page.locator("run-progress [data-part=done]")).to_have_text(re.compile(r"\d\d of 2\s000 rows"))
    expect(page.locator("run-progress [data-part=pace]")).to_have_text(re.compile("rows a second · .* left"))
    page.goto("about:blank")
    asked = stage.asked
    page.go_back()
    expect(page.locator("run-progress [data-part=done]")).to_have_text(re.compile(r"\d\d of 2\s000 rows"))
    page.reload()
    expect(page.locator(".headline-figure")).to_have_text("100.0 % right so far")
    assert stage.asked > asked
    page.get_by_role("button", name="Stop").click()
    expect(page.locator(".flag")).to_contain_text(re.compile("rows were asked: stopped by a person"))
    expect(page.locator(".rows > tbody > tr:not(.details)").first).to_be_visible()
    asked = stage.asked
    page.goto(f"{staged_address}/runs")
    expect(page.locator("tbody tr").first).to_contain_text("stopped early")
    assert asked < 2000
    assert stage.asked <= asked + 4
    page.go_back()
    stage.pause_s = 0
    page.get_by_role("button", name="Ask the other").click()
    expect(page.locator(".headline-words")).to_contain_text(re.compile(r"2\s000 of 2\s000"))


def test_a_run_waits_for_the_one_before_it_and_for_an_engine_that_is_away(
    staged_address: str, stage: StagedEngine, open_page: NewPage
) -> None:
    stage.pause_s = 0.3
    page = open_page(f"{staged_address}/evaluate")
    choose(page, "first.csv", table(*(f"first {number}" for number in range(40))))
    run(page)
    first = page.url
    page.goto(f"{staged_address}/evaluate")
    choose(page, "second.csv", table("second"))
    run(page)
    second = page.url
    expect(page.locator("[data-part=pace]")).to_have_text("waiting in line: another run comes first")
    page.goto(f"{staged_address}/runs")
    expect(page.locator("tbody tr").first).to_contain_text("waiting in line")
    page.goto(first)
    page.get_by_role("button", name="Stop").click()
    expect(page.locator("run-progress")).to_have_count(0)
    page.goto(second)
    expect(page.locator(".headline-words")).to_contain_text("1 of 1")
    stage.phase, stage.pause_s = "loading", 0.0
    page.goto(f"{staged_address}/evaluate")
    choose(page, "third.csv", table("third"))
    run(page)
    expect(page.locator("[data-part=pace]")).to_have_text("paused: The model is being read.")
    stage.phase = "ready"
    expect(page.locator(".headline-words")).to_contain_text("1 of 1")


def test_a_table_of_texts_and_labels_gets_one_question_for_every_row(address: str, open_page: NewPage) -> None:
    page = open_page(f"{address}/evaluate")
    choose(
        page, "mail.csv", "message,team\npaid twice,billing\napp crashes,technical\ninvoice,billing\nerror,technical\n"
    )
    expect(page.locator("problem-list")).to_contain_text("give one question for every row")
    expect(page.locator("[data-part=ready]")).to_have_text("Say above which column is which.")
    page.get_by_label("The right answer").select_option("team")
    expect(page.locator("problem-list")).not_to_contain_text("answer or gold")
    expect(page.locator("[data-part=ready]")).to_have_text("Write above what is asked of every row.")
    page.get_by_label("The question of every row").fill("Which team?")
    page.get_by_label("The question of every row").press("Enter")
    expect(page.locator("[data-part=facts]")).to_contain_text("4 rows · 1 question")
    page.reload()
    expect(page.get_by_label("The question of every row")).to_have_value("Which team?")
    run_to_the_end(page)
    expect(page.locator(".headline-words")).to_contain_text("of 4 answered rows")


def test_a_question_file_goes_with_a_table_of_labels(address: str, open_page: NewPage) -> None:
    page = open_page(f"{address}/evaluate")
    choose(page, "labels.csv", "message,team,day\npaid twice,billing,1\napp crashes,technical,2\n")
    expect(page.locator("problem-list")).to_contain_text("2 problems")
    questions = "team:\n  question: Which team?\n  options: {billing: payments, technical: bugs}\n"
    for text, said in ((questions.replace("options", "optoins"), "unknown key"), (questions, "")):
        page.set_input_files(
            "#question-file", {"name": "q.yaml", "mimeType": "application/yaml", "buffer": text.encode()}
        )
        if said:
            expect(page.locator("problem-list")).to_contain_text(said)
    expect(page.locator("[data-part=facts]")).to_contain_text("2 rows · 1 question")
    page.reload()
    expect(page.locator("[data-part=asked]")).to_have_text("q.yaml")
    expect(page.locator("[data-part=facts]")).to_contain_text("2 rows · 1 question")
    run_to_the_end(page)
    expect(page.locator(".headline-words")).to_contain_text("of 2 answered rows")


def test_runs_are_found_deleted_and_brought_back(staged_address: str, open_page: NewPage) -> None:
    page = open_page(f"{staged_address}/evaluate")
    choose(page, "t.csv", table("one", "two"))
    page.get_by_label("Name", exact=True).fill("Unlike any other")
    run_to_the_end(page)
    page.get_by_role("link", name="Runs").click()
    page.get_by_label("Search in names and notes").fill("unlike")
    expect(page.locator("tbody tr")).to_have_count(1)
    page.wait_for_url(re.compile("search=unlike"))
    expect(page.locator("tbody tr")).to_contain_text("100.0 %")
    page.get_by_role("button", name="Delete the run Unlike any other").click()
    expect(page.locator(".flag")).to_contain_text("Unlike any other is deleted")
    expect(page.get_by_role("link", name="Unlike any other")).to_have_count(0)
    page.get_by_role("button", name="Undo").click()
    page.get_by_role("link", name="Unlike any other").click()
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(page.locator(".flag")).to_contain_text("Unlike any other is deleted")
    page.go_back()
    page.get_by_role("button", name="Bring it back").click()
    expect(page.get_by_role("button", name="Delete", exact=True)).to_be_visible()


def test_runs_are_sorted_filtered_and_chosen_to_be_compared(staged_address: str, open_page: NewPage) -> None:
    page = open_page(f"{staged_address}/evaluate")
    for name, states in (("sortable one", ("a", "b")), ("Sortable two", ("a", "refuse", "c"))):
        page.goto(f"{staged_address}/evaluate")
        choose(page, "t.csv", table(*states))
        page.get_by_label("Name", exact=True).fill(name)
        run_to_the_end(page)
    page.goto(f"{staged_address}/runs?search=sortable")
    first = page.locator(".runs tbody th").first
    expect(first).to_have_text("Sortable two")
    page.get_by_role("link", name="Run", exact=True).click()
    page.wait_for_url(re.compile("sort=name&order=asc"))
    expect(first).to_have_text("sortable one")
    page.get_by_role("link", name="Rows", exact=True).click()
    expect(page.locator("th[aria-sort=descending]")).to_contain_text("Rows")
    expect(first).to_have_text("Sortable two")
    page.go_back()
    expect(first).to_have_text("sortable one")
    compare = page.locator("run-choice button")
    page.get_by_label("Compare Sortable two").focus()
    page.keyboard.press("Space")
    expect(page.locator("run-choice [role=status]")).to_have_text("Tick one more.")
    expect(compare).to_be_disabled()
    page.get_by_label("Compare sortable one").check()
    ids = [page.get_by_label(f"Compare {name}").input_value() for name in ("sortable one", "Sortable two")]
    expect(compare).to_have_text("Compare 2 runs")
    compare.click()
    page.wait_for_url(f"{staged_address}/compare?run={ids[0]}&run={ids[1]}")


def test_every_run_deleted_in_the_last_day_can_be_brought_back(staged_address: str, open_page: NewPage) -> None:
    page = open_page(f"{staged_address}/evaluate")
    for name in ("Away first", "Away second"):
        page.goto(f"{staged_address}/evaluate")
        choose(page, "t.csv", table("one"))
        page.get_by_label("Name", exact=True).fill(name)
        run_to_the_end(page)
    for name in ("Away first", "Away second"):
        page.goto(f"{staged_address}/runs?search=away")
        page.get_by_role("button", name=f"Delete the run {name}").click()
        expect(page.locator(".flag")).to_contain_text(f"{name} is deleted")
    page.get_by_text("Deleted in the last day").click()
    page.get_by_role("button", name="Bring Away first back").click()
    page.get_by_role("link", name="Away first").click()
    expect(page.locator("h1")).to_have_text("Away first")


def test_failures_and_ties_are_counted_apart_and_failures_asked_again(
    staged_address: str, stage: StagedEngine, open_page: NewPage
) -> None:
    page = open_page(f"{staged_address}/evaluate")
    choose(page, "mixed.csv", table("good", "refuse this", "a tie", "fine", "refuse that"))
    run_to_the_end(page)
    expect(page.locator(".headline-words")).to_contain_text("2 labelled rows failed and are not counted")
    expect(page.locator(".headline-words")).to_contain_text("1 row is tied")
    page.locator(".chips .chip").filter(has_text="wrong").click()
    page.locator(".chips .chip").filter(has_text="failed").click()  # at once: the last click counts
    expect(page.locator(".rows > tbody > tr:not(.details)")).to_have_count(2)
    expect(page.locator(".rows .failure").first).to_contain_text("this text was refused")
    page.locator(".chips .chip").filter(has_text="ties").click()
    expect(page.locator(".rows > tbody > tr.unsure")).to_have_count(1)
    asked = stage.asked
    page.get_by_role("button", name="Retry them").click()
    expect(page.locator(".flag").filter(has_text="2 rows failed")).to_be_visible()
    for _ in range(50):
        if stage.asked == asked + 2:
            break
        page.wait_for_timeout(50)
    assert stage.asked == asked + 2


def test_a_run_under_way_is_followed_in_two_tabs_and_not_under_the_eyes_of_a_reader(
    staged_address: str, stage: StagedEngine, open_page: NewPage
) -> None:
    stage.pause_s = 0.1
    page = open_page(f"{staged_address}/evaluate")
    choose(page, "long.csv", table(*(f"text {number} in two tabs" for number in range(160))))
    run(page)
    other = page.context.new_page()
    other.goto(page.url)
    expect(other.locator("run-progress [data-part=done]")).to_contain_text("of 160 rows")
    row = other.locator("[data-row]").first
    row.click()
    stage.pause_s = 0
    expect(page.locator(".headline-words")).to_contain_text("160 of 160")
    expect(page.locator("run-progress")).to_have_count(0)
    expect(other.locator("run-progress [data-part=pace]")).to_have_text("done")
    expect(other.locator(".drawer")).to_be_visible()
    row.click()
    expect(other.locator("run-progress")).to_have_count(0)
    expect(other.locator(".headline-words")).to_contain_text("160 of 160")


def test_rows_are_searched_sorted_and_gone_through_with_the_keyboard(staged_address: str, open_page: NewPage) -> None:
    page = open_page(f"{staged_address}/evaluate")
    choose(page, "many.csv", table(*(f"text {number} to search" for number in range(230))))
    run_to_the_end(page)
    first = page.locator(".rows > tbody > tr:not(.details) .place").first
    page.get_by_role("link", name="Later").click()
    page.wait_for_url(re.compile("page=2"))
    expect(page.locator(".chips [role=status]")).to_have_text("101–200 of 230")
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox")).to_be_focused()
    page.keyboard.type("TEXT 11")
    expect(page.locator(".chips [role=status]")).to_have_text("1–11 of 11")
    expect(page).to_have_url(re.compile("text=TEXT\\+11"))
    expect(page).not_to_have_url(re.compile("page"))
    expect(page.get_by_role("searchbox")).to_be_focused()
    page.locator("#rows-heading").click()
    page.get_by_role("link", name="Row", exact=True).click()
    page.wait_for_url(re.compile("sort=row&order=asc"))
    expect(first).to_have_text("13")
    expect(page.locator("th[aria-sort=ascending]")).to_contain_text("Row")
    page.get_by_role("link", name="Row", exact=True).click()
    expect(first).to_have_text("121")
    expect(page.locator("#rows-heading")).to_be_focused()
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.locator(".drawer .state")).to_have_text("text 118 to search")
    page.get_by_role("link", name="remove this filter").click()
    expect(page.locator(".chips [role=status]")).to_have_text("1–100 of 230")
    expect(page.get_by_role("searchbox")).to_have_value("")


def test_a_server_that_is_gone_leaves_the_table_chosen(address: str, open_page: NewPage) -> None:
    page = open_page(f"{address}/evaluate", intercepted=True)
    choose(page, "fine.csv", table("fine"))
    expect(page.get_by_role("button", name="Evaluate", exact=True)).to_be_enabled()
    page.route("**/api/runs?*", lambda route: route.abort())
    page.get_by_role("button", name="Evaluate", exact=True).click()
    expect(page.locator("problem-list h3")).to_have_text("Clef does not answer")
    expect(page.locator("[data-part=name]")).to_have_text("fine.csv")
    page.unroute("**/api/runs?*")
    run_to_the_end(page)


def test_a_connection_that_is_lost_is_taken_up_again(
    staged_address: str, stage: StagedEngine, open_page: NewPage
) -> None:
    stage.pause_s = 0.1
    page = open_page(f"{staged_address}/evaluate", intercepted=True)
    choose(page, "long.csv", table(*(f"text {number} off and on" for number in range(160))))
    page.route("**/events", lambda route: route.abort())
    run(page)
    expect(page.locator("run-progress [data-part=pace]")).to_have_text("clef does not answer; trying again…")
    page.unroute("**/events")
    expect(page.locator("run-progress [data-part=pace]")).to_contain_text("rows a second")
    stage.pause_s = 0
    expect(page.locator("run-progress")).to_have_count(0)


def test_charts_are_drawn_and_what_is_pressed_is_shown_in_the_rows(address: str, open_page: NewPage) -> None:
    page = open_page(f"{address}/evaluate")
    choose(page, "sample.csv", (STATIC / "sample.csv").read_text("utf-8"))
    run_to_the_end(page)
    expect(page.locator("run-charts[data-state=drawn]")).to_be_visible()
    for chart in ("reliability", "risk", "confusion"):
        expect(page.locator(f"[data-part={chart}] svg")).to_be_visible()
    page.get_by_role("combobox", name="Question").nth(0).select_option(label="What is the tone of the review?")
    expect(page.locator("[data-part=confusion] svg")).to_contain_text("positive")
    cell = page.locator("[data-part=confusion] svg .mark-rect path").first
    cell.scroll_into_view_if_needed()
    cell.click(position={"x": 5, "y": 5})
    page.wait_for_url(re.compile("prediction="))
    expect(page.locator(".chip.removable").filter(has_text="predicted")).to_be_visible()
    page.locator("theme-switch button").click()
    page.locator("theme-switch button").click()
    expect(page.locator("[data-part=risk] svg")).to_be_visible()


def test_hostile_text_is_text_on_every_page_of_a_run(staged_address: str, open_page: NewPage) -> None:
    hostile = "<img src=x onerror=document.title=1><script>document.title=2</script>"
    page = open_page(f"{staged_address}/evaluate", width=360)
    rows = [
        [
            f"{hostile} שלום 👩‍👩‍👧 {number} {'W' * (100_000 if number == 0 else 300)}",
            hostile,
            hostile,
            f"{hostile}|=cmd()",
        ]
        for number in range(25)
    ]
    text = io.StringIO()
    csv.writer(text).writerows([HEADER.split(","), *rows])
    choose(page, f"{hostile.replace('/', '')}.csv", text.getvalue())
    expect(page.locator("[data-part=preview]")).to_contain_text(hostile)
    run_to_the_end(page)
    page.locator("[data-row]").first.click()
    expect(page.locator(".drawer .state")).to_contain_text(hostile)
    page.get_by_role("link", name=hostile).first.click()
    expect(page.locator(".chip.removable")).to_contain_text("onerror")
    expect(page.locator("run-charts[data-state=drawn]")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert page.evaluate("document.title") not in ("1", "2")
    page.get_by_role("link", name="Runs").click()
    expect(page.locator("tbody tr").first).to_contain_text("onerror")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert page.evaluate("document.title") not in ("1", "2")


def test_a_reload_and_back_lose_neither_the_table_nor_what_was_set(staged_address: str, open_page: NewPage) -> None:
    page = open_page(f"{staged_address}/evaluate")
    choose(page, "kept.csv", "text;answer;question;options\n" + "bad;no;Good?;yes|no\n" * 30)
    page.get_by_text("Read it differently").click()
    page.get_by_label("what is decided about", exact=False).select_option("text")
    page.get_by_label("Name", exact=True).fill("Second try")
    page.get_by_text("together", exact=True).click()
    page.get_by_label("Rows to use").fill("10")
    page.get_by_label("drawn at random with seed").fill("7")
    page.get_by_label("Use the answers").uncheck()
    page.reload()
    expect(page.locator("[data-part=name]")).to_have_text("kept.csv")
    expect(page.locator("[data-part=ready]")).to_contain_text("10 rows")
    expect(page.get_by_label("Name", exact=True)).to_have_value("Second try")
    expect(page.get_by_label("together", exact=True)).to_be_checked()
    expect(page.get_by_label("drawn at random with seed")).to_have_value("7")
    expect(page.get_by_label("Use the answers")).not_to_be_checked()
    run_to_the_end(page)
    expect(page.locator(".headline-words")).to_contain_text("10 answered rows")
    page.goto(f"{staged_address}/evaluate")
    expect(page.locator("[data-part=name]")).to_have_text("kept.csv")
    page.get_by_role("button", name="Put it away").click()
    expect(page.locator("[data-part=chosen]")).to_be_hidden()
    expect(page.get_by_role("button", name="Evaluate", exact=True)).to_be_disabled()
    page.reload()
    expect(page.locator("[data-part=ready]")).to_have_text("Choose a table first.")


def give(page: Page, event: str, *names: str, text: str = "") -> None:
    """What the browser tells a page of files that are dropped or pasted, or of pasted text."""
    page.evaluate(
        """([event, names, text]) => {
            const data = new DataTransfer();
            for (const name of names) data.items.add(new File(["context,question,answer\\n"], name));
            if (text) data.setData("text", text);
            const init = { bubbles: true, cancelable: true };
            document.body.dispatchEvent(event === "drop"
                ? new DragEvent("drop", { ...init, dataTransfer: data })
                : new ClipboardEvent("paste", { ...init, clipboardData: data }));
        }""",
        [event, list(names), text],
    )


def test_what_is_no_single_table_is_answered_in_words_and_the_table_stays(address: str, open_page: NewPage) -> None:
    page = open_page(f"{address}/evaluate")
    choose(page, "fine.csv", table("fine", "not fine"))
    expect(page.locator("[data-part=ready]")).to_contain_text("2 rows")
    said = page.get_by_role("alert")
    give(page, "drop", "a.csv", "b.csv")
    expect(said).to_have_text("2 files were given. A run has one table: drop one of them.")
    give(page, "drop")
    expect(said).to_have_text("That is no file. Drop a table, or paste its rows.")
    expect(page.locator("[data-part=name]")).to_have_text("fine.csv")
    expect(page.get_by_role("button", name="Evaluate", exact=True)).to_be_enabled()
    page.evaluate("DataTransferItem.prototype.webkitGetAsEntry = () => ({ isDirectory: true })")
    give(page, "drop", "folder")
    expect(said).to_have_text("That is a folder. Drop the table in it.")
    give(page, "paste", text=table("one", "two", "three"))
    expect(page.locator("[data-part=ready]")).to_contain_text("3 rows")
    expect(said).to_have_count(0)


def test_how_long_a_run_will_take_is_told_once_the_model_has_a_pace(
    staged_address: str, stage: StagedEngine, open_page: NewPage
) -> None:
    stage.pause_s = 0.04
    page = open_page(f"{staged_address}/evaluate")
    choose(page, "short.csv", table(*(f"a paced text {number}" for number in range(20))))
    run_to_the_end(page)
    page.goto(f"{staged_address}/evaluate")
    choose(page, "long.csv", table(*(f"another text {number}" for number in range(3000))))
    expect(page.locator("[data-part=ready]")).to_contain_text(
        re.compile(r"3.000 requests · about (25|30|35|40|45|50) seconds")
    )


def test_a_table_without_right_answers_is_run_once_that_is_said(staged_address: str, open_page: NewPage) -> None:
    page = open_page(f"{staged_address}/evaluate")
    choose(page, "new.csv", "context,question,options\none,Good?,yes|no\ntwo,Good?,yes|no\n")
    expect(page.locator("problem-list h3")).to_be_visible()
    page.get_by_label("Right answers", exact=True).select_option(label="missing, to be labelled later")
    expect(page.locator("[data-part=ready]")).to_contain_text("2 rows")
    page.reload()
    expect(page.locator("[data-part=ready]")).to_contain_text("2 rows")
    run_to_the_end(page)
    expect(page.locator(".rows > tbody > tr:not(.details)")).to_have_count(2)
