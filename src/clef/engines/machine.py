"""Turns questions about this machine (files, programs, environment, disks, ports) into answers, behind one seam.

Everything that looks at the machine does it through a Machine, so that a test can be a laptop, a WSL or a server with
two cards. No method raises: what cannot be seen is None.
"""

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

PATIENCE_S = 10.0


@dataclass(frozen=True, slots=True)
class Ran:
    """What a program did."""

    code: int
    """Its exit code; minus the number of a signal that ended it."""
    output: str
    """Its stdout and stderr."""


class Machine(Protocol):
    """Where clef runs."""

    @property
    def system(self) -> str:
        """As `sys.platform`: linux, darwin, win32."""
        ...

    @property
    def env(self) -> Mapping[str, str]:
        """The environment variables of clef."""
        ...

    def read(self, path: str) -> str | None:
        """The text of a file; None where it cannot be read."""
        ...

    def exists(self, path: str) -> bool:
        """Whether a file, folder or device is there."""
        ...

    def run(self, argv: Sequence[str]) -> Ran | None:
        """What a program does; None where there is none of that name, or it takes too long."""
        ...

    def size(self, path: str) -> int | None:
        """Bytes of a file."""
        ...

    def free_bytes(self, path: str) -> int | None:
        """Bytes that are free where a file or folder is, or would be."""
        ...

    def is_writable(self, path: str) -> bool | None:
        """Whether files can be made in a folder, or in the nearest one above it that exists."""
        ...

    def port_answers(self, host: str, port: int) -> bool:
        """Whether something takes connections there."""
        ...


class ThisMachine:
    """The machine clef runs on."""

    @property
    def system(self) -> str:
        """As `sys.platform`."""
        return sys.platform

    @property
    def env(self) -> Mapping[str, str]:
        """The environment variables of clef."""
        return os.environ

    def read(self, path: str) -> str | None:
        """The text of a file."""
        try:
            return Path(path).read_text(errors="replace")
        except OSError:
            return None

    def exists(self, path: str) -> bool:
        """Whether a file, folder or device is there."""
        return os.path.exists(path)

    def run(self, argv: Sequence[str]) -> Ran | None:
        """What a program does, within ten seconds."""
        if shutil.which(argv[0]) is None:
            return None
        try:
            done = subprocess.run(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=PATIENCE_S,
                check=False,
            )
        except (OSError, subprocess.SubprocessError):
            return None
        return Ran(done.returncode, done.stdout.decode("utf-8", "replace"))

    def size(self, path: str) -> int | None:
        """Bytes of a file."""
        try:
            return os.stat(path).st_size
        except OSError:
            return None

    def free_bytes(self, path: str) -> int | None:
        """Bytes that are free where a file or folder is, or would be."""
        try:
            return shutil.disk_usage(_nearest(path)).free
        except OSError:
            return None

    def is_writable(self, path: str) -> bool | None:
        """Whether files can be made there."""
        return os.access(_nearest(path), os.W_OK)

    def port_answers(self, host: str, port: int) -> bool:
        """Whether something takes connections there."""
        try:
            with socket.create_connection((host, port), timeout=1):
                return True
        except OSError:
            return False


def _nearest(path: str) -> Path:
    """The path itself, or the nearest folder above it that exists."""
    found = Path(path).expanduser().absolute()
    while not found.exists() and found != found.parent:
        found = found.parent
    return found


def is_wsl(machine: Machine) -> bool:
    """Whether this Linux is a guest of Windows."""
    return "microsoft" in (machine.read("/proc/version") or "").lower()
