"""What a person waits for, in the Chromium of the system: Ask, a large run, a filter, and a run that streams."""

import json
import shutil
import tempfile
import time
import urllib.request
from contextlib import closing
from pathlib import Path
from statistics import median

from playwright.sync_api import Browser, Page, sync_playwright

from bench.runs import table
from bench.servers import clef

ROWS = 100_000
TIMES = 5
ARGUMENTS = ["--no-sandbox", "--disable-gpu"]
LONG_TASKS = """
window.longest = 0;
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) window.longest = Math.max(window.longest, entry.duration);
}).observe({ type: "longtask", buffered: true });
"""
SHOWN = """
const look = () => {
  if (!document.querySelector(%s)) return requestAnimationFrame(look);
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = () => { window.shown = performance.now(); };
  port2.postMessage("after this frame");
};
requestAnimationFrame(look);
"""
"""Notes when the first frame that has an element was painted. The page looks for itself: a question of the driver would
wait behind whatever the page does later, which a person does not wait for."""


def ended(address: str, rows: int) -> str:
    """The id of a run of so many rows that has come to its end."""
    request = urllib.request.Request(f"{address}/api/runs?cache=false", data=table(rows), method="POST")
    with urllib.request.urlopen(request) as response:
        run = str(json.load(response)["id"])
    with urllib.request.urlopen(f"{address}/api/runs/{run}/events") as events:
        events.read()
    return run


def shown(browser: Browser, address: str, selector: str) -> float:
    """Milliseconds from asking for a page in a fresh profile to the first frame with its selector being painted."""
    with closing(browser.new_context()) as context:
        page = context.new_page()
        page.add_init_script(SHOWN % json.dumps(selector))
        page.goto(address, wait_until="commit")
        while (found := page.evaluate("() => window.shown ?? null")) is None:
            page.wait_for_timeout(100)
        return float(found)


def settle(browser: Browser, address: str) -> None:
    """Wait until what a page shows later (numbers, gates, charts) is made; it is made once a run."""
    with closing(browser.new_context()) as context:
        page = context.new_page()
        page.goto(address)
        page.wait_for_selector("gate-slider", timeout=60_000)
        page.wait_for_load_state("networkidle", timeout=60_000)


def filtered(page: Page, name: str) -> float:
    """Milliseconds from the press of a filter to its rows being painted."""
    script = """async (name) => {
      const chip = [...document.querySelectorAll(".chip")].find((one) => one.textContent.trim().startsWith(name));
      const now = document.getElementById("rows-now");
      const started = performance.now();
      chip.click();
      while (document.getElementById("rows-now") === now) await new Promise((next) => requestAnimationFrame(next));
      await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
      return performance.now() - started;
    }"""
    return float(page.evaluate(script, name))


def streaming(browser: Browser, address: str) -> float:
    """The longest task, in milliseconds, of the page of a run while its rows come in."""
    request = urllib.request.Request(f"{address}/api/runs?cache=false", data=table(20_000), method="POST")
    with urllib.request.urlopen(request) as response:
        run = json.load(response)["id"]
    with closing(browser.new_context()) as context:
        page = context.new_page()
        page.add_init_script(LONG_TASKS)
        page.goto(f"{address}/runs/{run}")
        page.wait_for_selector("run-progress")
        page.evaluate("window.longest = 0")
        deadline = time.monotonic() + 60
        while page.locator("run-progress").count() and time.monotonic() < deadline:
            page.wait_for_timeout(200)
            longest = float(page.evaluate("window.longest"))
        return longest


def measure() -> list[tuple[str, str, str]]:
    """Rows of the table: what, measured, budget."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        return [("the page in Chromium", "there is no Chromium here", "")]
    found = []
    with (
        tempfile.TemporaryDirectory() as folder,
        clef(engine="builtin", data_dir=str(Path(folder))) as address,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        ask = median(shown(browser, address, "ask-form question-card") for _ in range(TIMES))
        found.append(("Ask, interactive in Chromium", f"{ask:.0f} ms", "300 ms"))
        longest = streaming(browser, address)
        told = f"{longest:.0f} ms" if longest else "none over 50 ms"  # shorter ones are not reported
        found.append(("  longest task while a run streams", told, "100 ms"))
        run = ended(address, ROWS)
        settle(browser, f"{address}/runs/{run}")
        first = median(shown(browser, f"{address}/runs/{run}", "#rows tbody tr") for _ in range(TIMES))
        found.append((f"run of {ROWS:,} rows, first rows", f"{first:.0f} ms", "500 ms"))
        with closing(browser.new_context()) as context:
            page = context.new_page()
            page.goto(f"{address}/runs/{run}")
            page.wait_for_load_state("networkidle")
            slow = median(filtered(page, name) for name in ("wrong", "right", "all", "wrong", "all"))
        found.append(("  a filter, to its paint", f"{slow:.0f} ms", "250 ms"))
        browser.close()
    return found
