"""The Engine page as a person uses it: with a scripted engine in every state, and once with the real llama.cpp."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from clef.engines.doctor.finding import Finding, Level
from clef.engines.opening import ChosenEngine
from clef.engines.status import Child
from clef.errors import InputError
from clef.settings import Settings
from tests.browser.conftest import NewPage, served
from tests.browser.test_everywhere import barriers
from tests.fakes.scripted_engine import LOG, READY, STATUSES, ScriptedEngine, child
from tests.tiny.models import write_openjev

pytestmark = pytest.mark.browser

ASKED = {"state": "sky", "questions": [{"type": "noul", "question": "Blue?"}]}


@pytest.fixture(scope="module")
def script() -> ScriptedEngine:
    """The engine behind `page_of`."""
    return ScriptedEngine()


@pytest.fixture(scope="module")
def scripted_address(script: ScriptedEngine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HOME", str(tmp_path_factory.mktemp("hf")))
        script.models.downloads.cache = tmp_path_factory.mktemp("hub")
        with served(script, tmp_path_factory.mktemp("data")) as found:
            yield f"{found}/engine"


@pytest.fixture
def engine_address(scripted_address: str, script: ScriptedEngine) -> str:
    """Address of the page; the engine is ready at first."""
    script.now, script.done, script.refusal, script.lines = READY, [], None, list(LOG)
    return scripted_address


def press(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()


def test_the_built_in_model_says_what_it_is_and_what_else_there_is(address: str, open_page: NewPage) -> None:
    page = open_page(f"{address}/engine")
    expect(page.locator("h1")).to_have_text("Built-in model: ready")
    expect(page.get_by_role("button", name="Stop")).to_have_count(0)
    expect(page.locator(".type.recommended")).to_have_count(1)
    expect(page.get_by_text("Use a real model")).to_be_visible()
    expect(page.get_by_text("Nothing yet.")).to_be_visible()


def test_it_is_stopped_started_and_restarted_and_the_focus_stays(
    engine_address: str, script: ScriptedEngine, open_page: NewPage
) -> None:
    page = open_page(engine_address)
    expect(page.locator("h1")).to_have_text("llama.cpp: ready")
    expect(page.get_by_role("button", name="Start", exact=True)).to_have_attribute("aria-disabled", "true")
    press(page, "Stop")
    expect(page.locator("h1")).to_have_text("llama.cpp: stopped")
    expect(page.get_by_role("button", name="Stop", exact=True)).to_be_focused()
    expect(page.locator("[data-part=spoken]")).to_have_text("llama.cpp: stopped")
    page.get_by_role("button", name="Stop", exact=True).press("Enter")  # it can do nothing now
    press(page, "Start")
    expect(page.locator("h1")).to_have_text("llama.cpp: ready")
    press(page, "Restart")
    expect(page.get_by_role("button", name="Restart", exact=True)).to_be_focused()
    expect(page.locator("[data-pending]")).to_have_count(0)
    assert script.done == ["stop", "start", "restart {}"]


def test_a_phase_that_changes_by_itself_shows_and_what_was_opened_stays_open(
    engine_address: str, script: ScriptedEngine, open_page: NewPage
) -> None:
    page = open_page(engine_address)
    page.get_by_text("Command line").click()
    script.now, script.lines = STATUSES["failed"], ["it fell"]
    expect(page.locator("h1")).to_have_text("llama.cpp: failed")
    expect(page.locator("#engine-failure")).to_contain_text("it needs more memory than the GPU has")
    expect(page.locator("#engine-failure pre")).to_have_text("it fell")
    expect(page.locator("[data-part=lines]")).to_have_text("it fell")
    expect(page.locator("#engine-command")).to_have_attribute("open", "")
    page.get_by_role("button", name="Restart with 2,048 tokens").click()
    expect(page.locator("h1")).to_have_text("llama.cpp: ready")
    expect(page.locator("h1")).to_be_focused()
    assert script.done == ["restart {'context': 2048}"]


def test_a_device_and_a_context_are_chosen_and_survive_a_look_at_the_state(
    script: ScriptedEngine, engine_address: str, open_page: NewPage
) -> None:
    page = open_page(engine_address)
    button = page.get_by_role("button", name="Restart with these")
    expect(button).to_have_attribute("aria-disabled", "true")
    page.get_by_label("device").select_option("ROCm0: AMD Radeon RX 9070 XT, 16 GB")
    page.get_by_label("tokens a request may have").select_option("8192")
    with page.expect_response("**/engine/status"):
        expect(button).to_have_attribute("aria-disabled", "false")
    expect(page.get_by_label("device")).to_have_value("ROCm0")
    button.click()
    expect(page.get_by_role("alert").filter(has_text="▲")).to_have_count(0)
    page.wait_for_function("!document.querySelector('engine-setup button').dataset.pending")
    assert script.done == ["restart {'context': 8192, 'device': 'ROCm0'}"]


def test_what_cannot_be_done_is_explained_beside_the_button(
    engine_address: str, script: ScriptedEngine, open_page: NewPage
) -> None:
    script.refusal = InputError("a run is being written", hint="wait for it")
    page = open_page(engine_address)
    press(page, "Stop")
    trouble = page.locator("#engine-acts-trouble")
    expect(trouble).to_have_text("a run is being written: wait for it")
    with page.expect_response("**/engine/status"):
        pass
    expect(trouble).to_have_text("a run is being written: wait for it")
    script.refusal = None
    press(page, "Stop")
    expect(trouble).to_have_text("")


def test_a_clef_that_does_not_answer_is_said_to_and_comes_back(engine_address: str, open_page: NewPage) -> None:
    page = open_page(engine_address, intercepted=True)
    page.route("**/engine/status", lambda route: route.abort())
    expect(page.get_by_text("clef does not answer. What is below may be old")).to_be_visible()
    page.unroute("**/engine/status")
    expect(page.get_by_text("clef does not answer. What is below may be old")).to_be_hidden()


def test_the_log_is_followed_where_that_is_asked_for(
    engine_address: str, script: ScriptedEngine, open_page: NewPage
) -> None:
    page = open_page(engine_address)
    lines = page.locator("[data-part=lines]")
    expect(lines).to_contain_text("srv: listening <b>here</b>")
    page.get_by_role("switch", name="Follow").check()
    script.lines += [f"line {number}" for number in range(80)]
    expect(lines).to_contain_text("line 79")
    assert lines.evaluate("box => box.scrollHeight - box.scrollTop - box.clientHeight") < 40
    page.get_by_role("switch", name="Follow").uncheck()
    script.lines.append("unheard")
    page.wait_for_timeout(400)
    expect(lines).not_to_contain_text("unheard")


def test_the_last_decisions_are_drawn_and_told(engine_address: str, open_page: NewPage) -> None:
    page = open_page(engine_address)
    line = page.get_by_role("img", name="The last 16 decisions, oldest first: 39 ms to 88 ms")
    expect(line.locator("polyline")).to_have_attribute("points", re.compile(r"^(\d+\.\d,\d+\.\d ?){16}$"))


def test_a_model_is_asked_for_used_and_removed_only_after_a_question(engine_address: str, open_page: NewPage) -> None:
    page = open_page(engine_address, intercepted=True)
    page.locator("#models-heading").wait_for()
    asked: list[str] = []

    def answer(route: object) -> None:
        request = route.request  # type: ignore[attr-defined]
        asked.append(f"{request.url.rsplit('/api/', 1)[1]} {request.post_data or ''}".strip())
        error = {"error": {"message": "no room", "hint": "free 10 GB"}}
        route.fulfill(status=400, json=error)  # type: ignore[attr-defined]

    page.route("**/api/models/**", answer)
    page.get_by_role("button", name="Get clef-flash:Q8_0").click()
    expect(page.locator("#model-clef-flash-Q8_0-trouble")).to_have_text("no room: free 10 GB")
    assert asked == ["models/clef-flash:Q8_0/download"]


def test_a_model_that_is_here_is_used_or_removed(
    engine_address: str, script: ScriptedEngine, open_page: NewPage
) -> None:
    place = script.models.cache / "models--ggml-org--Julia-1-GGUF" / "snapshots" / ("0" * 40) / "Julia-1-Q8_0.gguf"
    place.parent.mkdir(parents=True)
    place.write_bytes(b"GGUF")
    page = open_page(engine_address)
    page.get_by_role("button", name="Use it julia-1:Q8_0").click()
    expect(page.locator("[data-pending]")).to_have_count(0)
    assert script.done == ["restart {'model': 'julia-1:Q8_0'}"]
    page.get_by_role("button", name="Remove julia-1:Q8_0").click()
    dialog = page.get_by_role("dialog", name="Remove julia-1:Q8_0?")
    dialog.get_by_role("button", name="Keep it").click()
    assert place.exists()
    page.get_by_role("button", name="Remove julia-1:Q8_0").click()
    dialog.get_by_role("button", name="Remove", exact=True).click()
    expect(page.get_by_role("button", name="Get julia-1:Q8_0")).to_be_visible()
    assert not place.exists()


def test_the_doctor_examines_when_asked(
    engine_address: str, open_page: NewPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def examined(*_: object) -> list[Finding]:
        return [
            Finding("server", "Program", "ok", "build 11549"),
            Finding("devices", "Devices", "fail", "none", "install the driver"),
        ]

    monkeypatch.setattr("clef.engines.doctor.examine.examine_all", examined)
    page = open_page(engine_address)
    press(page, "Examine this machine")
    expect(page.locator(".doctor-said")).to_have_text("1 will not work, 1 in order")
    expect(page.locator(".finding").first).to_contain_text("install the driver")
    expect(page.get_by_role("button", name="Examine again")).to_be_focused()


@pytest.mark.parametrize("state", ["downloading", "partly", "failed"])
def test_no_barrier_in_any_state(
    engine_address: str,
    script: ScriptedEngine,
    open_page: NewPage,
    monkeypatch: pytest.MonkeyPatch,
    state: str,
) -> None:
    async def examined(*_: object) -> list[Finding]:
        levels: tuple[Level, ...] = ("ok", "warn", "fail", "unknown")
        return [Finding(level, level.title(), level, "/a/very/long/" + "path/" * 30, "do this") for level in levels]

    monkeypatch.setattr("clef.engines.doctor.examine.examine_all", examined)
    script.now = STATUSES[state]
    if script.now.child is not None:
        script.now = replace(script.now, child=child_with_long_names(script))
    page = open_page(engine_address, watched=False)  # axe itself adds styles that the policy refuses
    press(page, "Examine this machine")
    expect(page.locator(".finding")).to_have_count(4)
    assert barriers(page) == ""
    page.set_viewport_size({"width": 360, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.emulate_media(color_scheme="dark")
    assert barriers(page) == ""


def child_with_long_names(script: ScriptedEngine) -> Child:
    assert script.now.child is not None
    return replace(script.now.child, program="/opt/" + "long" * 30, model_path="/models/" + "Name" * 30 + "-Q8_0.gguf")


@pytest.mark.engine
def test_the_real_llama_cpp_is_stopped_and_started_from_the_page(
    open_page: NewPage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setattr("clef.engines.llama.command.DEFAULT_PLACE", "/nowhere")
    model = write_openjev(tmp_path / "tiny-F16.gguf")
    settings = Settings(model=str(model), context=1024, upstream="http://127.0.0.1:9", llama_args=("-t", "1"))
    with served(ChosenEngine(settings), tmp_path / "data") as found:
        page = open_page(f"{found}/engine")
        expect(page.locator("h1")).to_have_text("llama.cpp: ready", timeout=30_000)
        expect(page.locator(".engine-facts")).to_contain_text("tiny-F16.gguf")
        assert page.request.post(f"{found}/api/predict", data=ASKED).ok
        expect(page.locator("engine-speed")).to_be_visible()
        press(page, "Stop")
        expect(page.locator("h1")).to_have_text("llama.cpp: stopped")
        expect(page.locator("[data-part=lines]")).to_contain_text("tiny-F16.gguf")
        press(page, "Start")
        expect(page.locator("h1")).to_have_text("llama.cpp: ready", timeout=30_000)
        expect(page.locator(".engine-facts")).to_contain_text("started again once")


@pytest.mark.parametrize("status", ["partly", "on the processor"])
def test_what_is_not_all_on_the_gpu_is_amber_on_every_page(
    status: str, engine_address: str, script: ScriptedEngine, open_page: NewPage
) -> None:
    script.now = STATUSES[status]
    page = open_page(engine_address)
    amber = page.locator("h1 .dot").evaluate("dot => getComputedStyle(dot).backgroundColor")
    for path in ("engine", "runs", "evaluate", ""):
        page.goto(f"{engine_address.removesuffix('engine')}{path}")
        dot = page.locator("#standing .dot")
        assert dot.evaluate("dot => getComputedStyle(dot).backgroundColor") == amber
    assert amber not in ("rgba(0, 0, 0, 0)", page.locator("#standing").evaluate("at => getComputedStyle(at).color"))


def test_a_warning_is_said_once(engine_address: str, script: ScriptedEngine, open_page: NewPage) -> None:
    warning = "It runs on the processor: this llama.cpp found no GPU."
    facts = replace(STATUSES["on the processor"].facts, message=warning)
    script.now = replace(STATUSES["on the processor"], facts=facts, child=child(placement="cpu", warnings=(warning,)))
    page = open_page(engine_address)
    expect(page.get_by_text(warning, exact=True)).to_have_count(1)
