"""The command line in this process, alone and beside a clef that serves the same data folder."""

import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import uvicorn

from clef.cli.main import run
from clef.engines.builtin import BuiltinEngine
from clef.running import Running, announced, announcement
from clef.settings import load_settings
from clef.web.app import create_app


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str


Cli = Callable[..., Done]


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    """Run a command in this process: `cli("runs", "list")`."""

    def call(*arguments: str) -> Done:
        capsys.readouterr()
        code = run(list(arguments))
        said = capsys.readouterr()
        return Done(code, said.out, said.err)

    return call


@contextmanager
def serving() -> Iterator[Running]:
    """A clef with the built-in model that serves the data folder of the test, and says so."""
    settings = load_settings(engine="builtin")
    listener = socket.create_server(("127.0.0.1", 0))
    running = announcement(*listener.getsockname()[:2])
    app = create_app(settings, BuiltinEngine(), local_token=running.token)
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        with announced(settings.data_dir, running):
            yield running
    finally:
        server.should_exit = True
        thread.join(15)
        listener.close()


@pytest.fixture(params=["alone", "served"])
def beside(request: pytest.FixtureRequest) -> Iterator[str]:
    """Nobody serves the data folder, and then somebody does."""
    if request.param == "alone":
        yield "alone"
        return
    with serving():
        yield "served"


@pytest.fixture
def data_dir() -> Path:
    """The data folder of the test."""
    return Path(os.environ["CLEF_DATA_DIR"])
