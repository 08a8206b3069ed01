"""Turns Settings into a llama.cpp that answers decisions and looks after itself.

One task owns the child; everything else only reads the state or asks the owner to stop.

state       what the owner does                                      goes on to
off         does not exist yet                                       starting (start)
starting    has spawned the child, which does not listen yet         loading, ready, restarting, failed
loading     the child listens and says 503                           ready, restarting, failed
ready       a real decision was answered; waits for the child's end  restarting, gave up
restarting  pauses after a death that may be followed by a start     starting, failed
failed      has ended: no further start without a change             starting (start)
gave up     has ended: too many deaths while serving                 starting (start)
stopping    sends SIGTERM, then SIGKILL, and reaps; from any state   stopped
stopped     has ended, as asked                                      starting (start)

Ready means a decision, not a green /health. Any exit after a stop was asked for is a stop, whatever its code.
"""

import asyncio
import contextlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from clef.decisions.examples import Reply, Request
from clef.engines.engine import EngineFacts, Phase
from clef.engines.llama.child import Child, spawn
from clef.engines.llama.command import Command, plan
from clef.engines.llama.output import LogFile, Output
from clef.engines.llama.restarts import Budget, Pace
from clef.engines.llama.server import LlamaServer
from clef.errors import BadReply, Crashed, EngineError, SettingsError, TimedOut, Unavailable
from clef.settings import Settings

State = Literal["off", "starting", "loading", "ready", "restarting", "failed", "gave up", "stopping", "stopped"]

PHASES: dict[State, Phase] = {
    "off": "off",
    "starting": "starting",
    "loading": "loading",
    "ready": "ready",
    "restarting": "starting",
    "failed": "failed",
    "gave up": "failed",
    "stopping": "off",
    "stopped": "off",
}
ENDED: frozenset[State] = frozenset({"off", "failed", "gave up", "stopped"})
USUAL_PACE = Pace()
SHOWN_LINES = 6
"""Last lines of the child's output in a message."""
DEATH_NOTICE_S = 1.0
"""A dead child breaks its connections a moment before its exit is collected."""


@dataclass(slots=True)
class Life:
    """One child, from its spawn to its reaping."""

    command: Command
    output: Output
    child: Child
    server: LlamaServer
    was_ready: bool = False
    strikes: int = 0
    suspected: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when decisions keep failing while the child lives."""

    def strike(self, limit: int) -> None:
        """Count a decision that got no proper reply."""
        self.strikes += 1
        if self.strikes >= limit:
            self.suspected.set()


@dataclass(frozen=True, slots=True)
class End:
    """Why a life ended."""

    message: str
    hint: str | None = None
    retry: bool = False
    """Whether another start may help."""


class LlamaEngine:
    """A llama.cpp child behind the Engine protocol. Use it in the event loop that started it."""

    def __init__(self, settings: Settings, pace: Pace = USUAL_PACE) -> None:
        self._settings = settings
        self._pace = pace
        self._state: State = "off"
        self._message: str | None = None
        self._hint: str | None = None
        self._changed = asyncio.Event()
        self._stop_asked = asyncio.Event()
        self._owner: asyncio.Task[None] | None = None
        self._life: Life | None = None
        self._served: EngineFacts | None = None
        self._log: LogFile | None = None

    @property
    def state(self) -> State:
        """Where the owner is; see the table above."""
        return self._state

    async def start(self) -> None:
        """Begin to start; `wait_ready` or `facts` tell how it goes. Does nothing while it runs.

        Raises SettingsError when the settings cannot work; nothing has been started then.
        """
        if self._state not in ENDED:
            return
        self._stop_asked.clear()
        self._become("starting", "Starting llama.cpp")
        try:
            command = await asyncio.to_thread(plan, self._settings)
            self._log = self._open_log()
        except SettingsError as error:
            self._become("failed", error.message, error.hint)
            raise
        if self._stop_asked.is_set():
            self._become("stopped", "llama.cpp was stopped")
            return
        self._owner = asyncio.create_task(self._own(command), name="owner of llama.cpp")

    async def wait_ready(self) -> None:
        """Return once decisions are answered. Raises Unavailable with the reason when that will not come."""
        while self._state != "ready":
            if self._state in ENDED or self._state == "stopping":
                raise self._unavailable()
            await self._changed.wait()

    async def facts(self) -> EngineFacts:
        """The state, as everyone above sees it; asks nobody, so it is there at once."""
        served = self._served
        return EngineFacts(
            kind="llama",
            phase=PHASES[self._state],
            model=served.model if served else Path(self._settings.model or "").name or None,
            address=self._life.command.address if self._life else None,
            max_tokens=(served.max_tokens if served else None) or self._settings.context,
            message=self._message,
            hint=self._hint,
        )

    async def decide(self, request: Request) -> Reply:
        """Answer a request. Raises Unavailable before it is ready, Crashed when the child dies with the request."""
        life = self._ready_life()
        try:
            reply = await life.server.decide(request)
        except Unavailable as error:
            raise await self._explain(life, error) from error
        except (TimedOut, BadReply):
            life.strike(self._pace.strikes)
            raise
        life.strikes = 0
        return reply

    async def count_tokens(self, request: Request) -> int | None:
        """Tokens of the request's own text, by the model's tokenizer; None while there is no server to ask."""
        if self._state != "ready" or self._life is None:
            return None
        try:
            return await self._life.server.count_tokens(request)
        except EngineError:
            return None

    def log_tail(self, count: int = 200) -> list[str]:
        """The last lines the child wrote, oldest first."""
        return self._life.output.tail(count) if self._life else []

    async def close(self) -> None:
        """Stop the child, whatever it is doing, and wait until it is gone. Never raises; safe to call twice."""
        self._stop_asked.set()
        if self._owner is not None:
            await asyncio.wait({self._owner})

    # What follows runs in the owner task only.

    async def _own(self, command: Command) -> None:
        try:
            await self._keep_alive(command)
        except SettingsError as error:
            self._become("failed", error.message, error.hint)
        except Exception as error:
            self._become("failed", f"clef's supervisor failed: {error!r}", "this is a bug in clef")
            raise
        finally:
            if self._log is not None:
                self._log.close()

    async def _keep_alive(self, command: Command) -> None:
        """Lives one after the other until one ends for good or a stop is asked for."""
        budget, crashes = Budget(self._pace), 0
        while True:
            end, was_ready = await self._live(command)
            if self._stop_asked.is_set():
                self._become("stopped", "llama.cpp was stopped")
                return
            crashes = 0 if was_ready else crashes + 1
            if was_ready:
                pause = budget.spend()
                if pause is None:
                    times = f"It ended {budget.spent} times within {self._pace.window_s / 60:.0f} minutes"
                    self._become("gave up", f"{end.message}\n{times}; clef gave up restarting it.", end.hint)
                    return
            elif end.retry and crashes < self._settings.start_attempts:
                pause = self._pace.pause(crashes)
            else:
                tried = f" (start {crashes} of {self._settings.start_attempts})" if end.retry else ""
                self._become("failed", end.message + tried, end.hint)
                return
            self._become("restarting", f"{end.message}\nIt is started again.", end.hint)
            if await self._stopped_within(pause):
                self._become("stopped", "llama.cpp was stopped")
                return
            self._become("starting", self._message, self._hint)
            command = await asyncio.to_thread(plan, self._settings)

    async def _live(self, command: Command) -> tuple[End, bool]:
        """One child from spawn to reaping: why it ended, and whether it had been ready."""
        output = Output(log=self._log)
        try:
            child = await spawn(command.argv, command.env, output)
        except OSError as error:
            return End(f"llama.cpp cannot be started: {error.strerror}"), False
        server = LlamaServer(command.address, key=command.key, timeout_s=self._settings.upstream_timeout, kind="llama")
        life = self._life = Life(command, output, child, server)
        try:
            end = await self._bring_up(life) or await self._serve(life)
        finally:
            if self._stop_asked.is_set():
                self._become("stopping", "Stopping llama.cpp")
            await asyncio.shield(child.stop(self._pace.grace_s))
            await server.close()
        return end, life.was_ready

    async def _bring_up(self, life: Life) -> End | None:
        """Wait until a decision is answered; None then, or why it will not be."""
        probing = asyncio.create_task(self._until_decided(life))
        limit = self._settings.ready_timeout
        try:
            await self._first({life.child.exited, probing}, limit)
        finally:
            probing.cancel()
            await asyncio.wait({probing})
        if life.child.exited.done():
            return self._death(life, "while starting")
        if not probing.cancelled():
            return probing.result()
        return End(f"llama.cpp answered no decision within {limit:g} s", "raise CLEF_READY_TIMEOUT")

    async def _until_decided(self, life: Life) -> End | None:
        """Ask until a decision is answered or refused for good."""
        while True:
            facts = await life.server.probe()
            if facts.phase == "ready":
                self._served = facts
                life.was_ready = True
                self._become("ready")
                return None
            if facts.phase == "failed":
                return End(f"llama.cpp is up, but does not decide: {facts.message}", facts.hint)
            if facts.phase == "loading" and self._state != "loading":
                self._become("loading", "Loading the model")
            await asyncio.sleep(self._pace.poll_s)

    async def _serve(self, life: Life) -> End:
        """Watch a ready child until it ends, is stuck, or a stop is asked for."""
        while True:
            suspicion = asyncio.create_task(life.suspected.wait())
            await self._first({life.child.exited, suspicion})
            suspicion.cancel()
            if life.child.exited.done():
                return self._death(life, "while serving")
            if self._stop_asked.is_set():
                return End("llama.cpp was stopped")
            probing = asyncio.create_task(life.server.probe())
            await self._first({life.child.exited, probing})
            probing.cancel()
            await asyncio.wait({probing})
            if not probing.cancelled() and probing.result().phase != "ready":
                return End(f"llama.cpp is stuck: it runs, but {probing.result().message}", retry=True)
            life.strikes = 0
            life.suspected.clear()

    async def _first(self, tasks: "set[asyncio.Task[object]]", timeout_s: float | None = None) -> None:
        """Wait for one of the tasks, a stop, or the time-out."""
        stop = asyncio.create_task(self._stop_asked.wait())
        try:
            await asyncio.wait({stop, *tasks}, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stop.cancel()

    async def _stopped_within(self, pause_s: float) -> bool:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stop_asked.wait(), pause_s)
        return self._stop_asked.is_set()

    # What follows waits for nothing but what it says.

    def _death(self, life: Life, when: str) -> End:
        end = life.child.exited.result()
        said = "\n".join(life.output.tail(SHOWN_LINES))
        return End(f"llama.cpp ended with {end} {when}.\n{said}".rstrip(), retry=end.by_signal)

    def _ready_life(self) -> Life:
        if self._state != "ready" or self._life is None:
            raise self._unavailable()
        return self._life

    async def _explain(self, life: Life, error: Unavailable) -> EngineError:
        """What a broken exchange was: the child's death, a stop, or something that may pass."""
        if error.phase == "off":
            await asyncio.wait({life.child.exited}, timeout=DEATH_NOTICE_S)
        if self._stop_asked.is_set():
            return Unavailable("llama.cpp is being stopped", phase="off")
        if life.child.exited.done():
            return Crashed(
                f"llama.cpp ended with {life.child.exited.result()} while it held this request",
                hint="it is started again; the request can be sent again",
            )
        life.strike(self._pace.strikes)
        return error

    def _unavailable(self) -> Unavailable:
        message = self._message or "llama.cpp is not running"
        return Unavailable(message, hint=self._hint, phase=PHASES[self._state])

    def _become(self, state: State, message: str | None = None, hint: str | None = None) -> None:
        self._state, self._message, self._hint = state, message, hint
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def _open_log(self) -> LogFile | None:
        path = self._settings.server_log
        if path is None:
            return None
        try:
            return LogFile(path.expanduser())
        except OSError as error:
            raise SettingsError(f'CLEF_SERVER_LOG: "{path}" cannot be written: {error.strerror}') from error
