"""Turns a Command into one running llama.cpp: its process, its output, its HTTP side, and how it ended."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from clef.decisions.examples import Request
from clef.engines.engine import EngineFacts
from clef.engines.llama.child import Child, spawn
from clef.engines.llama.command import Command
from clef.engines.llama.deaths import cause_of, running_in_wsl, telling
from clef.engines.llama.loading import Loading, Reading
from clef.engines.llama.output import Log, Output
from clef.engines.llama.server import LlamaServer
from clef.engines.llama.startlog import StartLog
from clef.errors import Rejected

LOOK_S = 1.0
"""Between two looks at how far a loading child is."""
DEATH_NOTICE_S = 1.0
"""A dead child breaks its connections a moment before its exit is collected."""


@dataclass(frozen=True, slots=True)
class End:
    """Why a llama.cpp no longer answers, or never will."""

    message: str
    hint: str | None = None
    retry: bool = False
    """Whether another start may help."""
    kind: str | None = None
    """A stable name of the cause, where something can be offered to do about it."""


@dataclass(slots=True, eq=False)
class Life:
    """One child, from its spawn to its reaping."""

    command: Command
    start: StartLog
    output: Output
    child: Child
    server: LlamaServer
    facts: EngineFacts | None = None
    """What the server said of itself when it answered its first decision; None before."""
    loading: Loading | None = None
    """How far it has read its model; None where that is not known, and once it is ready."""
    strikes: int = 0
    suspected: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when decisions keep failing while the child lives."""

    @property
    def is_over(self) -> bool:
        """Whether the child has ended and has been reaped."""
        return self.child.exited.done()

    async def until_decided(self, poll_s: float, on_loading: Callable[[], None]) -> End | None:
        """Ask until a decision is answered (None) or refused for good; `on_loading` is called when it says 503."""
        watching = asyncio.create_task(self._watch_loading())
        try:
            while True:
                facts = await self.server.probe()
                if facts.phase == "ready":
                    self.facts = facts
                    return None
                if facts.phase == "failed":
                    return End(f"llama.cpp is up, but does not decide: {facts.message}", facts.hint)
                if facts.phase == "loading":
                    on_loading()
                await asyncio.sleep(poll_s)
        finally:
            watching.cancel()
            self.loading = None

    def require_eyes(self, request: Request) -> None:
        """Raise Rejected for images where no projector is loaded, and for videos, which llama.cpp does not take."""
        if request.videos:
            raise Rejected("llama.cpp reads no videos", hint="CLEF_UPSTREAM takes a server that does, such as vLLM")
        if request.images and "--no-mmproj" in self.command.arguments and not self.start.facts.has_projector:
            raise Rejected("images are off", hint="start with CLEF_IMAGES=1; it loads the model's projector as well")

    async def _watch_loading(self) -> None:
        reading = await asyncio.to_thread(Reading, self.child.pid, self.command.arguments)
        while True:
            self.loading = await asyncio.to_thread(reading.now)
            await asyncio.sleep(LOOK_S)

    def strike(self, limit: int) -> None:
        """Count a decision that got no proper reply."""
        self.strikes += 1
        if self.strikes >= limit:
            self.suspected.set()

    def acquit(self) -> None:
        """A decision was answered."""
        self.strikes = 0
        self.suspected.clear()

    async def notice_death(self) -> bool:
        """Whether a connection broke because the child died; waits a moment for its exit."""
        await asyncio.wait({self.child.exited}, timeout=DEATH_NOTICE_S)
        return self.is_over

    def death(self, when: str) -> End:
        """How the child ended, in words known or its own; only a crash, or what is known to pass, is worth a retry."""
        end = self.child.exited.result()
        lines = self.output.tail()
        death = cause_of(end, lines, is_wsl=running_in_wsl())
        cause = f": {death.cause}" if death else ""
        said = "\n".join([f"llama.cpp ended with {end} {when}{cause}.", *telling(lines, is_known=death is not None)])
        retry = end.by_signal if death is None or death.retry is None else death.retry
        return End(said, death.hint if death else None, retry, death.kind if death else None)


async def begin(command: Command, timeout_s: float, log: Log | None) -> Life:
    """Spawn the child. Raises OSError where the machine cannot."""
    start = StartLog()
    output = Output(start.read, log)
    child = await spawn(command.argv, command.env, output)
    server = LlamaServer(command.address, key=command.key, timeout_s=timeout_s)
    return Life(command, start, output, child, server)
