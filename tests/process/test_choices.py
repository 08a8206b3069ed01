"""What a user chooses about a llama.cpp, and what they are told about the choice."""

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from clef.decisions.examples import Request
from clef.decisions.questions import Choice
from clef.engines.llama.command import find_program, plan
from clef.engines.llama.orphans import identify
from clef.engines.llama.supervisor import LlamaEngine
from clef.engines.llama.version import ask_version
from clef.errors import Crashed, Rejected, SettingsError, Unavailable
from clef.settings import Settings
from tests.process.conftest import FAST
from tests.process.waiting import is_alive, pids_in, until
from tests.tiny.models import write_projector

pytestmark = pytest.mark.anyio
Make = Callable[..., LlamaEngine]
Start = Callable[..., Awaitable[LlamaEngine]]

ASKED = Request("the sky", (Choice("Which?", ["blue", "red"]),))
PIXEL = "data:image/png;base64,iVBORw0KGgo="


@pytest.fixture
def model_with_projector(model: Path, tmp_path: Path) -> Path:
    there = tmp_path / "Clef-Flash-Q8_0.gguf"
    there.write_bytes(model.read_bytes())
    write_projector(tmp_path / "mmproj-Clef-Flash-BF16.gguf")
    write_projector(tmp_path / "mmproj-Other-BF16.gguf")
    return there


class TestImages:
    def test_they_are_off_unless_asked_for(self, model_with_projector: Path) -> None:
        assert "--no-mmproj" in plan(Settings(model=str(model_with_projector))).arguments

    def test_on_request_the_projector_beside_the_model_is_loaded(self, model_with_projector: Path) -> None:
        arguments = plan(Settings(model=str(model_with_projector), images=True)).arguments
        assert "--no-mmproj" not in arguments
        found = arguments[arguments.index("--mmproj") + 1]
        assert found == str(model_with_projector.with_name("mmproj-Clef-Flash-BF16.gguf"))

    def test_a_projector_of_the_users_own_is_neither_replaced_nor_switched_off(self, model: Path) -> None:
        arguments = plan(Settings(model=str(model), llama_args=("--mmproj", "mine.gguf"))).arguments
        assert "--no-mmproj" not in arguments
        assert arguments.count("--mmproj") == 1

    async def test_without_a_projector_they_are_refused_before_anything_is_started(
        self, make_engine: Make, starts: Path
    ) -> None:
        with pytest.raises(SettingsError, match=r"CLEF_IMAGES=1 needs a projector.*clef flash\.gguf"):
            await make_engine(images=True).start()
        assert not pids_in(starts)

    async def test_an_image_is_refused_in_words_where_they_are_off(self, start_engine: Start) -> None:
        engine = await start_engine()
        with pytest.raises(Rejected, match="images are off") as caught:
            await engine.decide(Request("a photo", ASKED.questions, (PIXEL,)))
        assert "CLEF_IMAGES=1" in str(caught.value.hint)
        assert (await engine.decide(ASKED)).answers

    async def test_an_image_is_sent_where_they_are_on(self, start_engine: Start, model_with_projector: Path) -> None:
        engine = await start_engine(model=str(model_with_projector), images=True)
        assert (await engine.decide(Request("a photo", ASKED.questions, (PIXEL,)))).answers


class TestExitWithEngine:
    async def test_its_death_is_the_end_instead_of_a_restart(self, start_engine: Start, starts: Path) -> None:
        engine = await start_engine("--crash-at", "2", exit_with_engine=True)
        with pytest.raises(Crashed):
            await engine.decide(ASKED)
        await asyncio.wait_for(engine.wait_ended(), 5)
        assert engine.state == "failed"
        assert "SIGSEGV" in str((await engine.facts()).message)
        assert len(pids_in(starts)) == 1


class TestWarnings:
    @pytest.mark.parametrize("loud", [("-lv", "5"), ("-v",), ("--verbosity", "99")])
    def test_output_that_has_the_text_of_requests_in_it_is_warned_of(self, model: Path, loud: tuple[str, ...]) -> None:
        (warning,) = plan(Settings(model=str(model), llama_args=loud)).warnings
        assert "text of requests" in warning

    @pytest.mark.parametrize("quiet", [(), ("-lv", "4"), ("-lv", "1")])
    def test_the_usual_output_is_not(self, model: Path, quiet: tuple[str, ...]) -> None:
        assert plan(Settings(model=str(model), llama_args=quiet)).warnings == ()

    async def test_they_are_among_the_details_with_the_gpu_variables_it_inherits(
        self, start_engine: Start, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("HSA_OVERRIDE_GFX_VERSION", "10.3.0")
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        slots = ("--say", "llama_context: n_ubatch = 4096", "--say", "n_slots = 4, n_ctx_slot = 1024")
        engine = await start_engine("-v", *slots)
        details = engine.details()
        assert details.gpu_variables == {"HSA_OVERRIDE_GFX_VERSION": "10.3.0"}
        assert "text of requests" in details.warnings[0]
        assert details.warnings[1] == "Its 4 slots share the context: a request may have 1024 tokens. Use -np 1."


class TestVersion:
    async def test_a_server_of_another_tool_is_shown_with_its_path_its_version_and_its_own_words(
        self, make_engine: Make, fake_server: Path
    ) -> None:
        engine = make_engine("--exit-at-start", "error: invalid argument: -hf")
        await engine.start()
        with pytest.raises(Unavailable, match="error: invalid argument: -hf"):
            await engine.wait_ready()
        await until(lambda: engine.details().version)
        assert engine.details().version == "5000 (0ld0ld0)"
        assert str(fake_server) in engine.details().program

    async def test_a_program_that_never_answers_is_ended_and_delays_nothing(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("clef.engines.llama.version.PATIENCE_S", 0.3)
        pid = tmp_path / "pid"
        program = tmp_path / "llama-server"
        program.write_text(f'#!/bin/sh\necho $$ > "{pid}"\nexec sleep 60\n')
        program.chmod(0o755)
        assert await ask_version(find_program(Settings(llama_server=program))) is None
        assert not is_alive(pids_in(pid)[0])

    async def test_the_wheels_is_known_without_a_process(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PATH", "")
        monkeypatch.setattr("clef.engines.llama.command.DEFAULT_PLACE", "/nowhere")
        version = await ask_version(find_program(Settings()))
        assert "xllamacpp" in str(version)


class TestRestarting:
    async def test_who_asks_during_a_restart_is_told_to_come_back_not_that_it_is_off(self, start_engine: Start) -> None:
        engine = await start_engine("--ignore-term")
        restarting = asyncio.create_task(engine.restart())
        await until(lambda: engine.state == "stopping")
        assert (await engine.facts()).phase == "starting"
        with pytest.raises(Unavailable) as caught:
            await engine.decide(ASKED)
        assert caught.value.phase == "starting"
        await restarting
        await engine.wait_ready()
        await engine.close()
        assert (await engine.facts()).phase == "off"

    async def test_a_context_that_fits_no_memory_has_a_cause_that_can_be_acted_on(self, make_engine: Make) -> None:
        said = "ggml_gallocr_reserve_n: failed to allocate ROCm0 buffer of size 15032385536"
        engine = make_engine("--exit-above", "2048", said, context=4096)
        await engine.start()
        with pytest.raises(Unavailable, match="not enough memory"):
            await engine.wait_ready()
        assert engine.details().cause == "memory"
        await engine.restart(engine.settings.model_copy(update={"context": 2048}))
        await engine.wait_ready()
        assert engine.details().cause is None


async def test_children_are_noted_in_the_data_folder_and_the_note_goes_with_them(
    fake_server: Path, model: Path, tmp_path: Path
) -> None:
    settings = Settings(model=str(model), llama_server=fake_server, data_dir=tmp_path / "data")
    engine = LlamaEngine(settings, FAST)
    await engine.start()
    await engine.wait_ready()
    (note,) = (tmp_path / "data" / "children").glob("*.json")
    known = identify(os.getpid())
    assert known is not None
    assert json.loads(note.read_text())["by"] == [known.pid, known.started]
    await engine.close()
    assert not note.exists()


async def test_the_log_can_be_followed_over_a_restart(start_engine: Start) -> None:
    engine = await start_engine("--say", "first words")
    life, place, lines = engine.log_since(0, 0)
    assert lines[0] == "first words"
    await engine.decide(ASKED)
    await until(lambda: "decision 2" in engine.log_tail())
    life, place, lines = engine.log_since(life, place)
    assert lines == ["decision 2"]
    await engine.restart()
    await engine.wait_ready()
    assert engine.log_since(life, place)[2][0] == "first words"
