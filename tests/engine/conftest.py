"""Tiny models, and engines that run them on the llama.cpp of the wheel."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from clef.engines.llama.supervisor import LlamaEngine
from clef.settings import Settings
from tests.tiny.models import write_chat, write_clef, write_openjev

CONTEXT = 1024


@pytest.fixture(scope="session")
def clef_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A joint decision model, in a folder with a space and an accent in its name."""
    return write_clef(tmp_path_factory.mktemp("My Models é") / "tiny clef.gguf")


@pytest.fixture(scope="session")
def openjev_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that decides each question alone."""
    return write_openjev(tmp_path_factory.mktemp("models") / "tiny-openjev.gguf")


@pytest.fixture(scope="session")
def chat_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that decides nothing."""
    return write_chat(tmp_path_factory.mktemp("models") / "tiny-chat.gguf")


Running = Callable[..., AbstractAsyncContextManager[LlamaEngine]]


@pytest.fixture
def running(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Running:
    """Runs a model on the wheel's llama.cpp for the length of a `with`, whatever else is installed here."""
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr("clef.engines.llama.command.DEFAULT_PLACE", "/nowhere")

    @asynccontextmanager
    async def run(model: Path, **settings: Any) -> AsyncIterator[LlamaEngine]:
        # One thread: llama.cpp's spin while they wait for each other, on a busy machine for seconds.
        arguments = ("-t", "1", *settings.pop("llama_args", ()))
        given: dict[str, object] = {"model": str(model), "context": CONTEXT, "ready_timeout": 60, **settings}
        given["llama_args"] = arguments
        engine = LlamaEngine(Settings(**given), folder=tmp_path / "children")  # type: ignore[arg-type] # pydantic checks them
        await engine.start()
        try:
            await engine.wait_ready()
            yield engine
        finally:
            await engine.close()

    return run


@pytest.fixture
async def clef(running: Running, clef_model: Path) -> AsyncIterator[LlamaEngine]:
    """The joint model, ready."""
    async with running(clef_model) as engine:
        yield engine


@pytest.fixture
async def openjev(running: Running, openjev_model: Path) -> AsyncIterator[LlamaEngine]:
    """The other model, ready."""
    async with running(openjev_model) as engine:
        yield engine


@pytest.fixture
async def either(running: Running, request: pytest.FixtureRequest) -> AsyncIterator[LlamaEngine]:
    """The model whose fixture is named, ready."""
    async with running(request.getfixturevalue(request.param)) as engine:
        yield engine
