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

Ready means a decision, not a green /health. Any exit after a stop was asked for is a stop, whatever its code. A
restart passes through stopping and stopped as well, but tells those who ask to come back instead of to give up.
"""

import asyncio
import shlex
import signal
from pathlib import Path

from clef.decisions.examples import Reply, Request
from clef.engines.engine import EngineFacts, Phase
from clef.engines.llama.command import Command, check, inherited_gpu_variables, plan
from clef.engines.llama.life import End, Life, begin
from clef.engines.llama.modelfile import fingerprint
from clef.engines.llama.orphans import Register
from clef.engines.llama.output import Log, open_log
from clef.engines.llama.restarts import Budget, Pace
from clef.engines.llama.server import hung_up
from clef.engines.llama.startlog import StartFacts
from clef.engines.llama.states import ENDED, PHASES, Details, State
from clef.engines.llama.stopping import first_of, stopped_within
from clef.engines.llama.turns import Turns
from clef.engines.llama.version import ask_version
from clef.errors import Crashed, EngineError, Refused, SettingsError, TooLong, Unavailable
from clef.settings import Settings

USUAL_PACE = Pace()
VERSION_WAIT_S = 1.0
"""How long an end waits for the version of what ended, so that both are shown together."""


class LlamaEngine:
    """A llama.cpp child behind the Engine protocol. Use it in the event loop that started it."""

    def __init__(self, settings: Settings, pace: Pace = USUAL_PACE, folder: Path | None = None) -> None:
        """`folder` keeps the notes by which orphans are found; by default a part of CLEF_DATA_DIR."""
        self._settings = settings
        self._pace = pace
        self._state: State = "off"
        self._message: str | None = None
        self._hint: str | None = None
        self._changed = asyncio.Event()
        self._stop_asked = asyncio.Event()
        self._owner: asyncio.Task[None] | None = None
        self._life: Life | None = None
        self._lives = 0
        self._turns = Turns()
        self._budget = Budget(pace)
        self._register = Register(folder or settings.data_dir / "children")
        self._log: Log | None = None
        self._fingerprint: str | None = None
        self._version: str | None = None
        self._cause: str | None = None
        self._restarting = False

    @property
    def state(self) -> State:
        """Where the owner is; see the table above."""
        return self._state

    @property
    def settings(self) -> Settings:
        """What it runs with, or would."""
        return self._settings

    @property
    def pid(self) -> int | None:
        """Process id of the child; None while there is none."""
        return None if self._life is None or self._life.is_over else self._life.child.pid

    def details(self) -> Details:
        """What `facts` has no room for."""
        command = self._life.command if self._life else None
        return Details(
            state=self._state,
            program=command.program.shown if command else "",
            command_line=shlex.join(command.argv) if command else "",
            pid=self.pid,
            starts=self._lives,
            start=self.start_facts,
            loading=self._life.loading if self._life else None,
            log=tuple(self.log_tail()),
            version=self._version,
            model=str(command.model) if command else self._settings.model or "",
            gpu_variables=inherited_gpu_variables(self._settings),
            warnings=(*(command.warnings if command else ()), *self.start_facts.warnings),
            cause=self._cause,
        )

    @property
    def start_facts(self) -> StartFacts:
        """What the child said about itself while it started."""
        return self._life.start.facts if self._life else StartFacts()

    async def start(self) -> None:
        """Begin to start; `wait_ready` or `facts` tell how it goes. Does nothing while it runs.

        Raises SettingsError when the settings cannot work; nothing has been started then.
        """
        if self._state not in ENDED:
            return
        self._stop_asked.clear()
        self._budget, self._turns = Budget(self._pace), Turns()
        self._become("starting", "Starting llama.cpp")
        try:
            command = await asyncio.to_thread(self._prepare)
        except SettingsError as error:
            self._become("failed", error.message, error.hint)
            raise
        if self._stop_asked.is_set():
            self._become("stopped", "llama.cpp was stopped")
            return
        self._owner = asyncio.create_task(self._own(command), name="owner of llama.cpp")

    async def wait_ready(self) -> None:
        """Return once decisions are answered. Raises Unavailable with the reason when that will not come."""
        while not self._answers():
            if self._state in ENDED or self._state == "stopping":
                raise self._unavailable()
            await self._changed.wait()

    async def wait_ended(self) -> None:
        """Return once it has stopped, failed or been given up; at once where it has not been started."""
        while self._state not in ENDED:
            await self._changed.wait()

    async def wait_lost(self) -> None:
        """Return once it has failed or been given up, however often it is stopped and started before."""
        while self._state not in ("failed", "gave up"):
            await self._changed.wait()

    async def restart(self, settings: Settings | None = None) -> None:
        """Stop and begin to start again, with other settings where they are given. Raises as `start`.

        Settings that cannot work stop nothing.
        """
        wanted = settings or self._settings
        await asyncio.to_thread(check, wanted)
        self._restarting = True
        try:
            await self.close()
            self._settings = wanted
            await self.start()
        finally:
            self._restarting = False

    async def facts(self) -> EngineFacts:
        """The state, as everyone above sees it; asks nobody, so it is there at once."""
        life = self._life
        served = life.facts if life else None
        return EngineFacts(
            kind="llama",
            phase=self._phase(),
            model=served.model if served else Path(self._settings.model or "").name or None,
            address=life.command.address if life else None,
            max_tokens=self.start_facts.max_tokens or (served.max_tokens if served else None) or self._settings.context,
            message=self._told(),
            hint=self._hint,
            fingerprint=self._fingerprint,
            images=served.images if served else None,
        )

    async def decide(self, request: Request) -> Reply:
        """Answer a request.

        Raises Unavailable before it is ready, Crashed when the child dies with the request, Refused for an input that
        ended the child twice, and Rejected for images where they are off.
        """
        async with self._turns.take(request):
            life, number = self._ready_life(), self._lives
            life.require_eyes(request)
            try:
                reply = await life.server.decide(request)
            except Unavailable as error:
                raise await self._explain(request, life, number, error) from error
            except EngineError:
                life.strike(self._pace.strikes)
                raise
            life.acquit()
            self._turns.clear(request)
            return reply

    async def count_tokens(self, request: Request) -> int | None:
        """Tokens of the longest prompt that the request makes, to within 2 %; None while there is no server to ask."""
        if self._life is None or not self._answers():
            return None
        try:
            return await self._life.server.count_tokens(request)
        except (EngineError, TooLong):
            return None

    def log_tail(self, count: int = 200) -> list[str]:
        """The last lines the child wrote, oldest first."""
        return self._life.output.tail(count) if self._life else []

    def log_since(self, life: int, finished: int) -> tuple[int, int, list[str]]:
        """Where the output is now, as (life, finished lines), and the lines after such a place."""
        if self._life is None:
            return self._lives, 0, []
        output = self._life.output
        return self._lives, output.finished, output.since(finished if life == self._lives else 0)

    def begin_stop(self) -> None:
        """Ask the owner to stop the child; `close` waits for it."""
        self._stop_asked.set()

    async def close(self) -> None:
        """Stop the child, whatever it is doing, and wait until it is gone. Never raises; safe to call twice."""
        self.begin_stop()
        if self._owner is not None:
            await asyncio.wait({self._owner})

    def hurry(self) -> None:
        """End the child without its grace."""
        if self._life is not None:
            self._life.child.signal(signal.SIGKILL)

    # What follows runs in the owner task only.

    async def _own(self, command: Command) -> None:
        asking = asyncio.create_task(self._learn_version(command))
        try:
            await self._keep_alive(command)
        except SettingsError as error:
            self._become("failed", error.message, error.hint)
        except Exception as error:
            self._become("failed", f"clef's supervisor failed: {error!r}", "this is a bug in clef")
            raise
        finally:
            await asyncio.wait({asking}, timeout=0 if self._stop_asked.is_set() else VERSION_WAIT_S)
            asking.cancel()
            await asyncio.wait({asking})
            if self._log is not None:
                self._log.close()

    async def _learn_version(self, command: Command) -> None:
        self._version = await ask_version(command.program)

    async def _keep_alive(self, command: Command) -> None:
        """Lives one after the other until one ends for good or a stop is asked for."""
        crashes = 0
        while True:
            end, was_ready = await self._live(command)
            if self._stop_asked.is_set():
                self._become("stopped", "llama.cpp was stopped")
                return
            crashes = 0 if was_ready else crashes + 1
            if was_ready and self._settings.exit_with_engine:
                self._become("failed", end.message, end.hint, end.kind)
                return
            if was_ready:
                pause = self._budget.spend()
                if pause is None:
                    times = f"It ended {self._budget.spent} times within {self._pace.window_s / 60:.0f} minutes"
                    self._become("gave up", f"{end.message}\n{times}; clef gave up restarting it.", end.hint, end.kind)
                    return
            elif end.retry and crashes < self._settings.start_attempts:
                pause = self._pace.pause(crashes)
            else:
                tried = f" (start {crashes} of {self._settings.start_attempts})" if end.retry else ""
                self._become("failed", end.message + tried, end.hint, end.kind)
                return
            self._become("restarting", f"{end.message}\nIt is started again.", end.hint, end.kind)
            if await stopped_within(self._stop_asked, pause):
                self._become("stopped", "llama.cpp was stopped")
                return
            self._become("starting", self._message, self._hint)
            command = await asyncio.to_thread(plan, self._settings)

    async def _live(self, command: Command) -> tuple[End, bool]:
        """One child from spawn to reaping: why it ended, and whether it had been ready."""
        try:
            life = await begin(command, self._settings.upstream_timeout, self._log)
        except OSError as error:
            return End(f"llama.cpp cannot be started: {error.strerror}"), False
        self._life = life
        self._lives += 1
        self._register.enter(life.child.pid, command.argv)
        try:
            end = await self._bring_up(life) or await self._serve(life)
        finally:
            if self._stop_asked.is_set():
                self._become("stopping", "Stopping llama.cpp")
            await asyncio.shield(life.child.stop(self._pace.grace_s))
            self._register.leave(life.child.pid)
            await life.server.close()
        return end, life.facts is not None

    async def _bring_up(self, life: Life) -> End | None:
        """Wait until a decision is answered; None then, or why it will not be."""
        probing = asyncio.create_task(life.until_decided(self._pace.poll_s, self._loading))
        limit = self._settings.ready_timeout
        try:
            await first_of(self._stop_asked, {life.child.exited, probing}, limit)
        finally:
            probing.cancel()
            await asyncio.wait({probing})
        if life.is_over:
            return life.death("while starting")
        if probing.cancelled():
            return End(f"llama.cpp answered no decision within {limit:g} s", "raise CLEF_READY_TIMEOUT")
        end = probing.result()
        if end is None:
            self._become("ready", life.start.facts.warning)
        return end

    def _loading(self) -> None:
        if self._state != "loading":
            self._become("loading", "Loading the model")

    async def _serve(self, life: Life) -> End:
        """Watch a ready child until it ends, is stuck, or a stop is asked for."""
        while True:
            suspicion = asyncio.create_task(life.suspected.wait())
            await first_of(self._stop_asked, {life.child.exited, suspicion})
            suspicion.cancel()
            if life.is_over:
                return life.death("while serving")
            if self._stop_asked.is_set():
                return End("llama.cpp was stopped")
            probing = asyncio.create_task(life.server.probe())
            await first_of(self._stop_asked, {life.child.exited, probing})
            probing.cancel()
            await asyncio.wait({probing})
            if not probing.cancelled() and probing.result().phase != "ready" and not life.is_over:
                return End(f"llama.cpp is stuck: it runs, but {probing.result().message}", retry=True)
            life.acquit()

    # What follows waits for nothing but what it says.

    def _ready_life(self) -> Life:
        if self._life is None or not self._answers():
            raise self._unavailable()
        return self._life

    def _answers(self) -> bool:
        """Whether it is ready and alive: an exit is collected a moment before the owner acts on it."""
        return self._state == "ready" and not (self._life is None or self._life.is_over)

    async def _explain(self, request: Request, life: Life, number: int, error: Unavailable) -> EngineError:
        """What a broken exchange was: the child's death, a stop, or something that may pass."""
        died = error.phase == "off" and await life.notice_death()
        if self._stop_asked.is_set():
            return Unavailable("llama.cpp is being stopped", phase="starting" if self._restarting else "off")
        if not died:
            life.strike(self._pace.strikes)
            return error
        end = life.child.exited.result()
        if not hung_up(error):
            return Unavailable(f"llama.cpp ended with {end} before it took this request", phase="starting")
        if self._turns.blame(request, number):
            self._budget.forgive(2)
            return Refused(f"this input ended llama.cpp twice ({end}), so it is not sent again")
        return Crashed(
            f"llama.cpp ended with {end} while it held this request",
            hint="it is started again; the request can be sent again",
        )

    def _unavailable(self) -> Unavailable:
        if self._state == "ready":  # its child is dead, and the owner is about to act on it
            return Unavailable("llama.cpp has just ended", phase="starting")
        message = self._told() or "llama.cpp is not running"
        return Unavailable(message, hint=self._hint, phase=self._phase())

    def _told(self) -> str | None:
        """The message of the state, and how far a load is."""
        return self._life.loading.in_words if self._life and self._life.loading else self._message

    def _phase(self) -> Phase:
        return "starting" if self._restarting and PHASES[self._state] == "off" else PHASES[self._state]

    def _become(
        self, state: State, message: str | None = None, hint: str | None = None, cause: str | None = None
    ) -> None:
        self._state, self._message, self._hint, self._cause = state, message, hint, cause
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def _prepare(self) -> Command:
        """What blocks, before a start: the model's header, the log file, and what an earlier clef left running."""
        command = plan(self._settings)
        self._fingerprint = fingerprint(command.model)
        self._register.sweep()
        self._log = open_log(self._settings.server_log)
        return command
