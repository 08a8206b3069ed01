"""Turns the cause of a death into changes that may help, in the order in which they cost least."""

from pathlib import Path
from typing import TYPE_CHECKING

from clef.engines.models.shelf import Shelf
from clef.engines.status import Change, Remedy
from clef.settings import Settings

if TYPE_CHECKING:
    from clef.engines.llama.states import Details

NEEDED = ("HSA_ENABLE_DXG_DETECTION",)
"""Variables that no card works without where they are set."""
LEAST_CONTEXT = 1024
"""Below this hardly a request fits."""


def remedies_for(details: "Details", settings: Settings, models: Shelf) -> tuple[Remedy, ...]:
    """What may help; nothing where the cause is unknown, or none that a change here would cure."""
    if details.cause == "memory":
        return tuple(_less_memory(settings, Path(details.model), models))
    if details.cause == "gpu target":
        unset, named = settings.llama_unset, [name for name in details.gpu_variables if name not in NEEDED]
        return tuple(Remedy(f"Restart without {name}", Change(unset=(*unset, name))) for name in named)
    return ()


def _less_memory(settings: Settings, model: Path, models: Shelf) -> list[Remedy]:
    found = []
    half = settings.context // 2
    if half >= LEAST_CONTEXT:
        found.append(Remedy(f"Restart with {half:,} tokens", Change(context=half)))
    if settings.images:
        found.append(Remedy("Restart without images", Change(images=False)))
    for name in models.smaller(model)[:1]:
        is_here = models.path_of(name) is not None
        label = f"Switch to {name}" if is_here else f"Get {name}, which is smaller"
        found.append(Remedy(label, Change(model=name), is_ready=is_here))
    return found
