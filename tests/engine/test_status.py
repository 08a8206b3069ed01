"""What real llama.cpp tells about itself, and what becomes of it on the page."""

from pathlib import Path

import pytest

from clef.decisions.examples import Request
from clef.decisions.questions import Noul
from clef.engines.doctor.examine import examine, timed_decision
from clef.engines.llama.command import find_program
from clef.engines.llama.supervisor import LlamaEngine
from clef.engines.machine import ThisMachine
from clef.engines.models.fitting import memory_of
from clef.engines.status import child_of
from clef.errors import Rejected, TooLong
from clef.settings import Settings
from tests.engine.conftest import CONTEXT, Running

pytestmark = [pytest.mark.anyio, pytest.mark.engine]
QUESTION = Noul("Is it?")


async def test_build_device_layers_memory_and_limits_are_read_from_a_real_start(
    clef: LlamaEngine, clef_model: Path
) -> None:
    child = child_of(clef.details())
    assert child.version is not None
    assert "xllamacpp" in child.version
    assert child.build is None  # the wheel's own log says b0-unknown
    assert child.program.startswith("llama.cpp inside xllamacpp")
    assert (child.context, child.physical_batch, child.slots) == (CONTEXT, CONTEXT, 1)
    assert (child.decision_type, child.reads_images) == ("clef", False)
    assert child.model_path == str(clef_model)
    assert any("compute" in name for name in child.buffers_mib)
    assert child.placement == "cpu"


async def test_slots_that_share_the_context_are_named_before_a_text_is_too_long(
    running: Running, openjev_model: Path
) -> None:
    async with running(openjev_model, llama_args=("-np", "4", "--no-kv-unified")) as engine:
        (warning,) = [text for text in engine.details().warnings if "slots" in text]
        assert warning == f"Its 4 slots share the context: a request may have {CONTEXT // 4} tokens. Use -np 1."
        assert (await engine.facts()).max_tokens == CONTEXT // 4
        with pytest.raises(TooLong) as caught:
            await engine.decide(Request("word " * 100, (QUESTION,)))
        assert caught.value.limit == CONTEXT // 4


async def test_an_image_is_refused_in_words_and_costs_nothing(clef: LlamaEngine) -> None:
    with pytest.raises(Rejected, match="images are off"):
        await clef.decide(Request("a photo", (QUESTION,), ("data:image/png;base64,iVBORw0KGgo=",)))
    assert (await clef.decide(Request("a text", (QUESTION,)))).answers


async def test_the_doctor_knows_the_wheels_llama_cpp_and_times_a_decision(clef: LlamaEngine) -> None:
    findings = {finding.check: finding for finding in examine(Settings(upstream="http://127.0.0.1:9"))}
    assert findings["server"].level == "ok"
    assert findings["devices"].level in ("ok", "fail")
    timed = await timed_decision(clef)
    assert timed.level == "ok"
    assert "tiny clef.gguf answers in" in timed.seen


def test_the_memory_of_this_machine_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clef.engines.llama.command.DEFAULT_PLACE", "/nowhere")
    memory = memory_of(ThisMachine(), [*find_program(Settings()).argv, "--list-devices"])
    assert (memory.ram_bytes or 0) > 10**9
