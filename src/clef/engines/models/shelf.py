"""Turns the catalogue, the cache and this machine's memory into models to choose from, and a name into a file.

One object that the engine, the page and the command line share, so that a download begun in one is seen in all.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from clef.engines.machine import Machine, ThisMachine
from clef.engines.models.cache import Cached
from clef.engines.models.catalogue import CATALOGUE, CatalogueModel, ModelFile, Wanted, named
from clef.engines.models.downloads import Downloads, Order, Progress
from clef.engines.models.fitting import (
    Fit,
    Memory,
    chosen_file,
    fit_of,
    in_order_of_preference,
    memory_of,
    needed_bytes,
    recommended,
)
from clef.settings import Settings


@dataclass(frozen=True, slots=True)
class Offer:
    """One file of the catalogue, as it stands on this machine."""

    model: CatalogueModel
    file: ModelFile
    needed_bytes: int
    """Estimate of the memory it takes with its buffers."""
    fit: Fit
    is_recommended: bool
    path: Path | None
    """Where it is; None unless it is here in whole."""
    progress: Progress | None
    """How its download goes; None where none was begun."""

    def to_dict(self) -> dict[str, object]:
        """As JSON."""
        model = self.model
        return {
            "name": f"{model.name}:{self.file.quantisation}",
            "model": model.name,
            "title": model.title,
            "quantisation": self.file.quantisation,
            "repo": model.repo,
            "file": self.file.file,
            "size_bytes": self.file.size_bytes,
            "needed_bytes": self.needed_bytes,
            "licence": model.licence,
            "commercial_use": model.is_free_to_use,
            "decision_type": model.decision_type,
            "parameters": model.parameters,
            "max_options": model.max_options,
            "joint": model.is_joint,
            "images": model.projector is not None,
            "about": model.about,
            "fit": self.fit,
            "recommended": self.is_recommended,
            "state": "here" if self.path else self.progress.state if self.progress else "absent",
            "path": str(self.path) if self.path else None,
            "download": self.progress.to_dict() if self.progress and not self.path else None,
        }


class Shelf:
    """The models there are and those that are here. Close it to pause its downloads."""

    def __init__(self, settings: Settings, machine: Machine | None = None) -> None:
        self._settings = settings
        self._machine = machine or ThisMachine()
        self._memory: Memory | None = None
        self.downloads = Downloads()

    @property
    def cache(self) -> Path:
        """The folder that keeps the models."""
        return self.downloads.cache

    async def memory(self) -> Memory:
        """What a model can be put into; found out once."""
        if self._memory is None:
            self._memory = await asyncio.to_thread(memory_of, self._machine, self._list_devices())
        return self._memory

    @property
    def known_memory(self) -> Memory | None:
        """The same where it has been found out already."""
        return self._memory

    async def offers(self) -> list[Offer]:
        """Every file of the catalogue, as it stands here."""
        memory, context = await self.memory(), self._settings.context
        first = recommended(memory, context)
        return [self._offer(model, file, memory, first) for model in CATALOGUE for file in model.files]

    async def order(self, name: str, *, with_projector: bool = False) -> Order:
        """What a name asks for here: without a quantisation, one that is here or on its way, else the largest that
        fits. Raises NotFound with the names there are."""
        wanted = named(name)
        file = wanted.file or self._begun(wanted.model)
        if file is None:
            file = chosen_file(wanted, await self.memory(), self._settings.context)
        return Order(wanted.model, file, with_projector)

    def path_of(self, name: str) -> Path | None:
        """Where a model is that is here in whole; without a quantisation in the name, the largest one.

        Raises NotFound for a name that is in no catalogue.
        """
        wanted = named(name)
        files = [wanted.file] if wanted.file else list(reversed(wanted.model.files))
        cached = Cached(wanted.model.repo, self.cache)
        return next((path for file in files if (path := cached.path_of(file.file))), None)

    def here(self) -> list[Wanted]:
        """What is here in whole, in the catalogue's order."""
        return [Wanted(model, file) for model in CATALOGUE for file in model.files if self._is_here(model, file)]

    async def best_here(self) -> tuple[str, Path] | None:
        """The name and path of the model that suits this machine most, of those that are here in whole."""
        here = self.here()
        if len(here) > 1:
            order = in_order_of_preference(await self.memory(), self._settings.context)
            here.sort(key=order.index)
        for wanted in here:
            path = self.path_of(wanted.name)
            if path is not None:
                return wanted.name, path
        return None

    def smaller(self, path: Path) -> list[str]:
        """Names of smaller files of the same model as a cached one, the largest of them first."""
        for model in CATALOGUE:
            names = [file.file for file in model.files]
            if path.name in names and path.is_relative_to(Cached(model.repo, self.cache).folder):
                return [f"{model.name}:{file.quantisation}" for file in reversed(model.files[: names.index(path.name)])]
        return []

    async def close(self) -> None:
        """Pause every download."""
        await self.downloads.close()

    def _offer(self, model: CatalogueModel, file: ModelFile, memory: Memory, first: Wanted) -> Offer:
        context, order = self._settings.context, Order(model, file)
        return Offer(
            model=model,
            file=file,
            needed_bytes=needed_bytes(model, file, context),
            fit=fit_of(model, file, context, memory),
            is_recommended=Wanted(model, file) == first,
            path=Cached(model.repo, self.cache).path_of(file.file),
            progress=self.downloads.progress(order) if self.downloads.known(order) else None,
        )

    def _begun(self, model: CatalogueModel) -> ModelFile | None:
        return next((file for file in reversed(model.files) if self.downloads.known(Order(model, file))), None)

    def _is_here(self, model: CatalogueModel, file: ModelFile) -> bool:
        return Cached(model.repo, self.cache).path_of(file.file) is not None

    def _list_devices(self) -> Sequence[str]:
        from clef.engines.llama.command import find_program
        from clef.errors import SettingsError

        try:
            return [*find_program(self._settings).argv, "--list-devices"]
        except SettingsError:
            return ["llama-server", "--list-devices"]
