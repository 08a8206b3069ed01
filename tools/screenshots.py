"""Turns the pages into pictures for README and docs: `python tools/screenshots.py` writes docs/images/.

It starts clef with the built-in model on a free port and drives the Chromium of the system; both themes, wide and on
a phone.
"""

import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import uvicorn
from playwright.sync_api import Browser, Page, sync_playwright

from clef.engines.builtin import BuiltinEngine
from clef.settings import Settings
from clef.web.app import create_app

IMAGES = Path(__file__).parent.parent / "docs" / "images"
SIZES = {"wide": (1440, 1000), "phone": (360, 780)}
NARROW = 900
"""Width below which answers stand under the form."""
WHOLE_FORM = 1420
"""Height at which the whole form is seen beside its answers."""
THEMES = ("light", "dark")
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
    page.locator("run-charts[data-state=drawn]").wait_for()
    page.evaluate("scrollTo(0, 0)")


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


def gates(page: Page) -> None:
    """Where a person may stop checking."""
    page.goto(measured(page, "Support, May", "Which team should handle this?") + "?gate=accuracy-0.8")
    page.locator("gate-slider").first.wait_for()
    page.locator("run-charts[data-state=drawn]").wait_for()


def review(page: Page) -> None:
    """One row at a time."""
    page.goto(measured(page, "Support, May", "Which team should handle this?") + "/review?show=wrong")
    page.locator(".review-row").wait_for()


def compare(page: Page) -> None:
    """Two wordings of one question."""
    first = measured(page, "Support, May", "Which team should handle this?").split("/")[-1]
    second = measured(page, "Support, shorter question", "Which team?").split("/")[-1]
    page.goto(f"/compare?run={first}&run={second}")


def charts(page: Page) -> None:
    """The charts of the sample."""
    run(page)
    page.evaluate("document.getElementById('charts').scrollIntoView()")


def rows(page: Page) -> None:
    """The wrong rows, the first one opened."""
    run(page)
    page.locator(".chip").filter(has_text="wrong").click()
    page.wait_for_url("**show=wrong*")
    page.locator("[data-row]").first.click()
    page.locator(".drawer").wait_for()
    page.locator("#rows").scroll_into_view_if_needed()
    page.evaluate("document.getElementById('rows').scrollIntoView()")


def runs(page: Page) -> None:
    """The list of runs."""
    page.goto("/runs")


def engine(page: Page) -> None:
    """Who answers."""
    page.goto("/engine")


PAGES: dict[str, Callable[[Page], None]] = {
    "ask": ask,
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


def main() -> int:
    """Write every picture, or those that are named; the exit status says whether there was a Chromium."""
    chromium = shutil.which("chromium")
    if chromium is None:
        print("there is no chromium on this machine", file=sys.stderr)
        return 1
    IMAGES.mkdir(parents=True, exist_ok=True)
    with served() as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        for size in SIZES:
            for theme in THEMES:
                picture(browser, address, size, theme, sys.argv[1:] or list(PAGES))
        browser.close()
    print(f"{len(sys.argv[1:] or PAGES) * len(SIZES) * len(THEMES)} pictures in {IMAGES}")
    return 0


def picture(browser: Browser, address: str, size: str, theme: str, names: Sequence[str]) -> None:
    """The pages of these names in one size and theme."""
    width, height = SIZES[size]
    context = browser.new_context(
        base_url=address,
        viewport={"width": width, "height": height},
        color_scheme="dark" if theme == "dark" else "light",
        reduced_motion="reduce",
    )
    page = context.new_page()
    for name in names:
        page.set_viewport_size({"width": width, "height": height})
        PAGES[name](page)
        page.mouse.move(0, 0)
        page.screenshot(path=IMAGES / f"{name}-{theme}-{size}.png")
    context.close()


@contextmanager
def served() -> Iterator[str]:
    """The address of a clef in a thread of this process."""
    engine = BuiltinEngine()
    engine.load()
    folder = tempfile.TemporaryDirectory()
    app = create_app(Settings(data_dir=Path(folder.name)), engine)
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while thread.is_alive() and not server.started:
        time.sleep(0.02)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(10)
        folder.cleanup()


if __name__ == "__main__":
    raise SystemExit(main())
