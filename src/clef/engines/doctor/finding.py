"""Turns one look at the machine into a Finding: what was seen, how good that is, and what to do."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from clef.engines.machine import Machine
from clef.engines.models.fitting import Memory
from clef.settings import Settings

Level = Literal["ok", "warn", "fail", "unknown"]
EXIT_CODES: dict[Level, int] = {"ok": 0, "unknown": 0, "warn": 1, "fail": 2}


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found."""

    check: str
    """A stable name."""
    title: str
    level: Level
    seen: str
    """What was seen, in words and figures."""
    remedy: str | None = None
    """What to do; None where there is nothing to do."""

    def to_dict(self) -> dict[str, object]:
        """As JSON."""
        return {
            "check": self.check,
            "title": self.title,
            "level": self.level,
            "seen": self.seen,
            "remedy": self.remedy,
        }


@dataclass(frozen=True, slots=True)
class Patient:
    """What is examined: a machine, the settings, and what they lead to."""

    machine: Machine
    settings: Settings
    program: tuple[str, ...]
    """The llama-server that would be run, as a command."""
    shown_program: str
    memory: Memory
    devices_ran: bool
    """Whether the llama-server could list its devices."""
    model: Path | None
    """The model that would be run; None where there is none."""
    cache: Path

    @property
    def is_wsl(self) -> bool:
        """Whether this Linux is a guest of Windows."""
        return "microsoft" in (self.machine.read("/proc/version") or "").lower()

    @property
    def has_amd_signs(self) -> bool:
        """Whether anything here says that there is an AMD GPU to be used."""
        signs = ("/opt/rocm", "/dev/kfd")
        return any(self.machine.exists(path) for path in signs)

    @property
    def has_nvidia_signs(self) -> bool:
        """Whether anything here says that there is an NVIDIA GPU to be used."""
        signs = ("/dev/nvidia0", "/usr/lib/wsl/lib/libcuda.so.1")
        return any(self.machine.exists(path) for path in signs)


def exit_code(findings: Sequence[Finding]) -> int:
    """0 where all is well or unknown, 1 where something is to be looked at, 2 where something will not work."""
    return max((EXIT_CODES[finding.level] for finding in findings), default=0)
