"""What is chosen on the Engine page holds after a restart of clef, unless something else sets it."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from clef.engines.engine import EngineFacts
from clef.engines.kept import Kept
from clef.engines.opening import ChosenEngine
from clef.engines.status import Change
from clef.settings import Settings
from tests.fakes.system_one import system_one
from tests.process.waiting import until
from tests.tiny.models import write_openjev

pytestmark = pytest.mark.anyio
Open = Callable[..., ChosenEngine]


@pytest.fixture
async def opened(fake_server: Path, starts: Path, tmp_path: Path) -> AsyncIterator[Open]:
    """Makes engines as one `clef serve` after the other does on one data folder; each ends the one before."""
    made: list[ChosenEngine] = []

    def make(*faults: str, unset: tuple[str, ...] = (), **settings: object) -> ChosenEngine:
        arguments = ("--starts", str(starts), *faults)
        usual: dict[str, object] = {"llama_server": fake_server, "llama_args": arguments, "ready_timeout": 20}
        usual |= {"data_dir": tmp_path / "data", "upstream": "http://127.0.0.1:9"}
        known = Settings(**(usual | settings))  # type: ignore[arg-type] # pydantic checks them
        known.__pydantic_fields_set__.difference_update(unset)
        engine = ChosenEngine(known)
        made.append(engine)
        engine.start()
        return engine

    yield make
    for engine in made:
        await engine.close()


async def settled(engine: ChosenEngine) -> EngineFacts:
    """The facts once it answers or has failed."""
    end = asyncio.get_running_loop().time() + 20
    while (facts := await engine.facts()).phase not in ("ready", "failed"):
        assert asyncio.get_running_loop().time() < end, facts
        await asyncio.sleep(0.02)
    return facts


async def choose(engine: ChosenEngine, tmp_path: Path, **change: object) -> None:
    """Choose something, and wait until it is kept."""
    before = len((await engine.status()).kept)
    await engine.restart(Change(**change))  # type: ignore[arg-type] # a test's own
    await settled(engine)
    for _ in range(500):
        if len((await engine.status()).kept) > before:
            break
        await asyncio.sleep(0.01)
    await until((tmp_path / "data" / "engine.json").exists)


async def test_a_model_and_a_context_that_were_chosen_are_used_by_the_next_start(
    opened: Open, model: Path, tmp_path: Path
) -> None:
    first = opened()
    assert (await settled(first)).kind == "builtin"
    await choose(first, tmp_path, model=str(model), context=2048)
    await first.close()
    second = opened()
    facts = await settled(second)
    assert (facts.kind, facts.model) == ("llama", model.name)
    status = await second.status()
    assert status.kept == (Kept("CLEF_MODEL", str(model), False), Kept("CLEF_CONTEXT", "2048", False))
    assert status.child is not None
    assert "-c 2048" in status.child.command_line


async def test_the_environment_and_options_win_and_the_page_can_say_so(
    opened: Open, model: Path, tmp_path: Path
) -> None:
    first = opened()
    await choose(first, tmp_path, model=str(model))
    await first.close()
    other = write_openjev(tmp_path / "other.gguf")
    second = opened(model=str(other))
    assert (await settled(second)).model == "other.gguf"
    assert (await second.status()).kept == (Kept("CLEF_MODEL", str(model), True),)
    await second.close()
    assert (await settled(opened(engine="builtin"))).kind == "builtin"


async def test_a_choice_that_crashes_is_not_what_the_next_start_tries(
    opened: Open, model: Path, tmp_path: Path
) -> None:
    faults = ("--exit-above", "4096", "error: failed to allocate compute buffer")
    first = opened(*faults)
    await choose(first, tmp_path, model=str(model))
    await first.restart(Change(context=8192))
    assert (await settled(first)).phase == "failed"
    await first.close()
    assert [kept.setting for kept in (await opened(*faults).status()).kept] == ["CLEF_MODEL"]


async def test_forgetting_changes_nothing_now_and_everything_at_the_next_start(
    opened: Open, model: Path, tmp_path: Path
) -> None:
    first = opened()
    await choose(first, tmp_path, model=str(model))
    await first.forget()
    assert (await first.status()).kept == ()
    assert (await first.facts()).kind == "llama"
    await first.close()
    assert (await settled(opened())).kind == "builtin"


async def test_a_model_that_is_gone_is_named_and_the_next_choice_taken(
    opened: Open, model: Path, tmp_path: Path
) -> None:
    here = tmp_path / "here.gguf"
    here.write_bytes(model.read_bytes())
    first = opened()
    await choose(first, tmp_path, model=str(here))
    await first.close()
    here.unlink()
    facts = await settled(opened())
    assert facts.kind == "builtin"
    assert f"The model that was chosen on the Engine page is not there any more: {here}" in str(facts.message)


@pytest.mark.parametrize("content", ["", "{", "[1]", '{"context": "many"}', '{"model": 7}'])
async def test_a_file_that_cannot_be_read_is_said_so_and_stops_nothing(
    opened: Open, content: str, tmp_path: Path
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "engine.json").write_text(content)
    facts = await settled(opened())
    assert facts.phase == "ready"
    assert "What was chosen on the Engine page cannot be read" in str(facts.message)


async def test_a_chosen_model_comes_before_a_server_at_the_usual_address_and_after_one_that_is_set(
    opened: Open, model: Path, tmp_path: Path
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "engine.json").write_text(json.dumps({"model": str(model)}))
    with system_one() as server:
        usual = opened(upstream=server.address, unset=("upstream",))
        assert (await settled(usual)).kind == "llama"
        await usual.close()
        assert (await settled(opened(upstream=server.address))).kind == "upstream"
