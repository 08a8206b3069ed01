"""Who holds a port, by name."""

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import psutil
import pytest

from clef.engines import holders
from clef.engines.holders import Holder, holder_of, is_clef

LISTEN = """
import socket, time
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
time.sleep(60)
"""


@pytest.fixture
def stranger() -> "Iterator[tuple[int, int]]":
    """The pid and the port of another program that listens."""
    with subprocess.Popen([sys.executable, "-c", LISTEN], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.pid, int(process.stdout.readline())
        process.kill()


def test_a_program_that_listens_is_named_with_its_process(stranger: tuple[int, int]) -> None:
    pid, port = stranger
    assert holder_of(port) == Holder(pid, psutil.Process(pid).name())
    assert holders.at(f"http://localhost:{port}") == f" ({psutil.Process(pid).name()}, process {pid})"


def test_where_only_ones_own_processes_are_told_they_are_looked_at_one_by_one(
    stranger: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(kind: str) -> None:
        raise psutil.AccessDenied

    monkeypatch.setattr(psutil, "net_connections", refuse)
    found = holder_of(stranger[1])
    assert found is not None
    assert found.pid == stranger[0]


def test_nobody_is_named_where_nobody_listens_and_on_other_machines() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    assert holder_of(port) is None
    assert holders.by_whom(port) == ""
    assert holders.at("http://192.0.2.1:80") == ""


def test_another_program_that_answers_is_no_clef_and_a_proxy_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    class Other(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{"status": "ok"}')

        def log_message(self, format: str, *arguments: object) -> None:
            """Say nothing."""

    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    with HTTPServer(("127.0.0.1", 0), Other) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        assert not is_clef(f"http://127.0.0.1:{server.server_port}")
    assert not is_clef("http://127.0.0.1:9")
