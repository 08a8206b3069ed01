"""The Engine page in every state, as the server renders it."""

import asyncio
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from clef.engines.doctor.finding import Finding
from clef.engines.kept import Kept
from clef.engines.models.catalogue import named
from clef.engines.models.downloads import Order
from clef.engines.models.fitting import Gpu, Memory
from clef.engines.status import Speed
from clef.web import engine_pages, engine_view
from tests.fakes.scripted_engine import READY, STATUSES, ScriptedEngine, child
from tests.http.conftest import Client


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty cache of models."""
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    return tmp_path / "hf" / "hub"


def words_of(html: str) -> str:
    """The text of a page."""
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


def actions_of(client: TestClient) -> list[str]:
    """The buttons that can be pressed."""
    html = client.get("/engine/status").text
    return re.findall(r'data-post="/api/engine/(\w+)" aria-disabled="false"', html)


@pytest.mark.parametrize(
    ("state", "said", "actions"),
    [
        ("built-in", ["Built-in model: ready", "You are trying it out.", "Use a real model"], []),
        ("upstream", ["Decision server: ready", "never stops it", "8 192", "Not started by clef"], []),
        ("looking", ["Looking for an engine", "Looking for a server at …"], ["stop"]),
        ("downloading", ["Downloading clef-flash:Q8_0", "4.1 GB of 9.7 GB", "2 min left at 50 MB a second"], ["stop"]),
        ("loading", ["llama.cpp: loading the model", "unknown: llama.cpp has not said"], ["stop", "restart"]),
        ("half loaded", ["50 % of its 9.8 GB are read, about 21 s left"], ["stop", "restart"]),
        ("ready", ["llama.cpp: ready", "on the GPU: 33 of 33 layers"], ["stop", "restart"]),
        ("partly", ["partly on the GPU: 20 of 33 layers", "Only 20 of 33"], ["stop", "restart"]),
        ("on the processor", ["none of it on a GPU: 0 of 33 layers"], ["stop", "restart"]),
        ("failed", ["llama.cpp: failed", "more memory than the GPU", "The last it wrote"], ["start", "restart"]),
        ("gave up", ["llama.cpp: given up", "it ended three times", "started again 2 times"], ["start", "restart"]),
        ("stopped", ["llama.cpp: stopped", "nothing is held in memory", "last time on the GPU"], ["start", "restart"]),
        ("off", ["The engine is off", "as you asked"], ["start"]),
    ],
)
def test_every_state_has_its_words_and_its_buttons(
    client_of: Client, state: str, said: list[str], actions: list[str]
) -> None:
    client = client_of(ScriptedEngine(STATUSES[state]))
    page = client.get("/engine")
    assert page.status_code == 200
    for words in said:
        assert words in words_of(page.text)
    assert actions_of(client) == actions
    assert 'style="' not in page.text
    assert ('data-placement="gpu"' in page.text) == (state == "ready")


def test_everything_that_is_known_of_a_llama_cpp_is_told(client_of: Client) -> None:
    text = words_of(client_of(ScriptedEngine(READY)).get("/engine/status").text)
    for words in (
        "Clef-Flash-Q8_0.gguf Q8_0 · there is no such file · clef decisions",
        "ROCm0: AMD Radeon RX 9070 XT · 15.5 GiB free before",
        "memory 10.3 GiB ROCm0 model 9.0 GiB",
        "context 4 096 · batch 4 096 · physical 4 096 · 1 slot",
        "11549 (a1b2c3d) /opt/llama/llama-server (on the PATH)",
        "process 4711 never started again",
        "HSA_OVERRIDE_GFX_VERSION=12.0.1",
        "41 ms a decision, in the middle",
        "The last 16 decisions, oldest first: 39 ms to 88 ms",
        "llama-server -m /models/Clef-Flash-Q8_0.gguf",
    ):
        assert words in text


def test_what_is_not_known_is_said_to_be_unknown(client_of: Client) -> None:
    bare = child(version=None, build=None, program="", pid=None, placement="unknown", layers=None, buffers_mib={})
    status = replace(READY, child=bare, speed=Speed(), facts=replace(READY.facts, max_tokens=None))
    text = words_of(client_of(ScriptedEngine(status)).get("/engine/status").text)
    assert "unknown: llama.cpp has not said" in text
    assert "version not known yet" in text
    assert "not known yet" in text
    assert "Nothing has been decided yet" in text
    assert "on the GPU" not in text


def test_a_processor_without_any_gpu_is_told_as_that(client_of: Client) -> None:
    status = replace(READY, child=child(placement="cpu", layers=None, layers_offloaded=None))
    assert "none of it on a GPU: llama.cpp found none" in client_of(ScriptedEngine(status)).get("/engine/status").text


def test_remedies_are_buttons_and_one_that_needs_a_download_says_so(client_of: Client) -> None:
    html = client_of(ScriptedEngine(STATUSES["failed"])).get("/engine/status").text
    assert 'data-post="/api/engine/restart" data-body="{&#34;context&#34;: 2048}"' in html
    assert 'data-post="/api/models/clef-flash:Q4_K_M/download"' in html
    assert "It is downloaded first" in html


TWO_GPUS = (Gpu("ROCm0", "AMD Radeon RX 9070 XT", 16 * 2**30), Gpu("ROCm1", "AMD <i>GPU", None))


def test_devices_are_offered_with_what_each_is(client_of: Client) -> None:
    html = client_of(ScriptedEngine(memory=Memory(32 * 2**30, TWO_GPUS))).get("/engine").text
    assert '<option value="auto" selected>auto: llama.cpp chooses</option>' in html
    assert '<option value="ROCm0">ROCm0: AMD Radeon RX 9070 XT, 16 GB</option>' in html
    assert '<option value="ROCm1">ROCm1: AMD &lt;i&gt;GPU, unknown memory</option>' in html
    assert '<option value="none">none: the processor</option>' in html


def test_where_there_is_no_gpu_only_the_context_can_be_chosen(client_of: Client) -> None:
    html = client_of(ScriptedEngine(memory=Memory(32 * 2**30))).get("/engine").text
    assert 'name="device"' not in html
    assert 'name="context"' in html


def test_a_server_that_is_not_ours_has_nothing_to_choose(client_of: Client) -> None:
    assert "Run it with" not in client_of(ScriptedEngine(STATUSES["upstream"])).get("/engine").text


def test_what_was_chosen_on_the_page_is_told_with_what_overrules_it(client_of: Client) -> None:
    kept = (Kept("CLEF_MODEL", "/models/a.gguf", False), Kept("CLEF_CONTEXT", "8192", True))
    engine = ScriptedEngine(replace(READY, kept=kept))
    client = client_of(engine)
    said = words_of(client.get("/engine/status").text)
    assert "CLEF_MODEL=/models/a.gguf" in said
    assert "CLEF_CONTEXT=8192 CLEF_CONTEXT is set otherwise where clef was started, and wins at every start." in said
    assert client.post("/api/engine/forget").json()["kept"] == []
    assert "chosen here" not in words_of(client.get("/engine/status").text)


def test_foreign_text_is_no_markup(client_of: Client) -> None:
    engine = ScriptedEngine(
        replace(STATUSES["failed"], child=child(warnings=("<i>warned</i>",))), ["<script>no</script>"]
    )
    html = client_of(engine).get("/engine").text
    assert "<script>no" not in html
    assert "<i>warned" not in html


def test_models_come_with_what_fits_and_one_recommended(client_of: Client) -> None:
    text = words_of(client_of(ScriptedEngine(READY)).get("/engine").text)
    assert "AMD Radeon RX 9070 XT with 16 GB · 32 GB of main memory" in text
    assert text.count("recommended here") == 1
    assert text.index("recommended here") < text.index("Julia-1")
    assert "CC-BY-NC-4.0: not for commercial use" in text
    assert "fits your GPU" in text
    assert "too large for this machine" in text


def test_on_a_small_machine_the_small_ones_come_first(client_of: Client) -> None:
    text = words_of(client_of(ScriptedEngine(READY, memory=Memory(4 * 2**30))).get("/engine/models").text)
    assert "no GPU that llama.cpp can use · 4 GB of main memory" in text
    assert text.index("Julia-1") < text.index("Kev-0.8B") < text.index("Clef-Flash")
    assert re.search(r"\d models too large for this machine", text)


def test_a_model_that_is_here_can_be_used_and_one_that_runs_is_in_use(client_of: Client, cache: Path) -> None:
    engine = ScriptedEngine(READY)
    wanted = named("julia-1:Q8_0")
    assert wanted.file is not None
    path = cache / "models--ggml-org--Julia-1-GGUF" / "snapshots" / ("0" * 40) / wanted.file.file
    path.parent.mkdir(parents=True)
    path.write_bytes(b"GGUF")
    client = client_of(engine)
    html = client.get("/engine/models").text
    assert 'data-body="{&#34;model&#34;: &#34;julia-1:Q8_0&#34;}"' in html
    assert 'data-remove="julia-1:Q8_0"' in html
    engine.now = replace(READY, child=child(model_path=str(path)))
    html = client.get("/engine/models").text
    assert "in use" in html
    assert "data-remove" not in html


def test_a_download_shows_bytes_and_time_left(client_of: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = ScriptedEngine(READY)
    real, state = engine.models.downloads, dict[str, Any](state="fetching", bytes_per_s=50e6)
    known, progress = real.known, real.progress
    monkeypatch.setattr(real, "known", lambda order: order.name == "clef-flash:Q8_0" or known(order))

    def scripted(order: Order) -> object:
        return replace(progress(order), done_bytes=4_000_000_000, **state)

    monkeypatch.setattr(real, "progress", scripted)
    client = client_of(engine)
    html = client.get("/engine/models").text
    assert 'data-busy="true"' in html
    assert "4.0 GB of 9.7 GB 2 min left at 50 MB a second" in words_of(html)
    assert "/api/models/clef-flash:Q8_0/pause" in html
    state.update(state="paused", bytes_per_s=None)
    text = words_of(client.get("/engine/models").text)
    assert "paused; what came is kept" in text
    assert "Go on" in text
    state.update(state="failed", message="the disk is full", hint="free 6 GB")
    text = words_of(client.get("/engine/models").text)
    assert "the disk is full: free 6 GB" in text
    assert "Try again" in text


def test_the_page_does_not_wait_for_a_slow_look_at_the_machine(
    client_of: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_pages, "PATIENCE_S", 0.0)
    engine = ScriptedEngine(READY)
    known = engine.models.memory

    async def slow() -> Memory:
        await asyncio.sleep(0.1)
        return await known()

    monkeypatch.setattr(engine.models, "memory", slow)
    client = client_of(engine)
    html = client.get("/engine").text
    assert "Looking at what this machine can run" in html
    assert 'data-busy="true"' in html
    assert "recommended here" in client.get("/engine/models").text


def test_the_doctors_findings_come_worst_first(client_of: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    async def examined(*_: object) -> list[Finding]:
        return [
            Finding("server", "Program", "ok", "build 11549"),
            Finding("folder", "Folder", "warn", "under /mnt/c", "move it into Linux"),
            Finding("devices", "Devices", "fail", "none", "install the driver"),
        ]

    monkeypatch.setattr("clef.engines.doctor.examine.examine_all", examined)
    html = client_of(ScriptedEngine(READY)).get("/engine/doctor").text
    assert re.findall(r'class="finding" data-level="(\w+)"', html) == ["fail", "warn", "ok"]
    assert 'data-summary="1 will not work, 1 look at this, 1 in order"' in html
    assert "install the driver" in html


@pytest.mark.parametrize(
    ("count", "said"), [(900, "1 kB"), (2_400_000, "2 MB"), (168_166_496, "168 MB"), (9_657_260_192, "9.7 GB")]
)
def test_sizes_are_said_as_model_pages_say_them(count: int, said: str) -> None:
    assert engine_view.size(count) == said
