"""A real clef on a free port, and a real Chromium that watches what it is told and whom it calls."""

import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import uvicorn
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from clef.engines.builtin import BuiltinEngine
from clef.engines.engine import OwnedEngine
from clef.settings import Settings
from clef.web.app import create_app
from tests.browser.staged import StagedEngine
from tests.needing import need

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
TIMEOUT_MS = 20_000
START_S = 20
expect.set_options(timeout=TIMEOUT_MS)
NewPage = Callable[..., Page]


@contextmanager
def served(engine: OwnedEngine, data_dir: Path) -> Iterator[str]:
    """The address of a clef with this engine and an empty store, in a thread of its own."""
    config = uvicorn.Config(
        create_app(Settings(data_dir=data_dir), engine),
        port=0,
        log_level="warning",
        lifespan="on",
        timeout_graceful_shutdown=2,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    started = threading.Event()
    for _ in range(START_S * 50):
        if server.started or not thread.is_alive():
            break
        started.wait(0.02)
    assert server.started, "clef did not start; its log is above"
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(START_S)


@pytest.fixture(scope="session")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a clef with the built-in model."""
    engine = BuiltinEngine()
    engine.load()
    with served(engine, tmp_path_factory.mktemp("data")) as found:
        yield found


@pytest.fixture(scope="session")
def stage() -> StagedEngine:
    """The engine behind `staged_address`."""
    return StagedEngine()


@pytest.fixture(scope="session")
def _staged_address(stage: StagedEngine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served(stage, tmp_path_factory.mktemp("data")) as found:
        yield found


@pytest.fixture
def staged_address(_staged_address: str, stage: StagedEngine) -> Iterator[str]:
    """Address of a clef whose engine does what the test says; it is ready and quick at first."""
    stage.phase, stage.pause_s, stage.asked = "ready", 0.0, 0
    yield _staged_address
    stage.phase, stage.pause_s = "ready", 0.0


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One Chromium for all tests."""
    need(None if CHROMIUM else "there is no Chromium on this machine")
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield found
        found.close()


class Watch:
    """What a page did that it must never do."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.said: list[str] = []

    def attach(self, page: Page) -> None:
        """Listen to a page."""
        page.on("pageerror", lambda error: self.said.append(f"error: {error}"))
        page.on("console", lambda message: self.console(message.text))
        page.on("request", lambda request: self.request(request.url))

    def console(self, text: str) -> None:
        """Keep what is about the content policy."""
        if "Content Security Policy" in text:
            self.said.append(text)

    def request(self, url: str) -> None:
        """Keep what goes to another host."""
        if not url.startswith((self.address, "data:", "blob:")):
            self.said.append(f"request to {url}")


def come_back(page: Page) -> None:
    """What a person does who returns to the tab: the engine's standing is asked for at once."""
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")


@pytest.fixture
def open_page(browser: Browser, tmp_path: Path) -> Iterator[NewPage]:
    """Opens a page of a clef in a fresh profile; at the end the page must not have broken any promise."""
    contexts: list[BrowserContext] = []
    watches: list[Watch] = []

    def new(
        url: str,
        *,
        width: int = 1440,
        height: int = 900,
        theme: str = "light",
        watched: bool = True,
        intercepted: bool = False,
    ) -> Page:
        context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if theme == "dark" else "light",
            reduced_motion="reduce",
            accept_downloads=True,
        )
        context.set_default_timeout(TIMEOUT_MS)
        contexts.append(context)
        page = context.new_page()
        if watched:
            watch = Watch("/".join(url.split("/")[:3]))
            watch.attach(page)
            watches.append(watch)
        if intercepted:  # switched on beside a page that is shown, the first request after it may slip through
            page.route("**/nothing-asks-for-this", lambda route: route.continue_())
        page.goto(url)
        return page

    yield new
    for context in contexts:
        context.close()
    assert [line for watch in watches for line in watch.said] == []
