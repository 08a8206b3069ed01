"""Turns the lines that llama.cpp writes while it starts into what is known about it: devices, layers, batch sizes.

Unknown lines are skipped, so an older or newer build leaves facts unknown and breaks nothing. What has no line is
unknown: nobody is told "GPU" because a line is missing. Formats: builds 5398 to 11549.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal

Placement = Literal["gpu", "partly", "cpu", "unknown"]


@dataclass(frozen=True, slots=True)
class Device:
    """Something that computes."""

    name: str
    """llama.cpp's name, such as ROCm0, CUDA0, Vulkan0, CPU."""
    description: str
    """The maker's name."""
    free_mib: int | None = None
    """Memory that was free before the model was loaded; None where the driver says 0, which it does when it does not
    know."""

    def __str__(self) -> str:
        return f"{self.description} ({self.name})"


@dataclass(frozen=True, slots=True)
class StartFacts:
    """What a llama.cpp said about itself while starting; None where it has said nothing."""

    build: str | None = None
    devices: tuple[Device, ...] = ()
    """Devices the model is on; before that is known, devices that were found."""
    chosen: bool = False
    """Whether `devices` are those the model is on."""
    layers_offloaded: int | None = None
    layers: int | None = None
    buffers_mib: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    """Size by "device kind", such as "ROCm0 model", "CPU compute"."""
    context: int | None = None
    """Tokens a request may have by the context of its slot."""
    batch: int | None = None
    physical_batch: int | None = None
    """Tokens computed in one pass; a joint model's whole prompt has to fit."""
    slots: int | None = None
    decision_type: str | None = None
    has_projector: bool = False
    """Whether images can be read."""

    @property
    def placement(self) -> Placement:
        """Where the model's layers are."""
        if self._found_no_gpu or self._fills_no_gpu or self.layers_offloaded == 0:
            return "cpu"
        if self.layers is None or self.layers_offloaded is None:
            return "unknown"
        return "gpu" if self.layers_offloaded >= self.layers else "partly"

    @property
    def layers_on_gpu(self) -> int | None:
        """As `layers_offloaded`, which builds with a GPU library claim to be all of them where there is no GPU."""
        return 0 if self.placement == "cpu" and self.layers is not None else self.layers_offloaded

    @property
    def _found_no_gpu(self) -> bool:
        return bool(self.devices) and all(device.name == "CPU" for device in self.devices)

    @property
    def _fills_no_gpu(self) -> bool:
        """Whether all of the model lies in main memory, as CPU_Mapped or CUDA_Host do."""
        places = [place for place, _, kind in (name.rpartition(" ") for name in self.buffers_mib) if kind == "model"]
        return bool(places) and all(place.startswith("CPU") or place.endswith("_Host") for place in places)

    @property
    def max_tokens(self) -> int | None:
        """Tokens one request may have."""
        limits = [limit for limit in (self.context, self.physical_batch) if limit]
        return min(limits) if limits else None

    @property
    def warning(self) -> str | None:
        """What a person should know about where it runs; None where all is well or unknown."""
        return " ".join(self.warnings) or None

    @property
    def warnings(self) -> tuple[str, ...]:
        """The same, each by itself."""
        return tuple(filter(None, (self._about_placement(), self._about_slots())))

    def _about_placement(self) -> str | None:
        if self.placement == "cpu" and (self.layers is None or self._found_no_gpu):
            return "It runs on the processor: this llama.cpp found no GPU."
        if self.placement == "cpu":
            return f"It runs on the processor: 0 of {self.layers} layers went to a GPU. That is 20 to 100 times slower."
        if self.placement == "partly":
            where = " and ".join(map(str, self.devices)) or "the GPU"
            return (
                f"Only {self.layers_offloaded} of {self.layers} layers fit on {where}; the rest runs on the processor."
            )
        return None

    def _about_slots(self) -> str | None:
        if (self.slots or 1) == 1 or (self.context or 0) >= (self.physical_batch or 0):
            return None
        return f"Its {self.slots} slots share the context: a request may have {self.context} tokens. Use -np 1."


class StartLog:
    """Reads lines one by one; `facts` is what they said so far."""

    def __init__(self) -> None:
        self.facts = StartFacts()

    def read(self, line: str) -> None:
        """Take one line."""
        for pattern, learn in _LINES:
            found = pattern.search(line)
            if found:
                self.facts = learn(self.facts, found)
                return


def _found_device(facts: StartFacts, line: "re.Match[str]") -> StartFacts:
    if facts.chosen:
        return facts
    return replace(facts, devices=_with(facts.devices, Device(line[1], line[2].strip(), int(line[3]) or None)))


def _chosen_device(facts: StartFacts, line: "re.Match[str]") -> StartFacts:
    earlier = facts.devices if facts.chosen else ()
    device = Device(line[1], line[2], int(line[3]) or None)
    return replace(facts, devices=_with(earlier, device), chosen=True)


def _with(devices: tuple[Device, ...], device: Device) -> tuple[Device, ...]:
    return (*(other for other in devices if other.name != device.name), device)


def _layers(facts: StartFacts, line: "re.Match[str]") -> StartFacts:
    return replace(facts, layers_offloaded=int(line[1]), layers=int(line[2]))


def _buffer(facts: StartFacts, line: "re.Match[str]") -> StartFacts:
    return replace(facts, buffers_mib=MappingProxyType({**facts.buffers_mib, f"{line[1]} {line[2]}": float(line[3])}))


def _slot(facts: StartFacts, line: "re.Match[str]") -> StartFacts:
    return replace(facts, slots=int(line[1]), context=int(line[2]))


_Learn = Callable[[StartFacts, "re.Match[str]"], StartFacts]
_LINES: tuple[tuple["re.Pattern[str]", _Learn], ...] = (
    (re.compile(r"build_info: (?!b0-)(\S+)"), lambda facts, line: replace(facts, build=line[1])),
    # common_params_print_info: build 11434 (1a2b3c4) with GNU 12.2.0 for Linux x86_64; 0 and 1 know no history
    (re.compile(r"print_info: build (\d{2,} \(\w+\))"), lambda facts, line: replace(facts, build=line[1])),
    # common_params_print_info:   - ROCm0   : AMD Radeon RX 9070 XT (16304 MiB, 16112 MiB free)
    (re.compile(r" - (\S+)\s*: (.+) \(\d+ MiB, (\d+) MiB free\)"), _found_device),
    # using device ROCm0 (AMD Radeon RX 6800) (0000:06:00.0) - 16196 MiB free; older builds have no bus number
    (re.compile(r"using device (\S+) \((.+?)\)(?: \([^()]*\))? - (\d+) MiB free"), _chosen_device),
    (re.compile(r"offloaded (\d+)/(\d+) layers to GPU"), _layers),
    (re.compile(r":\s+(\S+)\s+(model|KV|RS|compute|output) buffer size =\s*([\d.]+) MiB"), _buffer),
    (re.compile(r"\bn_batch\s+= (\d+)"), lambda facts, line: replace(facts, batch=int(line[1]))),
    (re.compile(r"\bn_ubatch\s+= (\d+)"), lambda facts, line: replace(facts, physical_batch=int(line[1]))),
    (re.compile(r"n_slots = (\d+), n_ctx_slot = (\d+)"), _slot),
    (re.compile(r"decision model type: (\S+)"), lambda facts, line: replace(facts, decision_type=line[1])),
    (re.compile(r"loaded multimodal model"), lambda facts, _: replace(facts, has_projector=True)),
)
