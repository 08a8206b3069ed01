"""Turns the pages into pictures for README and docs: `python tools/screenshots.py` writes docs/images/.

It starts clef with the built-in model on a free port and drives the Chromium of the system; both themes, wide and on
a phone.
"""

import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
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
    "charts": charts,
    "rows": rows,
    "runs": runs,
    "engine": engine,
}


def main() -> int:
    """Write every picture; the exit status says whether there was a Chromium."""
    chromium = shutil.which("chromium")
    if chromium is None:
        print("there is no chromium on this machine", file=sys.stderr)
        return 1
    IMAGES.mkdir(parents=True, exist_ok=True)
    with served() as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        for size in SIZES:
            for theme in THEMES:
                picture(browser, address, size, theme)
        browser.close()
    print(f"{len(PAGES) * len(SIZES) * len(THEMES)} pictures in {IMAGES}")
    return 0


def picture(browser: Browser, address: str, size: str, theme: str) -> None:
    """Every page in one size and theme."""
    width, height = SIZES[size]
    context = browser.new_context(
        base_url=address,
        viewport={"width": width, "height": height},
        color_scheme="dark" if theme == "dark" else "light",
        reduced_motion="reduce",
    )
    page = context.new_page()
    for name, go in PAGES.items():
        page.set_viewport_size({"width": width, "height": height})
        go(page)
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
