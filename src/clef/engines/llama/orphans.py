"""Turns the notes that running children left into the end of those whose clef is gone.

On Linux the parent-death signal leaves no orphan; this is for other systems, and for what that signal cannot reach.
One note a child: its pid, when that process started, its arguments, and the same of the clef that runs it. A process
is ended only when pid, start and arguments all fit and its clef is gone, so that a stranger who was given the pid,
and the child of another clef, both survive.
"""

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

GRACE_S = 2.0
POLL_S = 0.02
PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Identity:
    """A process, told apart from any other that has or had its pid."""

    pid: int
    started: str
    """When it started; the same text for the same process, whatever it has become by exec."""
    arguments: tuple[str, ...]


def identify(pid: int) -> Identity | None:
    """Who has this pid now; None for nobody and for a zombie."""
    return _identify_by_proc(pid) if PROC.joinpath("self").exists() else _identify_by_ps(pid)


def _identify_by_proc(pid: int) -> Identity | None:
    try:
        state, *numbers = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
        arguments = (PROC / str(pid) / "cmdline").read_bytes().rstrip(b"\0").split(b"\0")
        boot = (PROC / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return None
    if state in "ZX":
        return None
    ticks = numbers[18]  # field 22 of proc(5)'s stat
    return Identity(pid, f"{boot} {ticks}", tuple(os.fsdecode(argument) for argument in arguments))


def _identify_by_ps(pid: int) -> Identity | None:
    ask = ["ps", "-ww", "-o", "lstart=,command=", "-p", str(pid)]
    said = subprocess.run(ask, capture_output=True, text=True, check=False).stdout.split()
    return Identity(pid, " ".join(said[:5]), tuple(said[5:])) if len(said) > 5 else None


class Register:
    """The notes of all children of this user's clefs, one file each in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def enter(self, pid: int, argv: Sequence[str]) -> None:
        """Note a child that has just been started. A note that cannot be written is no reason not to run."""
        child, clef = identify(pid), identify(os.getpid())
        if child is None or clef is None:
            return
        note = {"pid": pid, "started": child.started, "argv": list(argv), "by": [clef.pid, clef.started]}
        with contextlib.suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            fresh = self._folder / f".{pid}"
            fresh.write_text(json.dumps(note))
            fresh.replace(self._file(pid))

    def leave(self, pid: int) -> None:
        """Take the note of a child away that has ended."""
        with contextlib.suppress(OSError):
            self._file(pid).unlink(missing_ok=True)

    def sweep(self) -> list[int]:
        """End the children whose clef is gone; their pids. Blocks for up to two seconds each."""
        ended = []
        for file in sorted(self._folder.glob("*.json")):
            try:
                note = json.loads(file.read_text())
                pid, started, argv = int(note["pid"]), str(note["started"]), [str(item) for item in note["argv"]]
                by_pid, by_started = int(note["by"][0]), str(note["by"][1])
            except (OSError, ValueError, LookupError, TypeError):
                file.unlink(missing_ok=True)
                continue
            clef = identify(by_pid)
            if clef is not None and clef.started == by_started:
                continue
            child = identify(pid)
            if child is not None and child.started == started and _runs(child, argv):
                _end(child)
                ended.append(pid)
            file.unlink(missing_ok=True)
        return ended

    def _file(self, pid: int) -> Path:
        return self._folder / f"{pid}.json"


def _runs(process: Identity, argv: Sequence[str]) -> bool:
    """Whether a process is what was started: a script's interpreter and our launcher come before its arguments."""
    if process.arguments[-len(argv[1:]) :] == tuple(argv[1:]):
        return True
    return " ".join(process.arguments).endswith(" ".join(argv[1:]))  # ps does not tell where an argument ends


def _end(process: Identity) -> None:
    """SIGTERM to its group, SIGKILL after the grace. It leads its group, and is not ours to reap."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
        end = time.monotonic() + GRACE_S
        while time.monotonic() < end:
            now = identify(process.pid)
            if now is None or now.started != process.started:
                return
            time.sleep(POLL_S)
