"""Machines that are not here: what each of them would answer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from clef.engines.machine import Ran


@dataclass
class CannedMachine:
    """A machine whose every answer is written down; what is not written is not there."""

    system: str = "linux"
    env: Mapping[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    programs: dict[str, Ran] = field(default_factory=dict)
    """By the command line, or by its beginning."""
    sizes: dict[str, int] = field(default_factory=dict)
    free: int | None = 500_000_000_000
    writable: bool = True
    answering: frozenset[int] = frozenset()
    ran: list[str] = field(default_factory=list)

    def read(self, path: str) -> str | None:
        return self.files.get(path)

    def exists(self, path: str) -> bool:
        return path in self.files or path in self.sizes

    def run(self, argv: Sequence[str]) -> Ran | None:
        line = " ".join(argv)
        self.ran.append(line)
        return next((ran for start, ran in self.programs.items() if line.startswith(start) or start in line), None)

    def size(self, path: str) -> int | None:
        return self.sizes.get(path)

    def free_bytes(self, path: str) -> int | None:
        return self.free

    def is_writable(self, path: str) -> bool | None:
        return self.writable

    def port_answers(self, host: str, port: int) -> bool:
        return port in self.answering


def meminfo(gigabytes: float) -> str:
    """/proc/meminfo of a machine with so much memory."""
    kilobytes = int(gigabytes * 2**20)
    return f"MemTotal:       {kilobytes} kB\nMemFree:         {kilobytes // 2} kB\n"


def devices(*lines: str) -> Ran:
    """What llama-server says to --list-devices."""
    return Ran(0, "\n".join(["Available devices:", *(f"  {line}" for line in lines)]))


WSL_VERSION = "Linux version 6.6.87.2-microsoft-standard-WSL2 (root@builder)"
LINUX_VERSION = "Linux version 6.8.0-45-generic (buildd@host)"
RX_9070_XT = "ROCm0: AMD Radeon RX 9070 XT (16304 MiB, 16112 MiB free)"


def cpu_laptop(**other: object) -> CannedMachine:
    """A laptop with 16 GB and no GPU that llama.cpp can use."""
    files = {"/proc/version": LINUX_VERSION, "/proc/meminfo": meminfo(15.5)}
    return _with(CannedMachine(files=files, programs={"--list-devices": devices()}), other)


def amd_wsl(**other: object) -> CannedMachine:
    """Windows with an RX 9070 XT, seen from WSL with everything in place."""
    files = {
        "/proc/version": WSL_VERSION,
        "/proc/meminfo": meminfo(15.6),
        "/dev/dxg": "",
        "/opt/rocm/lib/librocdxg.so": "",
        "/opt/rocm": "",
    }
    programs = {
        "rocminfo": Ran(0, "Agent 1\n  Name: AMD Ryzen 7\nAgent 2\n  Name:                    gfx1201\n"),
        "--list-devices": devices(RX_9070_XT),
        "dkms status": Ran(0, ""),
    }
    env = {"HSA_ENABLE_DXG_DETECTION": "1"}
    return _with(CannedMachine(files=files, programs=programs, env=env), other)


def amd_linux(**other: object) -> CannedMachine:
    """Linux on the metal with an RX 9070 XT."""
    files = {
        "/proc/version": LINUX_VERSION,
        "/proc/meminfo": meminfo(31),
        "/dev/kfd": "",
        "/dev/dri/renderD128": "",
        "/opt/rocm": "",
    }
    programs = {
        "rocminfo": Ran(0, "  Name:                    gfx1201\n"),
        "--list-devices": devices(RX_9070_XT),
        "dkms status": Ran(0, "amdgpu/6.16.6-2255209.24.04, 6.8.0-45-generic, x86_64: installed\n"),
    }
    return _with(CannedMachine(files=files, programs=programs), other)


def nvidia_linux(**other: object) -> CannedMachine:
    """Linux with a 24 GB NVIDIA card."""
    files = {"/proc/version": LINUX_VERSION, "/proc/meminfo": meminfo(62), "/dev/nvidia0": ""}
    programs = {
        "nvidia-smi": Ran(0, "GPU 0: NVIDIA GeForce RTX 3090 (UUID: GPU-0)\n"),
        "--list-devices": devices("CUDA0: NVIDIA GeForce RTX 3090 (24124 MiB, 23800 MiB free)"),
    }
    return _with(CannedMachine(files=files, programs=programs), other)


def apple(**other: object) -> CannedMachine:
    """A Mac with 32 GB that the GPU shares."""
    programs = {
        "sysctl -n hw.memsize": Ran(0, str(32 * 2**30)),
        "--list-devices": devices("MTL0: Apple M3 Pro (25559 MiB, 25559 MiB free)"),
    }
    return _with(CannedMachine(system="darwin", programs=programs), other)


def _with(machine: CannedMachine, other: dict[str, object]) -> CannedMachine:
    for name, value in other.items():
        known = getattr(machine, name)
        setattr(machine, name, {**known, **value} if isinstance(known, dict) and isinstance(value, dict) else value)
    return machine
