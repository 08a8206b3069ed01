"""Turns settings into the engine that answers: a server that is there, a llama.cpp of ours, or the built-in model.

CLEF_ENGINE   who answers
auto          a model that was chosen on the Engine page, unless CLEF_UPSTREAM is set; else a decision server at
              CLEF_UPSTREAM, if one answers or is loading there; else CLEF_MODEL on llama.cpp; else a model of the
              catalogue that is on this machine; else the built-in model, which says why it was chosen
upstream      the server at CLEF_UPSTREAM, whatever it answers
llama         CLEF_MODEL, or a model that is on this machine, on llama.cpp
builtin       the built-in model

A server that was there is used and never stopped; anything else at that address is named and left alone.
CLEF_MANAGE_SERVER=0 starts nothing. A model is downloaded only where CLEF_MODEL names it.
"""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Coroutine
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from clef.decisions.examples import Reply, Request
from clef.engines.builtin import BuiltinEngine
from clef.engines.engine import EngineFacts, EngineKind, OwnedEngine
from clef.engines.kept import KeptChoices
from clef.engines.looking import look, upstream_of
from clef.engines.models.catalogue import is_name
from clef.engines.models.downloads import Order
from clef.engines.models.shelf import Shelf
from clef.engines.remedies import remedies_for
from clef.engines.status import Change, Speed, Status, child_of
from clef.errors import InputError, SettingsError, Unavailable
from clef.settings import Settings

if TYPE_CHECKING:  # the HTTP client costs 0.15 s of start-up and is not needed where no server listens
    from clef.engines.llama.supervisor import LlamaEngine

E = TypeVar("E", bound=OwnedEngine)
MOMENT_S = 0.2
"""A choice that is made this soon is waited for, so that a first page shows who answers at once."""
WARM_AFTER_S = 0.3
"""How long after its choice the built-in model is loaded, unless a decision comes first."""
SPEEDS = 60
"""Decisions whose time is kept."""
OFF = "The engine is off, as you asked."


class ChosenEngine:
    """The engine that the settings lead to. It exists at once; looking for a server goes on behind it.

    Until the choice is made it is `starting`, and decisions wait for it; they do not wait for a download.
    """

    def __init__(self, settings: Settings, engine: OwnedEngine | None = None) -> None:
        """`engine` is one that is chosen already."""
        self._kept = KeptChoices(settings)
        self._settings = self._kept.applied()
        self._engine = engine
        self._given = engine
        self._llama: LlamaEngine | None = None
        self._note: str | None = None
        self._choosing: asyncio.Task[OwnedEngine] | None = None
        self._warming: asyncio.Task[None] | None = None
        self._acting = asyncio.Lock()
        self._going_on: asyncio.Task[None] | None = None
        self._fetching: Order | None = None
        self._is_off = False
        self._has_llama = asyncio.Event()
        self._speeds: deque[float] = deque(maxlen=SPEEDS)
        self.models = Shelf(settings)

    def start(self) -> None:
        """Begin to choose. Must be called in the event loop that will use the engine."""
        if self._choosing is None:
            self._choosing = asyncio.create_task(self._choose())

    async def chosen(self) -> OwnedEngine:
        """The engine, once the choice is made. Raises SettingsError where the settings lead to none."""
        self.start()
        assert self._choosing is not None
        return await asyncio.shield(self._choosing)

    async def facts(self) -> EngineFacts:
        """The chosen engine's facts, with the reason for the choice where it needs one."""
        if self._is_off:
            return EngineFacts(self._kind_wanted(), "off", message=OFF)
        if self._choosing is None or not (await asyncio.wait({self._choosing}, timeout=MOMENT_S))[0]:
            return EngineFacts(self._kind_wanted(), "starting", message=self._occupation())
        try:
            facts = await self._choosing.result().facts()
        except SettingsError as error:
            return EngineFacts(self._kind_wanted(), "failed", message=error.message, hint=error.hint)
        said = (self._kept.trouble, self._note, facts.message)
        return replace(facts, message=" ".join(filter(None, said)) or None)

    async def decide(self, request: Request) -> Reply:
        """Answer with the chosen engine."""
        if self._is_off:
            raise Unavailable(OFF, phase="off")
        if self._fetching is not None:
            raise Unavailable(self._occupation(), phase="starting", retry_after_s=10)
        try:
            engine = await self.chosen()
        except SettingsError as error:
            raise Unavailable(error.message, hint=error.hint, phase="failed") from error
        started = time.perf_counter()
        reply = await engine.decide(request)
        self._speeds.append((time.perf_counter() - started) * 1000)
        return reply

    async def count_tokens(self, request: Request) -> int | None:
        """Count with the chosen engine; None while there is none to ask."""
        if self._is_off or self._fetching is not None:
            return None
        return await (await self.chosen()).count_tokens(request)

    async def close(self) -> None:
        """End the choice and the chosen engine; downloads are paused. A second Ctrl+C meanwhile ends it at once."""
        await self.models.close()
        await self._kept.close()
        for task in (self._going_on, self._choosing, self._warming):
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        if self._llama is not None:
            from clef.engines.llama.impatience import hurried_by_signals

            with hurried_by_signals(self.hurry):
                await self._llama.close()
        if self._engine is not None:
            await self._engine.close()

    def hurry(self) -> None:
        """End a llama.cpp of ours without its grace."""
        if self._llama is not None:
            self._llama.hurry()

    async def status(self) -> Status:
        """Everything there is to say about the engine now."""
        facts, llama = await self.facts(), self._llama
        details = llama.details() if llama is not None and self._engine is llama else None
        child = child_of(details) if details else None
        download = self.models.downloads.progress(self._fetching).to_dict() if self._fetching else None
        state = "downloading" if download else details.state if details and not self._is_off else facts.phase
        remedies = remedies_for(details, llama.settings, self.models) if details and llama else ()
        speed = Speed(tuple(self._speeds))
        return Status(facts, state, self._actions(facts), speed, child, download, remedies, self._kept.told())

    async def turn_on(self) -> None:
        """Begin to start what is off or failed; does nothing while it answers or comes up. Raises SettingsError."""
        async with self._acting:
            if self._llama is not None and self._runs_llama() and not self._is_off:
                await self._llama.start()
            elif self._is_off or (await self.facts()).phase in ("off", "failed"):
                await self._choose_again(self._choose())

    async def turn_off(self) -> None:
        """Begin to stop a llama.cpp of ours, or what would lead to one. Raises InputError for what is not ours."""
        async with self._acting:
            if self._choosing is not None and not self._choosing.done():
                if self._fetching is not None:
                    await self.models.downloads.pause(self._fetching)
                await self._forget()
                self._is_off = True
            elif self._llama is not None and self._runs_llama():
                self._llama.begin_stop()
            else:
                raise self._not_ours("stop")

    async def restart(self, change: Change) -> None:
        """Begin to run with something changed; who asks meanwhile is told to come back. Settings that cannot work
        stop nothing. Raises SettingsError for them, InputError for a model that is not here or an engine not ours."""
        async with self._acting:
            changes = self._changes(change)
            settings = self.settings.model_copy(update=changes)
            if settings.model and is_name(settings.model):
                path = self.models.path_of(settings.model)
                settings = settings.model_copy(update={"model": str(path or settings.model)})
            if change.model is not None:
                self._note = None
            if self._llama is not None and self._runs_llama():
                await self._at_once_or_later(self._llama.restart(settings))
            elif settings.model:
                from clef.engines.llama.command import check

                await asyncio.to_thread(check, settings)
                await self._choose_again(self._run_llama(settings))
            else:
                raise self._not_ours("restart")
            self._kept.keep_once(changes, self._wait_changed)

    @property
    def settings(self) -> Settings:
        """What llama.cpp runs with, or would: as it was set, as it was chosen in earlier runs, and as it is now."""
        return self._llama.settings if self._llama is not None else self._settings

    async def forget(self) -> None:
        """Keep nothing of what was chosen for the next start; what runs goes on."""
        await asyncio.to_thread(self._kept.forget)

    def log_since(self, life: int, finished: int) -> tuple[int, int, list[str]]:
        """Where the output of a llama.cpp of ours is now, and the lines after such a place; see `log_tail`."""
        return self._llama.log_since(life, finished) if self._llama is not None else (0, 0, [])

    def log_tail(self, count: int) -> list[str]:
        """The last lines a llama.cpp of ours wrote."""
        return self._llama.log_tail(count) if self._llama is not None else []

    async def until_lost(self) -> EngineFacts:
        """Return when a llama.cpp of ours has failed or been given up, with why; never for any other engine."""
        await self._has_llama.wait()
        assert self._llama is not None  # once there is one it stays, whatever answers in between
        await self._llama.wait_lost()
        return await self.facts()

    # What follows makes the choice.

    async def _choose(self) -> OwnedEngine:
        if self._given is not None:
            return self._take(self._given)
        self._settings = self._kept.applied()
        wanted = self._settings.engine
        if wanted == "builtin":
            return self._builtin()
        if wanted == "upstream":
            return self._take(upstream_of(self._settings))
        if wanted == "auto":
            is_preferred = self._kept.names_a_model and "upstream" not in self._settings.model_fields_set
            found = None if is_preferred else await look(self._settings)
            if found is not None and found.server is not None:
                return self._take(found.server)
            self._note = found.note if found is not None else None
            if not self._settings.manage_server:
                return self._builtin()
        settings = await self._with_a_model()
        if settings is not None:
            return await self._run_llama(settings)
        if wanted == "auto":
            return self._builtin()
        hint = "give --model PATH.gguf or set CLEF_MODEL, or download one: `clef models`"
        raise SettingsError("llama.cpp needs a model, and none is set", hint=hint)

    def _builtin(self) -> OwnedEngine:
        """The built-in model, its weights being read behind it so that the first decision need not wait, but not
        beside the first page, which would.
        """
        engine = self._take(BuiltinEngine())

        async def warm() -> None:
            await asyncio.sleep(WARM_AFTER_S)
            await asyncio.to_thread(engine.load)

        self._warming = asyncio.create_task(warm())
        return engine

    async def _with_a_model(self) -> Settings | None:
        """The settings with the path of a model: the one that is set, fetched where it is named and not here, else
        one that is here. None where there is none."""
        given = self._settings.model
        if not given:
            here = await self.models.best_here()
            if here is None:
                return None
            name, path = here
            self._note = f"{name} was found among your downloads."
            return self._settings.model_copy(update={"model": str(path)})
        if not is_name(given):
            return self._settings
        path = self.models.path_of(given) or await self._fetch(given)
        return self._settings.model_copy(update={"model": str(path)})

    async def _fetch(self, name: str) -> Path:
        """The path of a model that is downloaded now. Raises SettingsError where that does not work."""
        from clef.engines.llama.command import check_address

        if not self._settings.manage_server:
            raise SettingsError("CLEF_MANAGE_SERVER=0 forbids starting llama.cpp", hint="set CLEF_UPSTREAM to a server")
        await asyncio.to_thread(check_address, self._settings)
        order = await self.models.order(name, with_projector=self._settings.images)
        self._fetching = order
        try:
            self.models.downloads.start(order)
            end = await self.models.downloads.wait(order)
        finally:
            self._fetching = None
        paths = self.models.downloads.paths(order)
        if paths is None:
            hint = end.hint or "start the engine again to go on with it"
            raise SettingsError(f"{order.name} was not downloaded: {end.message or end.state}", hint=hint)
        return paths[0]

    async def _run_llama(self, settings: Settings) -> OwnedEngine:
        from clef.engines.llama.supervisor import LlamaEngine

        if self._llama is not None:
            self._take(self._llama)
            await self._llama.restart(settings)
            return self._llama
        self._llama = self._take(LlamaEngine(settings))
        self._has_llama.set()
        await self._llama.start()
        return self._llama

    def _take(self, engine: E) -> E:
        self._engine = engine
        return engine

    def _kind_wanted(self) -> EngineKind:
        wanted = self._settings.engine
        return "upstream" if wanted == "auto" else wanted

    def _occupation(self) -> str:
        """What goes on before there is an engine."""
        if self._fetching is None:
            return f"Looking for a server at {self._settings.upstream}"
        return self.models.downloads.progress(self._fetching).in_words

    # What follows changes it.

    def _changes(self, change: Change) -> dict[str, object]:
        """A change as settings, a model's name replaced by its path. Raises InputError for one that is not here."""
        update: dict[str, object] = change.to_dict()
        if "unset" in update:
            update["llama_unset"] = update.pop("unset")
        if change.model is not None and is_name(change.model):
            path = self.models.path_of(change.model)
            if path is None:
                raise InputError(f"{change.model} is not on this machine", hint="download it first")
            update["model"] = str(path)
        return update

    async def _wait_changed(self) -> None:
        """Return when what was changed answers. Raises Unavailable or SettingsError where it does not."""
        if self._going_on is not None:
            await asyncio.wait({self._going_on})
        await self.chosen()
        assert self._llama is not None
        await self._llama.wait_ready()

    async def _choose_again(self, choice: Coroutine[Any, Any, OwnedEngine]) -> None:
        """Put a new choice in the place of the old one; its errors show in `facts`."""
        await self._forget()
        self._is_off = False
        self._choosing = asyncio.create_task(choice)
        await asyncio.wait({self._choosing}, timeout=MOMENT_S)

    async def _forget(self) -> None:
        """End the choice under way, and close what it led to."""
        if self._choosing is not None:
            self._choosing.cancel()
            await asyncio.gather(self._choosing, return_exceptions=True)
        engine, self._engine, self._choosing = self._engine, None, None
        if engine is not None:
            await engine.close()

    async def _at_once_or_later(self, work: Coroutine[Any, Any, None]) -> None:
        """Let something go on that may take seconds; what it raises in its first moment is raised."""
        self._going_on = asyncio.create_task(work)
        done, _ = await asyncio.wait({self._going_on}, timeout=MOMENT_S)
        if done:
            self._going_on.result()
        else:
            self._going_on.add_done_callback(_look_at)

    def _runs_llama(self) -> bool:
        """Whether the choice was made, and is a llama.cpp of ours."""
        choice = self._choosing
        made = choice is not None and choice.done() and not choice.cancelled() and choice.exception() is None
        return made and self._llama is not None and self._engine is self._llama

    def _actions(self, facts: EngineFacts) -> tuple[str, ...]:
        if not self._runs_llama():
            if facts.phase in ("off", "failed"):
                return ("start",)
            return ("stop",) if facts.phase == "starting" else ()
        return ("start", "restart") if facts.phase in ("off", "failed") else ("stop", "restart")

    def _not_ours(self, action: str) -> InputError:
        if isinstance(self._engine, BuiltinEngine):
            hint = "choose a model to run on llama.cpp"
            return InputError(f"the built-in model is a part of clef: there is nothing to {action}", hint=hint)
        message = f"clef did not start the server at {self._settings.upstream}, so it does not {action} it"
        return InputError(message, hint=f"{action} it where it was started")


def _look_at(task: "asyncio.Task[None]") -> None:
    """Take note of how a task ended, so that nobody is told that it was not looked at; the state shows it."""
    with contextlib.suppress(asyncio.CancelledError):
        task.exception()
