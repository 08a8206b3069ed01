"""The app in this process, and on a real socket."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import uvicorn
from starlette.testclient import TestClient

from clef.engines.builtin import BuiltinEngine
from clef.engines.engine import OwnedEngine
from clef.settings import load_settings
from clef.web.app import create_app
from tests.fakes.system_one import SystemOne, system_one

Client = Callable[..., TestClient]


@pytest.fixture
def client_of() -> Iterator[Client]:
    """Make a client of an app: `client_of(engine, max_body=2048)`."""
    opened: list[TestClient] = []

    def make(engine: OwnedEngine | None = None, **options: Any) -> TestClient:
        app = create_app(load_settings(**options), engine or BuiltinEngine())
        client = TestClient(app, base_url="http://127.0.0.1:8000", raise_server_exceptions=False)
        client.__enter__()
        opened.append(client)
        return client

    yield make
    for client in opened:
        client.__exit__(None, None, None)


@pytest.fixture
def client(client_of: Client) -> TestClient:
    """A client of the app with the built-in model."""
    return client_of()


@pytest.fixture
def server() -> Iterator[SystemOne]:
    with system_one() as running:
        yield running


@contextmanager
def served(engine: OwnedEngine | None = None, **options: Any) -> Iterator[str]:
    """The app on a free port of 127.0.0.1, in a thread; yields its address."""
    config = uvicorn.Config(
        create_app(load_settings(**options), engine), log_level="warning", timeout_graceful_shutdown=1
    )
    app = uvicorn.Server(config)
    listener = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=app.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        app.should_exit = True
        thread.join(15)
        listener.close()
