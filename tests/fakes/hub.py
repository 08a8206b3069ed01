"""A model hub on 127.0.0.1 that speaks the hub's routes: a file's facts, its content with Range, a repository's list.

Reached by the real hub library through HF_ENDPOINT. Faults are attributes, which a test may change at any time.
"""

import hashlib
import json
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from clef.engines.models.catalogue import named

COMMIT = "4a192915" * 5
RESOLVE = re.compile(r"/(?P<repo>[^/]+/[^/]+)/resolve/(?P<revision>[^/]+)/(?P<file>[^?]+)")
TREE = re.compile(r"/api/models/(?P<repo>[^/]+/[^/]+)/tree/")
PIECE = 16_384


class Hub(ThreadingHTTPServer):
    """The server; `files` are its repositories' contents by "owner/name/file"."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files: dict[str, bytes] = {}
        self.address = f"http://127.0.0.1:{self.server_address[1]}"
        self.requests: list[tuple[str, str, dict[str, str]]] = []
        """Method, path and headers of every request."""
        self.gated = False
        self.wants_token: str | None = None
        self.cuts: list[int] = []
        """After how many bytes the next answers are cut off."""
        self.bytes_per_s: float | None = None
        self.refuses_range = False
        self.ignores_range = False
        self.claims_size: int | None = None
        self.is_damaged = False
        self.broken_status: int | None = None

    def ranges(self) -> list[str | None]:
        """The Range header of every request for content."""
        return [
            headers.get("Range") for method, path, headers in self.requests if method == "GET" and "resolve" in path
        ]


class Handler(BaseHTTPRequestHandler):
    server: Hub
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self.respond()

    def do_GET(self) -> None:
        self.respond()

    def respond(self) -> None:
        hub = self.server
        hub.requests.append((self.command, self.path, dict(self.headers)))
        listing = TREE.match(self.path)
        if listing:
            self.send_json(200, hub_listing(hub, listing["repo"]))
            return
        found = RESOLVE.match(self.path)
        if not found:
            self.refuse(404, "RepoNotFound")
        elif hub.broken_status:
            self.refuse(hub.broken_status)
        elif hub.wants_token and self.headers["Authorization"] != f"Bearer {hub.wants_token}":
            self.refuse(401, "GatedRepo" if hub.gated else None)
        elif hub.gated and not hub.wants_token:
            self.refuse(403, "GatedRepo")
        elif not any(name.startswith(f"{found['repo']}/") for name in hub.files):
            self.refuse(401, "RepoNotFound")
        elif f"{found['repo']}/{found['file']}" not in hub.files:
            self.refuse(404, "EntryNotFound")
        else:
            self.send_file(hub.files[f"{found['repo']}/{found['file']}"])

    def refuse(self, status: int, code: str | None = None) -> None:
        headers = {"X-Error-Code": code, "X-Error-Message": code} if code else {}
        self.send_json(status, {"error": code or "no"}, {**headers, "X-Repo-Commit": COMMIT})

    def send_json(self, status: int, body: object, headers: dict[str, str] | None = None) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def send_file(self, content: bytes) -> None:
        hub = self.server
        size = len(content) if hub.claims_size is None else hub.claims_size
        start, wanted = 0, self.headers["Range"]
        if wanted and not hub.ignores_range:
            start = int(wanted.removeprefix("bytes=").partition("-")[0])
            if start >= len(content) or hub.refuses_range:
                self.refuse(416)
                return
        self.send_response(206 if start else 200)
        self.send_header("X-Repo-Commit", COMMIT)
        self.send_header("X-Linked-Etag", f'"{hashlib.sha256(content).hexdigest()}"')
        self.send_header("X-Linked-Size", str(size))
        self.send_header("ETag", '"not-this-one"')
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(size - start))
        if start:
            self.send_header("Content-Range", f"bytes {start}-{size - 1}/{size}")
        self.end_headers()
        if self.command != "HEAD":
            self.send_content(content[start:])

    def send_content(self, content: bytes) -> None:
        hub = self.server
        if hub.is_damaged:
            content = b"\0" * len(content)
        if hub.cuts:
            content = content[: hub.cuts.pop(0)]
            self.close_connection = True
        for at in range(0, len(content), PIECE):
            try:
                self.wfile.write(content[at : at + PIECE])
                self.wfile.flush()
            except OSError:
                return
            if hub.bytes_per_s:
                time.sleep(PIECE / hub.bytes_per_s)

    def log_message(self, format: str, *arguments: object) -> None:
        """Requests are kept, not printed."""


def hub_listing(hub: Hub, repo: str) -> list[dict[str, object]]:
    """What the hub lists of a repository."""
    return [
        {"type": "file", "path": name.removeprefix(f"{repo}/"), "size": len(content), "oid": "0" * 40}
        for name, content in hub.files.items()
        if name.startswith(f"{repo}/")
    ]


@contextmanager
def running_hub() -> Iterator[Hub]:
    """A hub for the length of a `with`."""
    hub = Hub()
    thread = threading.Thread(target=hub.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        hub.shutdown()
        hub.server_close()
        thread.join(5)


@contextmanager
def hub_of(name: str, content: bytes, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A hub that has one model of the catalogue, such as "julia-1:Q8_0", and that clef takes for the hub."""
    wanted = named(name)
    assert wanted.file is not None
    with running_hub() as running:
        running.files[f"{wanted.model.repo}/{wanted.file.file}"] = content
        monkeypatch.setenv("HF_ENDPOINT", running.address)
        yield running
