"""Turns settings into the engine that answers: a server that is there, a llama.cpp of ours, or the built-in model.

CLEF_ENGINE   who answers
auto          a decision server at CLEF_UPSTREAM, if one answers or is loading there; else CLEF_MODEL on
              llama.cpp; else the built-in model, which says why it was chosen
upstream      the server at CLEF_UPSTREAM, whatever it answers
llama         CLEF_MODEL on llama.cpp
builtin       the built-in model
"""

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

from clef.decisions.examples import Reply, Request
from clef.engines.builtin import BuiltinEngine
from clef.engines.engine import EngineFacts, EngineKind, OwnedEngine
from clef.errors import SettingsError, Unavailable
from clef.settings import Settings

if TYPE_CHECKING:  # the HTTP client costs 0.15 s of start-up and is not needed where no server listens
    from clef.engines.upstream import UpstreamEngine

E = TypeVar("E", bound=OwnedEngine)
CONNECT_TIMEOUT_S = 1.0
MOMENT_S = 0.2
"""A choice that is made this soon is waited for, so that a first page shows who answers at once."""
LOOK_TIMEOUT_S = 10.0
"""A server that is there gets this long for its first decision before the next choice is taken."""


class ChosenEngine:
    """The engine that the settings lead to. It exists at once; looking for a server goes on behind it.

    Until the choice is made it is `starting`, and decisions wait for it.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._engine: OwnedEngine | None = None
        self._note: str | None = None
        self._choosing: asyncio.Task[OwnedEngine] | None = None
        self._warming: asyncio.Task[None] | None = None

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
        if self._choosing is None or not (await asyncio.wait({self._choosing}, timeout=MOMENT_S))[0]:
            message = f"Looking for a server at {self._settings.upstream}"
            return EngineFacts(self._kind_wanted(), "starting", message=message)
        try:
            facts = await self._choosing.result().facts()
        except SettingsError as error:
            return EngineFacts(self._kind_wanted(), "failed", message=error.message, hint=error.hint)
        return replace(facts, message=" ".join(filter(None, (self._note, facts.message))) or None)

    async def decide(self, request: Request) -> Reply:
        """Answer with the chosen engine."""
        try:
            engine = await self.chosen()
        except SettingsError as error:
            raise Unavailable(error.message, hint=error.hint, phase="failed") from error
        return await engine.decide(request)

    async def count_tokens(self, request: Request) -> int | None:
        """Count with the chosen engine."""
        return await (await self.chosen()).count_tokens(request)

    async def close(self) -> None:
        """End the choice and the chosen engine."""
        if self._choosing is None:
            return
        self._choosing.cancel()
        await asyncio.gather(self._choosing, return_exceptions=True)
        if self._engine is not None:
            await self._engine.close()

    async def _choose(self) -> OwnedEngine:
        wanted = self._settings.engine
        if wanted == "builtin":
            return self._builtin()
        if wanted == "llama":
            return await self._llama()
        if wanted == "upstream":
            return self._take(self._upstream())
        if await self._server_answers():
            assert self._engine is not None
            return self._engine
        if self._settings.model and self._settings.manage_server:
            return await self._llama()
        return self._builtin()

    def _builtin(self) -> OwnedEngine:
        """The built-in model, its weights being read behind it so that the first decision need not wait."""
        engine = self._take(BuiltinEngine())
        self._warming = asyncio.create_task(asyncio.to_thread(engine.load))
        return engine

    async def _server_answers(self) -> bool:
        """Whether a decision server is at the upstream address, or is loading its model there."""
        address = self._settings.upstream
        if not await _listens(address):
            if "upstream" in self._settings.model_fields_set:
                self._note = f"Nothing answers at {address} (CLEF_UPSTREAM)."
            return False
        server = self._take(self._upstream())
        facts = await server.probe(LOOK_TIMEOUT_S)
        if facts.phase in ("ready", "loading"):
            return True
        await server.close()
        self._engine = None
        self._note = f"The server at {address} is not used: {facts.message}."
        return False

    async def _llama(self) -> OwnedEngine:
        from clef.engines.llama.supervisor import LlamaEngine

        if not self._settings.model:
            hint = "give --model PATH.gguf or set CLEF_MODEL"
            raise SettingsError("llama.cpp needs a model, and none is set", hint=hint)
        engine = self._take(LlamaEngine(self._settings))
        await engine.start()
        return engine

    def _take(self, engine: E) -> E:
        self._engine = engine
        return engine

    def _upstream(self) -> "UpstreamEngine":
        from clef.engines.upstream import UpstreamEngine

        key = self._settings.upstream_key
        return UpstreamEngine(
            self._settings.upstream,
            key=key.get_secret_value() if key else None,
            model=self._settings.upstream_model,
            timeout_s=self._settings.upstream_timeout,
        )

    def _kind_wanted(self) -> EngineKind:
        wanted = self._settings.engine
        return "upstream" if wanted == "auto" else wanted


async def _listens(address: str) -> bool:
    """Whether anything accepts connections at an http address."""
    parts = urlsplit(address)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            _, writer = await asyncio.open_connection(parts.hostname, port)
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True
