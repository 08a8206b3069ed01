"""Turns a clef that serves into a small file in its data folder, and that file into where it is and how to get in.

The command line looks there: while a clef serves a data folder, commands on the same folder go through it, with its
engine, its line and its runs. The file is readable by its owner alone, since it holds an access key of this machine;
it is gone when the clef ends. One that was left by a clef that died is told by its process or by nobody answering.
"""

import json
import os
import secrets
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

NAME = "server.json"
ANSWER_S = 2.0
"""How long a clef that is there may take to say so."""


@dataclass(frozen=True, slots=True)
class Running:
    """A clef that serves a data folder."""

    url: str
    """Root address, such as http://127.0.0.1:8000."""
    pid: int
    started: str
    """Time in UTC, ISO 8601."""
    token: str
    """An access key for programs of this user on this machine; new at each start."""


def announcement(host: str, port: int) -> Running:
    """What this process will say of itself when it serves at an address; where it listens to all, by loopback."""
    reached = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    url = f"http://{f'[{reached}]' if ':' in reached else reached}:{port}"
    return Running(url, os.getpid(), datetime.now(UTC).isoformat(timespec="seconds"), secrets.token_urlsafe(32))


@contextmanager
def announced(data_dir: Path, running: Running) -> Iterator[None]:
    """Keep the file while the block runs. Where the folder cannot be written to there is none, and nothing is lost."""
    path = data_dir / NAME
    with suppress(OSError):
        _write(path, running)
    try:
        yield
    finally:
        if _read(path) == running:
            path.unlink(missing_ok=True)


def find(data_dir: Path) -> Running | None:
    """The clef that serves this data folder now, or None."""
    running = _read(data_dir / NAME)
    if running is None or not _is_alive(running.pid) or not _answers(running):
        return None
    return running


def _write(path: Path, running: Running) -> None:
    """Write the file whole or not at all, never readable by others."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{NAME}.{running.pid}")
    part.unlink(missing_ok=True)
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump(asdict(running), file)
    part.replace(path)


def _read(path: Path) -> Running | None:
    try:
        return Running(**json.loads(path.read_bytes()))
    except (OSError, ValueError, TypeError):
        return None


def _is_alive(pid: int) -> bool:
    if os.name == "nt":  # there the signal 0 would end the process
        return True
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError, TypeError):
        return False
    except PermissionError:
        return True
    return True


def _answers(running: Running) -> bool:
    """Whether a clef is at the address. No proxy of the environment is asked."""
    from http.client import HTTPConnection, HTTPException
    from urllib.parse import urlsplit

    try:
        place = urlsplit(running.url)
        with closing(HTTPConnection(place.hostname or "", place.port, timeout=ANSWER_S)) as connection:
            connection.request("GET", "/api/health", headers={"Authorization": f"Bearer {running.token}"})
            response = connection.getresponse()
            return response.status == 200 and "phase" in json.loads(response.read())
    except (OSError, HTTPException, ValueError, TypeError):
        return False
