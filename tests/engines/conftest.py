"""A server to talk to."""

import socket
from collections.abc import Iterator

import pytest

from tests.fakes.system_one import SystemOne, system_one


@pytest.fixture
def server() -> Iterator[SystemOne]:
    with system_one() as running:
        yield running


@pytest.fixture
def nobody() -> str:
    """An address where nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return f"http://127.0.0.1:{taken.getsockname()[1]}"
