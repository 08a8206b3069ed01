"""Turns whichever engine answers, and what is known about its child, into what a person looks at: one Status.

The page and the API see this and no class of llama.cpp's. What is unknown is None, never a guess.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Any

from clef.engines.engine import EngineFacts, EngineKind, Phase
from clef.engines.kept import Kept

if TYPE_CHECKING:
    from clef.engines.llama.loading import Loading
    from clef.engines.llama.states import Details


@dataclass(frozen=True, slots=True)
class Change:
    """What is to be different after a restart; None leaves it as it is."""

    model: str | None = None
    """Path of a .gguf file, or a name of the catalogue that is on this machine."""
    context: int | None = None
    images: bool | None = None
    unset: tuple[str, ...] | None = None
    """Environment variables that llama.cpp is started without."""
    device: str | None = None
    """As CLEF_DEVICE."""

    def to_dict(self) -> dict[str, object]:
        """As JSON, without what stays."""
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True, slots=True)
class Remedy:
    """A change that may help, and what to call it."""

    label: str
    change: Change
    is_ready: bool = True
    """Whether it can be done at once; a model that has to be fetched first cannot."""


@dataclass(frozen=True, slots=True)
class Device:
    """Something the model runs on."""

    name: str
    description: str
    free_mib: int | None
    """Before the model was loaded."""


@dataclass(frozen=True, slots=True)
class Child:
    """A llama.cpp that clef started, or would."""

    state: str
    program: str
    version: str | None
    build: str | None
    command_line: str
    pid: int | None
    starts: int
    model_path: str
    devices: tuple[Device, ...]
    placement: str
    """gpu, partly, cpu or unknown."""
    layers: int | None
    layers_offloaded: int | None
    buffers_mib: Mapping[str, float]
    context: int | None
    batch: int | None
    physical_batch: int | None
    slots: int | None
    decision_type: str | None
    reads_images: bool
    gpu_variables: Mapping[str, str]
    warnings: tuple[str, ...]
    loading: "Loading | None" = None
    """How far it has read its model; None where that is not known, and while it does not load."""

    @property
    def restarts(self) -> int:
        """How often it was started again."""
        return max(0, self.starts - 1)


def child_of(details: "Details") -> Child:
    """The same for everyone outside of llama/."""
    start = details.start
    return Child(
        state=details.state,
        program=details.program,
        version=details.version,
        build=start.build,
        command_line=details.command_line,
        pid=details.pid,
        starts=details.starts,
        model_path=details.model,
        devices=tuple(Device(device.name, device.description, device.free_mib) for device in start.devices),
        placement=start.placement,
        layers=start.layers,
        layers_offloaded=start.layers_on_gpu,
        buffers_mib=dict(start.buffers_mib),
        context=start.context,
        batch=start.batch,
        physical_batch=start.physical_batch,
        slots=start.slots,
        decision_type=start.decision_type,
        reads_images=start.has_projector,
        gpu_variables=dict(details.gpu_variables),
        warnings=details.warnings,
        loading=details.loading,
    )


@dataclass(frozen=True, slots=True)
class Speed:
    """How long the last decisions took."""

    recent_ms: tuple[float, ...] = ()
    """Oldest first; what they waited for each other included."""

    @property
    def median_ms(self) -> float | None:
        """The middle one; None where nothing was decided yet."""
        return median(self.recent_ms) if self.recent_ms else None


@dataclass(frozen=True, slots=True)
class Status:
    """Everything there is to say about the engine now."""

    facts: EngineFacts
    state: str
    """Finer than the phase: downloading, restarting, stopping, gave up, …"""
    actions: tuple[str, ...]
    """What can be asked of it now: start, stop, restart."""
    speed: Speed = field(default_factory=Speed)
    child: Child | None = None
    download: Mapping[str, object] | None = None
    """The model it waits for."""
    remedies: Sequence[Remedy] = ()
    """What may help where it failed, most promising first."""
    kept: tuple[Kept, ...] = ()
    """What was chosen on the page and holds for the next start as well."""

    @property
    def kind(self) -> EngineKind:
        """Who answers."""
        return self.facts.kind

    @property
    def phase(self) -> Phase:
        """Whether it answers."""
        return self.facts.phase

    def to_dict(self) -> dict[str, Any]:
        """As JSON; has no secret."""
        facts, child = self.facts, self.child
        return {
            "engine": facts.kind,
            "phase": facts.phase,
            "state": self.state,
            "reachable": facts.reachable,
            "model": facts.model,
            "fingerprint": facts.fingerprint,
            "address": facts.address,
            "max_tokens": facts.max_tokens,
            "message": facts.message,
            "hint": facts.hint,
            "actions": list(self.actions),
            "remedies": [
                {"label": one.label, "change": one.change.to_dict(), "ready": one.is_ready} for one in self.remedies
            ],
            "kept": [asdict(one) for one in self.kept],
            "download": self.download,
            "speed": {
                "median_ms": None if self.speed.median_ms is None else round(self.speed.median_ms, 2),
                "recent_ms": [round(value, 2) for value in self.speed.recent_ms],
            },
            "llama": None if child is None else asdict(child) | {"restarts": child.restarts},
        }
