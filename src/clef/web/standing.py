"""Turns the status of the engine into the few words and the dot that stand on every page."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from clef.engines.engine import Phase
from clef.engines.status import Child, Status
from clef.web.engine_view import placement_of, time_left
from clef.web.words import ENGINES, PHASES, milliseconds, percent


@dataclass(frozen=True, slots=True)
class Standing:
    """Who answers, where and how fast, or how far it is."""

    phase: Phase
    model: str
    """Its name, or what is known in its place."""
    rest: str
    """What is left out first where there is no room: the device and the speed, or how far it is."""
    place: str
    """Where the layers are: gpu, partly, cpu, or nothing where that is not known or not ours."""
    place_words: str


def standing_of(status: Status) -> Standing:
    """The engine as it is now, in a few words."""
    phase, download = status.phase, status.download
    if download is not None:
        return Standing(phase, f"Downloading {download['name']}", _fetched(download), "", "")
    model = (status.facts.model or "").rsplit("/", 1)[-1].removesuffix(".gguf")
    if phase != "ready":
        loading = status.child.loading if status.child else None
        words = f"{model}: {PHASES[phase]}" if model else PHASES[phase]
        return Standing(phase, words, loading.in_short if loading else "", "", "")
    median, place = status.speed.median_ms, placement_of(status.child) if status.child else None
    known = place is not None and place.kind in ("gpu", "partly", "cpu")
    rest = [_device(status.child) if status.child else "", "" if median is None else milliseconds(median)]
    return Standing(
        phase,
        model or ENGINES[status.kind],
        " · ".join(filter(None, rest)),
        place.kind if place and known else "",
        place.words if place and known else "",
    )


def _device(child: Child) -> str:
    """What the model runs on, or nothing while llama.cpp has not said."""
    if child.placement == "cpu":
        return "processor"
    return " + ".join(device.description for device in child.devices) if child.placement in ("gpu", "partly") else ""


def _fetched(download: Mapping[str, Any]) -> str:
    size = download["size_bytes"]
    share = percent(download["done_bytes"] / size, 0) if size else ""
    return " · ".join(filter(None, (share, time_left(download))))
