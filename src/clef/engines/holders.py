"""Turns a port of this machine into who listens there: a clef, or a program by its name and process id.

A program of another user is not always told by the system; then nobody is named rather than somebody guessed.
"""

import contextlib
import json
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

PATIENCE_S = 0.5
_ANY = frozenset({"0.0.0.0", "::", ""})


@dataclass(frozen=True, slots=True)
class Holder:
    """Who listens on a port."""

    pid: int
    program: str

    def __str__(self) -> str:
        return f"{self.program} (process {self.pid})"


def holder_of(port: int, host: str = "127.0.0.1") -> Holder | None:
    """Who listens on a port of this machine; None for nobody, and where the system does not say. Never raises."""
    import psutil

    # Several may share a port by different addresses; the one that is asked for comes first.
    here = sorted((ip not in (host, *_ANY), pid) for ip, at, pid in _listening() if at == port)
    for _, pid in here:
        with contextlib.suppress(psutil.Error, OSError):
            return Holder(pid, psutil.Process(pid).name())
    return None


def _listening() -> list[tuple[str, int, int]]:
    """Address, port and process id of what listens on this machine."""
    import psutil

    found: list[tuple[Any, int | None]] = []  # two kinds of tuple with the same fields
    try:
        found = [(one, one.pid) for one in psutil.net_connections("tcp")]
    except (psutil.Error, OSError):  # macOS tells about the processes of one's own only, one by one
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, OSError):
                found += [(one, process.pid) for one in process.net_connections("tcp")]
    return [(one.laddr.ip, one.laddr.port, pid) for one, pid in found if one.status == psutil.CONN_LISTEN and pid]


def is_clef(address: str) -> bool:
    """Whether a clef answers at an address, be it that it wants a key. Takes half a second at most."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"{address}/api/health", timeout=PATIENCE_S) as answer:
            return {"reachable", "engine", "phase", "version"} <= set(json.load(answer))
    except urllib.error.HTTPError as refusal:
        with refusal, contextlib.suppress(OSError, ValueError, LookupError, TypeError):
            return bool(json.load(refusal)["error"]["fault"] == "input")
    except (OSError, ValueError, LookupError, TypeError):
        pass
    return False


def by_whom(port: int, host: str = "127.0.0.1") -> str:
    """The words " by llama-server (process 4711)" to put behind "is taken"; none where that is not known."""
    holder = holder_of(port, host)
    return f" by {holder}" if holder else ""


def at(address: str) -> str:
    """The words " (llama-server, process 4711)" to put behind an http address; none where that is not known, and for
    other machines."""
    parts = urlsplit(address)
    host = "127.0.0.1" if parts.hostname == "localhost" else parts.hostname or ""
    if host not in ("127.0.0.1", "::1"):
        return ""
    holder = holder_of(parts.port or (443 if parts.scheme == "https" else 80), host)
    return f" ({holder.program}, process {holder.pid})" if holder else ""
