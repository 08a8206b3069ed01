"""Turns an argument list into a running process that cannot outlive us, whose output is always read and which is
always reaped.

The child leads a process group of its own, so a Ctrl+C in the terminal reaches us and not the child, and a stop
reaches whatever the child started. Start it from the event loop's own thread: its tie to us is bound to the thread.
Where the tie is a pipe, the process that is started is the program's keeper (see launcher.py): its pid, group and end
stand for the program's.
"""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from clef.engines.llama.output import Output

LAUNCHER = Path(__file__).with_name("launcher.py")
TIED_BY_PIPE = sys.platform != "linux"
"""Whether a child is tied to us by a pipe; on Linux the kernel does it."""
GRACE_S = 5.0
"""Time from SIGTERM to SIGKILL."""
LAST_WORDS_S = 1.0
"""Time for output that is still in the pipe after the exit; something else may hold the pipe open for ever."""


@dataclass(frozen=True, slots=True)
class Exit:
    """How a process ended."""

    code: int
    """The exit code; minus the signal's number where a signal ended it, as in `subprocess`."""

    @property
    def by_signal(self) -> bool:
        """Whether a signal ended it: a crash or a kill, not a decision of its own."""
        return self.code < 0

    def __str__(self) -> str:
        if not self.by_signal:
            return f"exit code {self.code}"
        try:
            return signal.Signals(-self.code).name
        except ValueError:
            return f"signal {-self.code}"


class Child:
    """One running process. Made by `spawn`; `exited` is done when it has been reaped and its output read."""

    def __init__(self, process: asyncio.subprocess.Process, drain: "_Drain") -> None:
        self._process = process
        self.pid = process.pid
        self.exited: asyncio.Task[Exit] = asyncio.create_task(self._reap(drain))

    async def stop(self, grace_s: float = GRACE_S) -> Exit:
        """SIGTERM to the group, SIGKILL after the grace; returns how it ended. Safe to call twice and to cancel."""
        self.signal(signal.SIGTERM)
        done, _ = await asyncio.wait({self.exited}, timeout=grace_s)
        if not done:
            self.signal(signal.SIGKILL)
        elif self.exited.cancelled():  # the event loop is closing under us: no time for manners, nobody left to reap
            self.signal(signal.SIGKILL)
            return Exit(-signal.SIGKILL)
        return await asyncio.shield(self.exited)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the whole group while its leader has not been reaped."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)

    async def _reap(self, drain: "_Drain") -> Exit:
        code = await self._process.wait()
        # Whatever the child started stays in its group; a pid is not given out again while its group has members.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        await asyncio.wait({drain.drained}, timeout=LAST_WORDS_S)
        drain.close()
        return Exit(code)


class _Drain(asyncio.Protocol):
    """Feeds what arrives on a pipe to an Output until the other end closes."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._transport: asyncio.BaseTransport | None = None
        self.drained: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._output.feed(data)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.drained.done():
            self.drained.set_result(None)

    def close(self) -> None:
        """Stop reading, whoever still holds the other end."""
        if self._transport is not None:
            self._transport.close()


async def spawn(argv: Sequence[str], env: Mapping[str, str], output: Output) -> Child:
    """Start a program through the launcher, its stdout and stderr going to `output`.

    Raises OSError where the machine cannot start a process. A program that cannot be run shows as exit code 1.
    """
    tie = "pipe" if TIED_BY_PIPE else "signal"
    launch = [sys.executable, "-I", "-S", str(LAUNCHER), tie, str(os.getpid()), *argv]
    # A pipe of our own: asyncio's makes `wait` hang on in some versions while a grandchild holds it open.
    ours, theirs = os.pipe()
    try:
        _, drain = await asyncio.get_running_loop().connect_read_pipe(lambda: _Drain(output), os.fdopen(ours, "rb"))
        try:
            process = await asyncio.create_subprocess_exec(
                *launch,
                # Nothing is ever written to the pipe: it closes when we end, however we end.
                stdin=asyncio.subprocess.PIPE if TIED_BY_PIPE else asyncio.subprocess.DEVNULL,
                stdout=theirs,
                stderr=asyncio.subprocess.STDOUT,
                env=env,
                process_group=0,
            )
        except BaseException:
            drain.close()
            raise
    finally:
        os.close(theirs)
    return Child(process, drain)
