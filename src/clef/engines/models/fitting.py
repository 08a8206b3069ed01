"""Turns the memory of a machine into which models fit it, and the one to take.

Rule: a GPU on which a file of Clef-Flash fits with its buffers gets the largest such file; every other machine gets
a small model, because Clef-Flash on a processor takes seconds a decision. A device whose memory is not known counts
for nothing, since some drivers say 0 for "unknown".
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from clef.engines.machine import Machine
from clef.engines.models.catalogue import CATALOGUE, CatalogueModel, ModelFile, Wanted, named

Fit = Literal["gpu", "cpu", "no", "unknown"]

RESERVE_BYTES = 500_000_000
"""Left on a GPU for what else draws on it."""
USABLE_RAM = 0.75
"""Part of the main memory that a model may take."""
FIRST, SMALL = "clef-flash", "julia-1"
_MIB = 2**20
_DEVICE = re.compile(r"^\s*(\S+): (.+) \((\d+) MiB, (\d+) MiB free\)", re.MULTILINE)
_MEM_TOTAL = re.compile(r"^MemTotal:\s*(\d+) kB", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Gpu:
    """A device that llama.cpp can put a model on."""

    name: str
    """llama.cpp's name, such as ROCm0."""
    description: str
    total_bytes: int | None
    """None where the driver does not say."""
    free_bytes: int | None = None

    @property
    def usable_bytes(self) -> int | None:
        """What a model may take: some is left for the desktop."""
        return None if self.total_bytes is None else self.total_bytes - RESERVE_BYTES


@dataclass(frozen=True, slots=True)
class Memory:
    """What a model can be put into."""

    ram_bytes: int | None
    gpus: tuple[Gpu, ...] = ()

    @property
    def best_gpu(self) -> Gpu | None:
        """The device with the most memory that is known."""
        known = [gpu for gpu in self.gpus if gpu.total_bytes]
        return max(known, key=lambda gpu: gpu.total_bytes or 0, default=None)


def memory_of(machine: Machine, list_devices: Sequence[str]) -> Memory:
    """The memory of a machine; `list_devices` is the command by which its llama.cpp lists what it can use."""
    ran = machine.run(list_devices)
    return Memory(_ram(machine), devices_in(ran.output if ran else ""))


def devices_in(text: str) -> tuple[Gpu, ...]:
    """The devices in what llama-server says to --list-devices."""
    return tuple(
        Gpu(name, description, int(total) * _MIB or None, int(free) * _MIB or None)
        for name, description, total, free in _DEVICE.findall(text)
    )


def needed_bytes(model: CatalogueModel, file: ModelFile, context: int) -> int:
    """An estimate of the memory a model takes, its buffers for one request of `context` tokens included."""
    return file.size_bytes + model.bytes_per_token * context


def fit_of(model: CatalogueModel, file: ModelFile, context: int, memory: Memory) -> Fit:
    """Where a file fits: whole on a GPU, in main memory, or nowhere."""
    needed = needed_bytes(model, file, context)
    gpu = memory.best_gpu
    if gpu is not None and needed <= (gpu.usable_bytes or 0):
        return "gpu"
    if memory.ram_bytes is None:
        return "unknown"
    return "cpu" if needed <= memory.ram_bytes * USABLE_RAM else "no"


def recommended(memory: Memory, context: int) -> Wanted:
    """The one to take on this machine."""
    model = named(FIRST).model
    fitting = [file for file in model.files if fit_of(model, file, context, memory) == "gpu"]
    if fitting:
        return Wanted(model, fitting[-1])
    small = named(SMALL).model
    return Wanted(small, small.files[0])


def chosen_file(wanted: Wanted, memory: Memory, context: int) -> ModelFile:
    """The file that a name means here: the one it names, else the largest that fits, else the smallest."""
    if wanted.file is not None:
        return wanted.file
    for place in ("gpu", "cpu"):
        fitting = [file for file in wanted.model.files if fit_of(wanted.model, file, context, memory) == place]
        if fitting:
            return fitting[-1]
    return wanted.model.files[0]


def in_order_of_preference(memory: Memory, context: int) -> list[Wanted]:
    """Every file of the catalogue, the recommended one first, then what fits on a GPU, larger before smaller."""
    first = recommended(memory, context)
    rank = {"gpu": 0, "cpu": 1, "unknown": 2, "no": 3}
    every = [Wanted(model, file) for model in CATALOGUE for file in reversed(model.files)]
    every.sort(key=lambda one: rank[fit_of(one.model, one.file, context, memory)] if one.file else 0)
    return [first, *(one for one in every if one != first)]


def _ram(machine: Machine) -> int | None:
    if machine.system == "darwin":
        ran = machine.run(["sysctl", "-n", "hw.memsize"])
        return int(ran.output) if ran and ran.output.strip().isdecimal() else None
    found = _MEM_TOTAL.search(machine.read("/proc/meminfo") or "")
    return int(found[1]) * 1024 if found else None
