"""Turns the pages into pictures for README and docs: `python tools/screenshots.py` writes docs/images/.

It starts clef with the built-in model on a free port and drives the Chromium of the system; both themes, wide and on
a phone. With names of pages after it, only those are written.
"""

import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from playwright.sync_api import Page, ViewportSize, sync_playwright

from bench.servers import clef

IMAGES = Path(__file__).parent.parent / "docs" / "images"
SIZES: dict[str, ViewportSize] = {"wide": {"width": 1440, "height": 1000}, "phone": {"width": 360, "height": 780}}
NARROW = 900
"""Width below which answers stand under the form."""
WHOLE_FORM = 1420
"""Height at which the whole form is seen beside its answers."""
THEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
MESSAGES = (
    ("I was charged twice for order", "billing"),
    ("Please refund the payment of invoice", "billing"),
    ("My card was declined at checkout", "billing"),
    ("I cannot log in since the update of version", "technical"),
    ("The app crashes when I open report", "technical"),
    ("An error message appears on screen", "technical"),
    ("Where is my parcel with number", "shipping"),
    ("The delivery came to the wrong address for order", "shipping"),
    ("The box was damaged when it arrived with parcel", "shipping"),
    ("It still does not work and I want my money back for", "billing"),
)


def ask(page: Page) -> None:
    """Answers beside their questions."""
    page.goto("/")
    page.keyboard.press("Control+Enter")
    page.locator(".answer").first.wait_for()
    if page.viewport_size and page.viewport_size["width"] > NARROW:
        page.set_viewport_size(page.viewport_size | {"height": WHOLE_FORM})
        page.evaluate("scrollTo(0, 0)")


def evaluate(page: Page) -> None:
    """The sample, as it was read."""
    page.goto("/evaluate")
    page.get_by_role("button", name="Try the sample").click()
    page.locator("[data-part=preview]:not([hidden])").wait_for()


def run(page: Page) -> None:
    """What the sample measured."""
    evaluate(page)
    page.get_by_role("button", name="Evaluate", exact=True).click()
    page.wait_for_url("**/runs/*")
    page.locator("run-progress").wait_for(state="detached")
    drawn(page)
    page.evaluate("scrollTo(0, 0)")


def drawn(page: Page) -> None:
    """Return once the charts and the gates of a run are there."""
    page.locator("run-charts[data-state=drawn]").wait_for()
    page.locator("#gates .gate-sum").wait_for()


def support(question: str) -> str:
    """A table of support messages, large enough for gates, as CSV."""
    lines = ["context,question,answer,options,channel"]
    for number in range(240):
        text, team = MESSAGES[number % len(MESSAGES)]
        channel = ("mail", "chat", "phone")[number * 7 % 3]
        lines.append(f"{text} {1000 + 37 * number},{question},{team},billing|technical|shipping,{channel}")
    return "\n".join(lines) + "\n"


def measured(page: Page, name: str, question: str) -> str:
    """The address of the ended run of the support messages under a question, made at the first call."""
    made = next((run for run in page.request.get("/api/runs").json()["runs"] if run["name"] == name), None)
    if made is None:
        made = page.request.post("/api/runs", params={"title": name}, data=support(question).encode()).json()
        page.request.get(f"/api/runs/{made['id']}/events").body()
    return f"/runs/{made['id']}"


def may(page: Page) -> str:
    """The address of the support messages' run."""
    return measured(page, "Support, May", "Which team should handle this?")


def reworded(page: Page) -> str:
    """The address of the run of the same messages under a shorter question."""
    return measured(page, "Support, shorter question", "Which team?")


def gates(page: Page) -> None:
    """Where a person may stop checking."""
    page.goto(may(page) + "?gate=accuracy-0.8")
    page.locator("gate-slider").first.wait_for()
    drawn(page)


def review(page: Page) -> None:
    """One row at a time."""
    page.goto(may(page) + "/review?show=wrong")
    page.locator(".review-row").wait_for()


def compare(page: Page) -> None:
    """Two wordings of one question."""
    page.goto("/compare?" + "&".join("run=" + address.split("/")[-1] for address in (may(page), reworded(page))))


def charts(page: Page) -> None:
    """The charts of a run."""
    page.goto(may(page))
    drawn(page)
    page.locator("run-charts").evaluate("charts => charts.scrollIntoView()")


def rows(page: Page) -> None:
    """The wrong rows, the first one opened."""
    page.goto(may(page) + "?show=wrong")
    drawn(page)
    page.locator("[data-row]").first.click()
    page.locator(".drawer").wait_for()
    page.locator("#rows").evaluate("rows => rows.scrollIntoView()")


def runs(page: Page) -> None:
    """The list of runs."""
    may(page)
    reworded(page)
    page.goto("/runs")


def history(page: Page) -> None:
    """What was asked before, beside the form."""
    ask(page)
    page.get_by_role("button", name="History").click()
    page.locator("#history .asks li").first.wait_for()


def engine(page: Page) -> None:
    """Who answers."""
    page.goto("/engine")


PAGES: dict[str, Callable[[Page], None]] = {
    "ask": ask,
    "history": history,
    "evaluate": evaluate,
    "run": run,
    "gates": gates,
    "review": review,
    "compare": compare,
    "charts": charts,
    "rows": rows,
    "runs": runs,
    "engine": engine,
}


def main(names: Sequence[str], folder: Path = IMAGES) -> int:
    """Write every picture, or those that are named; the exit status says whether there was a Chromium."""
    chromium = shutil.which("chromium")
    if chromium is None:
        print("there is no chromium on this machine", file=sys.stderr)
        return 1
    folder.mkdir(parents=True, exist_ok=True)
    names = names or list(PAGES)
    with (
        tempfile.TemporaryDirectory() as data_dir,
        clef(engine="builtin", data_dir=data_dir) as address,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        for size, viewport in SIZES.items():
            for theme in THEMES:
                page = browser.new_page(
                    base_url=address, viewport=viewport, color_scheme=theme, reduced_motion="reduce"
                )
                for name in names:
                    page.set_viewport_size(viewport)
                    PAGES[name](page)
                    page.mouse.move(0, 0)
                    page.screenshot(path=folder / f"{name}-{theme}-{size}.png")
                page.context.close()
        browser.close()
    print(f"{len(names) * len(SIZES) * len(THEMES)} pictures in {folder}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
