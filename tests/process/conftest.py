"""A fake llama-server to run, and engines that run it and are always closed."""

import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from clef.engines.llama.restarts import Pace
from clef.engines.llama.supervisor import LlamaEngine
from clef.settings import Settings
from tests.tiny.models import write_openjev

FAKE = Path(__file__).parents[1] / "fakes" / "llama_server.py"
FAST = Pace(poll_s=0.01, grace_s=0.3, pauses_s=(0.02,), strikes=2)
"""The supervisor's usual rules at a test's speed."""

MakeEngine = Callable[..., LlamaEngine]


@pytest.fixture(scope="session")
def fake_server(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The fake as a program, in a folder with a space and an accent in its name."""
    program = tmp_path_factory.mktemp("José's programs") / "llama-server"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "{FAKE}" "$@"\n')
    program.chmod(0o755)
    return program


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model file for the fake, which does not read it, and for clef, which does."""
    return write_openjev(tmp_path_factory.mktemp("My Models é") / "clef flash.gguf")


@pytest.fixture
def starts(tmp_path: Path) -> Path:
    """The file with the pid of every start of the fake."""
    path = tmp_path / "starts"
    path.touch()
    return path


@pytest.fixture
async def make_engine(fake_server: Path, model: Path, starts: Path, tmp_path: Path) -> AsyncIterator[MakeEngine]:
    """Makes engines on the fake with the faults given; closes them all."""
    made: list[LlamaEngine] = []

    def make(*faults: str, pace: Pace = FAST, **settings: object) -> LlamaEngine:
        arguments = ("--starts", str(starts), *faults)
        usual: dict[str, object] = {"model": str(model), "llama_server": fake_server, "llama_args": arguments}
        engine = LlamaEngine(Settings(**(usual | {"ready_timeout": 20} | settings)), pace, tmp_path / "children")  # type: ignore[arg-type] # pydantic checks them
        made.append(engine)
        return engine

    yield make
    for engine in made:
        await engine.close()


@pytest.fixture
def start_engine(make_engine: MakeEngine) -> Callable[..., Awaitable[LlamaEngine]]:
    """As `make_engine`, started and ready."""

    async def start(*faults: str, **settings: object) -> LlamaEngine:
        engine = make_engine(*faults, **settings)
        await engine.start()
        await engine.wait_ready()
        return engine

    return start
