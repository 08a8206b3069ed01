"""What a person does to the engine while it runs, and what becomes of the work that is in line."""

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from clef.decisions.examples import Example, Request
from clef.decisions.questions import Choice
from clef.engines.models.cache import Cached
from clef.engines.models.catalogue import named
from clef.engines.opening import ChosenEngine
from clef.engines.status import Change
from clef.errors import Crashed, InputError, SettingsError, Unavailable
from clef.runs.execute import outcomes
from clef.settings import Settings
from tests.fakes.hub import Hub, hub_of
from tests.process.waiting import is_alive, pids_in, until

pytestmark = pytest.mark.anyio
Open = Callable[..., ChosenEngine]

QUESTION = Choice("Which?", ["blue", "red"])
ASKED = Request("the sky", (QUESTION,))


@pytest.fixture(autouse=True)
def empty_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A cache of models with nothing in it, and no server of the machine's own."""
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    for name in ("HF_HUB_CACHE", "HF_TOKEN", "HF_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "hf" / "hub"


@pytest.fixture
async def opened(fake_server: Path, model: Path, starts: Path) -> AsyncIterator[Open]:
    """Makes engines as `clef serve` does, on the fake; closes them."""
    made: list[ChosenEngine] = []

    def make(*faults: str, **settings: object) -> ChosenEngine:
        arguments = ("--starts", str(starts), *faults)
        usual: dict[str, object] = {"model": str(model), "llama_server": fake_server, "llama_args": arguments}
        free = {"upstream": "http://127.0.0.1:9", "ready_timeout": 20}
        engine = ChosenEngine(Settings(**(usual | free | settings)))  # type: ignore[arg-type] # pydantic checks them
        made.append(engine)
        engine.start()
        return engine

    yield make
    for engine in made:
        if engine._llama is not None:
            engine._llama.hurry()
        await engine.close()


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, model: Path) -> Iterator[Hub]:
    """A hub that has Julia-1."""
    with hub_of("julia-1:Q8_0", model.read_bytes(), monkeypatch) as running:
        yield running


@pytest.fixture
def taken_port() -> Iterator[int]:
    """A port on which somebody listens."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        yield int(taken.getsockname()[1])


async def ready(engine: ChosenEngine) -> None:
    """Wait until decisions are answered."""
    end = asyncio.get_running_loop().time() + 20
    while not (await engine.facts()).reachable:
        assert asyncio.get_running_loop().time() < end, await engine.facts()
        await asyncio.sleep(0.02)


def put_in_cache(cache: Path, name: str, content: bytes) -> Path:
    wanted = named(name)
    assert wanted.file is not None
    path = Cached(wanted.model.repo, cache).folder / "snapshots" / "c1" / wanted.file.file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


class TestStopAndStart:
    async def test_stop_comes_back_at_once_and_start_brings_it_back(self, opened: Open, starts: Path) -> None:
        engine = opened("--ignore-term")
        await ready(engine)
        began = asyncio.get_running_loop().time()
        await engine.turn_off()
        assert asyncio.get_running_loop().time() - began < 0.5
        assert is_alive(pids_in(starts)[0])
        status = await engine.status()
        assert status.phase in ("off", "ready")
        os.kill(pids_in(starts)[0], signal.SIGKILL)
        await until(lambda: engine._llama is not None and engine._llama.state == "stopped")
        status = await engine.status()
        assert (status.phase, status.state, status.actions) == ("off", "stopped", ("start", "restart"))
        await engine.turn_on()
        await ready(engine)
        assert (await engine.status()).actions == ("stop", "restart")
        assert len(pids_in(starts)) == 2

    async def test_a_start_of_what_runs_does_nothing(self, opened: Open, starts: Path) -> None:
        engine = opened()
        await ready(engine)
        await engine.turn_on()
        assert len(pids_in(starts)) == 1

    async def test_status_tells_everything_and_no_secret(self, opened: Open, model: Path, starts: Path) -> None:
        said = "load_tensors: offloaded 20/33 layers to GPU"
        engine = opened("--say", said, "--api-key", "my own secret")
        await ready(engine)
        status = (await engine.status()).to_dict()
        llama = status["llama"]
        assert (status["engine"], status["phase"], status["state"]) == ("llama", "ready", "ready")
        assert (llama["model_path"], llama["pid"]) == (str(model), pids_in(starts)[0])
        assert (llama["layers_offloaded"], llama["layers"], llama["placement"]) == (20, 33, "partly")
        assert llama["restarts"] == 0
        assert "20 of 33 layers" in llama["warnings"][0]
        assert "my own secret" not in repr(status)

    async def test_what_failed_for_a_missing_model_starts_once_it_is_there(
        self, opened: Open, model: Path, tmp_path: Path
    ) -> None:
        later = tmp_path / "later.gguf"
        engine = opened(model=str(later))
        with pytest.raises(SettingsError, match="no model file"):
            await engine.chosen()
        status = await engine.status()
        assert (status.phase, status.actions) == ("failed", ("start",))
        await engine.turn_on()
        assert (await engine.facts()).phase == "failed"
        later.write_bytes(model.read_bytes())
        await engine.turn_on()
        await ready(engine)

    async def test_what_failed_for_a_missing_model_runs_with_another_one(self, opened: Open, model: Path) -> None:
        engine = opened(model="/nowhere/x.gguf")
        with pytest.raises(SettingsError, match="no model file"):
            await engine.chosen()
        await engine.restart(Change(model=str(model)))
        await ready(engine)


class TestSwitching:
    async def test_other_settings_take_effect_and_work_in_line_is_done(
        self, opened: Open, starts: Path, model: Path, tmp_path: Path
    ) -> None:
        engine = opened()
        await ready(engine)
        other = tmp_path / "other.gguf"
        other.write_bytes(model.read_bytes())
        examples = [Example(f"state {n}", QUESTION, 0, row=n) for n in range(300)]
        models: list[str] = []
        async for _, outcome in outcomes(examples, engine, concurrency=4):
            assert outcome.failure is None
            models.append(outcome.model)
            if len(models) == 20:
                await engine.restart(Change(model=str(other), context=8192))
        assert len(models) == 300
        assert set(models) == {"clef flash.gguf", "other.gguf"}
        facts = await engine.facts()
        assert (facts.model, facts.max_tokens) == ("other.gguf", 8192)
        assert [is_alive(pid) for pid in pids_in(starts)] == [False, True]

    async def test_a_change_that_cannot_work_stops_nothing(self, opened: Open, starts: Path) -> None:
        engine = opened()
        await ready(engine)
        with pytest.raises(SettingsError, match="no model file"):
            await engine.restart(Change(model="/nowhere/x.gguf"))
        with pytest.raises(SettingsError, match="needs a projector"):
            await engine.restart(Change(images=True))
        with pytest.raises(InputError, match=r"clef-flash:Q8_0 is not on this machine"):
            await engine.restart(Change(model="clef-flash:Q8_0"))
        assert (await engine.decide(ASKED)).answers
        assert len(pids_in(starts)) == 1

    async def test_from_the_built_in_model_to_one_of_the_machine(self, opened: Open, model: Path) -> None:
        engine = opened(model=None)
        assert (await engine.facts()).kind == "builtin"
        with pytest.raises(InputError, match="part of clef"):
            await engine.restart(Change(context=8192))
        await engine.restart(Change(model=str(model)))
        await ready(engine)
        facts = await engine.facts()
        assert (facts.kind, facts.model, facts.message) == ("llama", "clef flash.gguf", None)

    async def test_what_may_help_against_too_little_memory_is_offered_and_helps(
        self, opened: Open, starts: Path
    ) -> None:
        said = "ggml_gallocr_reserve_n: failed to allocate ROCm0 buffer of size 15032385536"
        engine = opened("--exit-above", "2048", said, context=4096)
        await until(lambda: engine._llama is not None and engine._llama.state == "failed")
        status = await engine.status()
        assert [remedy.label for remedy in status.remedies] == ["Restart with 2,048 tokens"]
        await engine.restart(status.remedies[0].change)
        await ready(engine)
        assert (await engine.status()).remedies == ()

    async def test_a_variable_that_breaks_the_card_is_shown_and_taken_away_with_one_click(
        self, opened: Open, starts: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("HSA_OVERRIDE_GFX_VERSION", "10.3.0")
        monkeypatch.setenv("HSA_ENABLE_DXG_DETECTION", "1")
        engine = opened("--exit-with-variable", "HSA_OVERRIDE_GFX_VERSION", "ROCm error: invalid device function")
        await until(lambda: engine._llama is not None and engine._llama.state == "failed")
        status = await engine.status()
        assert status.child is not None
        assert status.child.gpu_variables["HSA_OVERRIDE_GFX_VERSION"] == "10.3.0"
        assert "not built for this GPU" in str(status.facts.message)
        assert [remedy.label for remedy in status.remedies] == ["Restart without HSA_OVERRIDE_GFX_VERSION"]
        await engine.restart(status.remedies[0].change)
        await ready(engine)
        child = (await engine.status()).child
        assert child is not None
        assert child.gpu_variables == {"HSA_ENABLE_DXG_DETECTION": "1"}
        assert "HSA_OVERRIDE" not in Path(f"/proc/{pids_in(starts)[-1]}/environ").read_text()


class TestWhichModel:
    async def test_one_that_was_downloaded_is_used_without_being_named(
        self, opened: Open, empty_cache: Path, model: Path
    ) -> None:
        put_in_cache(empty_cache, "kev-4b:Q4_K_M", model.read_bytes())
        put_in_cache(empty_cache, "julia-1:Q8_0", model.read_bytes())
        engine = opened(model=None)
        await ready(engine)
        facts = await engine.facts()
        assert (facts.kind, facts.model) == ("llama", "Julia-1-Q8_0.gguf")
        assert "found among your downloads" in str(facts.message)

    async def test_nothing_is_started_where_that_is_forbidden(
        self, opened: Open, empty_cache: Path, model: Path, starts: Path
    ) -> None:
        put_in_cache(empty_cache, "julia-1:Q8_0", model.read_bytes())
        for settings in ({"model": None}, {}):
            engine = opened(manage_server=False, **settings)
            await engine.chosen()
            assert (await engine.facts()).kind == "builtin"
        named_one = opened(manage_server=False, engine="llama")
        with pytest.raises(SettingsError, match="CLEF_MANAGE_SERVER=0"):
            await named_one.chosen()
        assert not pids_in(starts)

    async def test_a_name_of_the_catalogue_is_downloaded_and_the_page_is_told_how_far(
        self, opened: Open, hub: Hub
    ) -> None:
        hub.bytes_per_s = 300_000
        engine = opened(model="julia-1")
        await until(lambda: engine._fetching)
        status = await engine.status()
        assert (status.phase, status.state) == ("starting", "downloading")
        assert status.download is not None
        assert "Downloading julia-1:Q8_0" in str(status.facts.message)
        with pytest.raises(Unavailable, match="Downloading") as caught:
            await engine.decide(ASKED)
        assert caught.value.phase == "starting"
        hub.bytes_per_s = None
        await ready(engine)
        assert (await engine.facts()).model == "Julia-1-Q8_0.gguf"

    async def test_a_download_can_be_stopped_and_gone_on_with(self, opened: Open, hub: Hub, starts: Path) -> None:
        hub.bytes_per_s = 100_000
        engine = opened(model="julia-1")
        await until(lambda: engine._fetching and engine.models.downloads.progress(engine._fetching).done_bytes)
        assert (await engine.status()).actions == ("stop",)
        await engine.turn_off()
        status = await engine.status()
        assert (status.phase, status.actions) == ("off", ("start",))
        with pytest.raises(Unavailable):
            await engine.decide(ASKED)
        assert engine.models.downloads.active() == []
        hub.bytes_per_s = None
        await engine.turn_on()
        await ready(engine)
        assert len(pids_in(starts)) == 1

    async def test_a_download_that_fails_says_why_and_starts_nothing(
        self, opened: Open, hub: Hub, starts: Path
    ) -> None:
        hub.gated = True
        engine = opened(model="julia-1")
        with pytest.raises(SettingsError, match="accepted its terms"):
            await engine.chosen()
        status = await engine.status()
        assert (status.phase, status.actions) == ("failed", ("start",))
        assert not pids_in(starts)

    async def test_a_port_that_is_taken_is_told_before_a_download(
        self, opened: Open, hub: Hub, taken_port: int
    ) -> None:
        engine = opened("--port", str(taken_port), model="julia-1")
        with pytest.raises(SettingsError, match="cannot be used"):
            await engine.chosen()
        assert hub.requests == []


class TestExitWithEngine:
    async def test_who_waits_for_the_loss_hears_of_it_with_the_reason_and_not_of_a_stop(self, opened: Open) -> None:
        engine = opened("--crash-at", "3", exit_with_engine=True)
        lost = asyncio.create_task(engine.until_lost())
        await ready(engine)
        await engine.turn_off()
        await until(lambda: engine._llama is not None and engine._llama.state == "stopped")
        assert not lost.done()
        await engine.turn_on()
        await ready(engine)
        for _ in range(3):
            with contextlib.suppress(Crashed, Unavailable):
                await engine.decide(ASKED)
        facts = await asyncio.wait_for(lost, 5)
        assert facts.phase == "failed"
        assert "SIGSEGV" in str(facts.message)
