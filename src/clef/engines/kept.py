"""Turns what a person chose on the Engine page into settings of the next start, where nothing else sets them.

One small file in CLEF_DATA_DIR. The environment and options always win over it. A choice is kept once the engine
answered with it, so that one that crashes is not tried again by the next start.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from clef.errors import ClefError
from clef.settings import PREFIX, Settings

KEPT = ("model", "context", "device", "images", "llama_unset")
"""The settings that can be chosen."""


@dataclass(frozen=True, slots=True)
class Kept:
    """One choice that is kept."""

    setting: str
    """As in the environment: CLEF_MODEL."""
    value: str
    is_overruled: bool
    """Whether the environment or an option sets it as well, and so wins at every start."""


class KeptChoices:
    """The choices of one data folder. `settings` are those of the environment and of options."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._file = settings.data_dir / "engine.json"
        self._waiting: dict[str, object] = {}
        self._keeping: asyncio.Task[None] | None = None
        self.trouble: str | None = None
        """Why something that was chosen is not used or not kept."""
        self._values: dict[str, object] = self._read()

    @property
    def names_a_model(self) -> bool:
        """Whether the model is one that was chosen here, rather than set."""
        return "model" in self._in_force()

    def applied(self) -> Settings:
        """The settings with what is kept. A model that is gone is left out, and `trouble` says so."""
        update = self._in_force()
        model = update.get("model")
        if model is not None and not Path(str(model)).exists():
            self.trouble = f"The model that was chosen on the Engine page is not there any more: {model}."
            del update["model"]
        return self._settings.model_copy(update=update)

    def keep_once(self, changes: Mapping[str, object], ready: Callable[[], Awaitable[None]]) -> None:
        """Keep changes when `ready` returns; not when it raises, and not before those that still wait."""
        self._waiting |= changes
        if self._keeping is not None:
            self._keeping.cancel()
        if self._waiting:
            self._keeping = asyncio.create_task(self._keep(ready))

    def told(self) -> tuple[Kept, ...]:
        """What is kept, in words."""
        given = self._settings.model_fields_set
        return tuple(
            Kept(f"{PREFIX}{name.upper()}", _in_words(value), name in given) for name, value in self._values.items()
        )

    def forget(self) -> None:
        """Keep nothing any more. What runs goes on as it is. Raises OSError where the file cannot be removed."""
        self._values, self._waiting, self.trouble = {}, {}, None
        self._file.unlink(missing_ok=True)

    async def close(self) -> None:
        """Wait for nothing any more."""
        if self._keeping is not None:
            self._keeping.cancel()
            await asyncio.wait({self._keeping})

    async def _keep(self, ready: Callable[[], Awaitable[None]]) -> None:
        try:
            await ready()
        except ClefError:
            return
        self._values |= self._waiting
        self._waiting = {}
        try:
            await asyncio.to_thread(self._write, json.dumps(self._values, indent=1))
        except OSError as error:
            self.trouble = f"What you chose cannot be kept for the next start: {error.strerror}."

    def _in_force(self) -> dict[str, object]:
        return {name: value for name, value in self._values.items() if name not in self._settings.model_fields_set}

    def _read(self) -> dict[str, object]:
        try:
            read = dict(json.loads(self._file.read_text()))
            checked = Settings(**{name: read[name] for name in KEPT if name in read})
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, TypeError, ValidationError):
            self.trouble = f"What was chosen on the Engine page cannot be read, and is not used: {self._file}."
            return {}
        return {name: getattr(checked, name) for name in KEPT if name in read}

    def _write(self, text: str) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        fresh = self._file.with_suffix(".new")
        fresh.write_text(text)
        fresh.replace(self._file)


def _in_words(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
