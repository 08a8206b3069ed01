"""Turns the status of the engine and the models there are into what the Engine page shows, in words and figures."""

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from clef.engines.doctor.finding import Finding, Level
from clef.engines.durations import duration
from clef.engines.llama.devices import AUTO, NONE
from clef.engines.models.catalogue import CatalogueModel
from clef.engines.models.downloads import Progress
from clef.engines.models.fitting import Gpu, Memory
from clef.engines.models.shelf import Offer
from clef.engines.opening import ChosenEngine
from clef.engines.status import Child, Status
from clef.web.words import ENGINES, PHASES, counted, milliseconds

STATES = {
    "restarting": "starting again",
    "gave up": "given up",
    "stopping": "stopping",
    "stopped": "stopped",
    "off": "off",
}
"""Words for the states that are finer than a phase."""
MEANINGS = {
    "starting": "It is being started. Decisions wait until it is ready.",
    "restarting": "It is being started again; what is in line is done afterwards.",
    "loading": "The model is being read into memory. Decisions wait until that is done.",
    "ready": "It answered a question, and will answer yours.",
    "failed": "It does not run, and will not without a change.",
    "gave up": "It ended too often, so clef no longer starts it by itself.",
    "stopping": "It is being ended.",
    "stopped": "Nothing runs, and nothing is held in memory. Start it when you need it.",
    "off": "Nothing runs. Start it when you need it.",
}
ORIGINS = {
    "builtin": "a part of clef, in the same process",
    "upstream": "a server that was already there; clef uses it and never stops it",
    "llama": "a llama.cpp that clef started",
}
FITS = {"gpu": "fits your GPU", "cpu": "fits main memory", "no": "too large for this machine", "unknown": "may fit"}
LEVELS: dict[Level, tuple[str, str]] = {
    "fail": ("error", "will not work"),
    "warn": ("unsure", "look at this"),
    "unknown": ("help", "not known"),
    "ok": ("right", "in order"),
}
"""Icon and words of each level of a finding, worst first."""
CONTEXTS = (1024, 2048, 4096, 8192, 16384, 32768)
LAST_LINES = 6
"""Of the log, shown with a failure."""
_QUANTISATION = re.compile(r"(?:^|[-._ ])(i?q\d\w*|bf16|f16|f32|mxfp4\w*|tq\d\w*)(?=[-._ ]|$)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Placement:
    """Where the layers of the model are."""

    kind: str
    """gpu, partly, cpu, unknown, or past where nothing runs now."""
    words: str
    icon: str


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """The file that is run."""

    path: Path
    quantisation: str | None
    size_bytes: int | None
    """None where there is no such file."""


@dataclass(frozen=True, slots=True)
class Setup:
    """What a llama.cpp of ours can be run with."""

    device: str
    """As CLEF_DEVICE."""
    context: int
    gpus: tuple[Gpu, ...]
    """What there is to choose from; none until the machine was looked at."""

    @property
    def devices(self) -> Mapping[str, str]:
        """Words for every device by its name; none where there is nothing to choose."""
        if not self.gpus and self.device == AUTO:
            return {}
        gpus = {gpu.name: f"{gpu.name}: {gpu.description}, {_memory(gpu.total_bytes)}" for gpu in self.gpus}
        known = {AUTO: "auto: llama.cpp chooses", **gpus, NONE: "none: the processor"}
        return known if self.device in known else {self.device: self.device, **known}

    @property
    def contexts(self) -> Sequence[int]:
        """Tokens that can be chosen."""
        return sorted({*CONTEXTS, self.context})


@dataclass(frozen=True, slots=True)
class EngineView:
    """The engine as the page shows it."""

    status: Status
    model: ModelFacts | None
    last_lines: Sequence[str]
    """The end of the log where it failed."""
    setup: Setup | None = None
    """None for an engine that clef does not run."""

    @property
    def headline(self) -> str:
        """Who it is and what it does."""
        status = self.status
        if status.download is not None:
            return f"Downloading {status.download['name']}"
        if status.child is None and status.phase in ("starting", "off"):
            return "Looking for an engine" if status.phase == "starting" else "The engine is off"
        return f"{_capital(ENGINES[status.kind])}: {STATES.get(status.state, PHASES[status.phase])}"

    @property
    def lead(self) -> str | None:
        """What that means."""
        status = self.status
        if status.download is not None:
            return "The model is fetched before the engine can start. What has come is kept if you stop."
        return status.facts.message or MEANINGS.get(status.state)

    @property
    def has_failed(self) -> bool:
        """Whether something is to be done before it answers."""
        return self.status.phase == "failed"

    @property
    def placement(self) -> Placement | None:
        """Where the model is, or was when it last ran; None for what clef did not start."""
        child = self.status.child
        if child is None:
            return None
        place = placement_of(child)
        if place.kind == "unknown" or self.status.phase not in ("off", "failed"):
            return place
        return Placement("past", f"last time {place.words}", "help")

    @property
    def speed_words(self) -> str:
        """The last decisions, for who does not see the line."""
        recent = self.status.speed.recent_ms
        if not recent:
            return "Nothing has been decided yet"
        low, high = milliseconds(min(recent)), milliseconds(max(recent))
        return f"The last {counted(len(recent), 'decision')}, oldest first: {low} to {high}"


async def view_of(engine: ChosenEngine) -> EngineView:
    """The engine as it is now."""
    status = await engine.status()
    child = status.child
    model = await asyncio.to_thread(_model_facts, Path(child.model_path)) if child and child.model_path else None
    lines = engine.log_tail(LAST_LINES) if status.phase == "failed" else ()
    return EngineView(status, model, lines, _setup_of(engine) if child and "restart" in status.actions else None)


def _setup_of(engine: ChosenEngine) -> Setup:
    memory = engine.models.known_memory
    return Setup(engine.settings.device, engine.settings.context, memory.gpus if memory else ())


def placement_of(child: Child) -> Placement:
    """Where the layers are, in words; what is not known is called so."""
    count = "" if child.layers is None else f"{child.layers_offloaded or 0} of {child.layers} layers"
    match child.placement:
        case "gpu":
            return Placement("gpu", f"on the GPU: {count}", "right")
        case "partly":
            return Placement("partly", f"partly on the GPU: {count}; the rest on the processor", "unsure")
        case "cpu":
            none = f"none of it on a GPU: {count}" if count else "none of it on a GPU: llama.cpp found none"
            return Placement("cpu", none, "error")
    return Placement("unknown", "unknown: llama.cpp has not said where the model is", "help")


@dataclass(frozen=True, slots=True)
class Shown:
    """A model with its files."""

    model: CatalogueModel
    offers: tuple[Offer, ...]

    @property
    def is_recommended(self) -> bool:
        """Whether one of its files is the one to take on this machine."""
        return any(offer.is_recommended for offer in self.offers)

    @property
    def is_near(self) -> bool:
        """Whether one of its files is here, or on its way."""
        return any(offer.path or offer.progress for offer in self.offers)

    @property
    def may_fit(self) -> bool:
        """Whether one of its files can be run here."""
        return any(offer.fit != "no" for offer in self.offers)


@dataclass(frozen=True, slots=True)
class ModelsView:
    """The models there are, the recommended one first."""

    fitting: Sequence[Shown]
    too_large: Sequence[Shown]
    memory: Memory
    cache: Path
    running: str | None
    """Path of the model that is used now."""

    @property
    def is_busy(self) -> bool:
        """Whether anything is on its way."""
        return any(
            offer.progress is not None and offer.progress.state in ("fetching", "verifying") and offer.path is None
            for shown in (*self.fitting, *self.too_large)
            for offer in shown.offers
        )

    @property
    def machine(self) -> str:
        """What there is to put a model into."""
        ram = self.memory.ram_bytes
        said = [f"{gpu.description} with {_memory(gpu.total_bytes)}" for gpu in self.memory.gpus]
        return " · ".join([*(said or ["no GPU that llama.cpp can use"]), f"{_memory(ram)} of main memory"])


async def models_of(engine: ChosenEngine) -> ModelsView:
    """The models as they stand here; the first look at a machine takes a moment."""
    shelf = engine.models
    offers, memory = await shelf.offers(), await shelf.memory()
    child = (await engine.status()).child
    grouped = [Shown(files[0].model, files) for files in _by_model(offers)]
    grouped.sort(key=lambda shown: not shown.is_recommended)  # by nothing that changes under the hand
    return ModelsView(
        fitting=[shown for shown in grouped if shown.may_fit or shown.is_near],
        too_large=[shown for shown in grouped if not (shown.may_fit or shown.is_near)],
        memory=memory,
        cache=shelf.cache,
        running=child.model_path if child and child.state not in ("off", "stopped") else None,
    )


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """Findings, worst first."""
    return sorted(findings, key=lambda finding: list(LEVELS).index(finding.level))


def summary(findings: Sequence[Finding]) -> str:
    """How many findings there are of each level."""
    levels = [finding.level for finding in findings]
    said = [f"{levels.count(level)} {words}" for level, (_, words) in LEVELS.items() if level in levels]
    return _capital(", ".join(said))


def size(count: float) -> str:
    """Bytes as the pages of models say them."""
    if count < 1e6:
        return f"{count / 1e3:.0f} kB"
    return f"{count / 1e6:.0f} MB" if count < 1e9 else f"{count / 1e9:.1f} GB"


def short_path(path: Path) -> str:
    """A path as a person writes it: what lies in their own folder starts with ~."""
    home = Path.home()
    return str("~" / path.relative_to(home)) if path.is_relative_to(home) else str(path)


def mebibytes(count: float) -> str:
    """A buffer of llama.cpp."""
    if count < 1024:
        return f"{count:.0f} MiB" if count >= 10 else f"{count:.1f} MiB"
    return f"{count / 1024:.1f} GiB"


def time_left(progress: Progress | Mapping[str, Any]) -> str:
    """How a download goes, in words."""
    told: Mapping[str, Any] = progress.to_dict() if isinstance(progress, Progress) else progress
    if told["state"] == "verifying":
        return "all of it is here; it is being checked"
    if told["state"] == "paused":
        return "paused; what came is kept"
    seconds = told["seconds_left"]
    if seconds is None:
        return "waiting for data"
    return f"{duration(seconds)} left at {size(told['bytes_per_s'])} a second"


def _memory(count: int | None) -> str:
    return "unknown memory" if count is None else f"{count / 2**30:.0f} GB"


def _by_model(offers: Iterable[Offer]) -> list[tuple[Offer, ...]]:
    return [tuple(group) for _, group in groupby(offers, key=lambda offer: offer.model.name)]


def _model_facts(path: Path) -> ModelFacts:
    found = _QUANTISATION.search(path.name.removesuffix(".gguf"))
    try:
        length = path.stat().st_size
    except OSError:
        length = None
    return ModelFacts(path, found[1].upper() if found else None, length)


def _capital(text: str) -> str:
    return text if text.startswith("llama") else text[:1].upper() + text[1:]
