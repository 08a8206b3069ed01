"""Turns the bytes a child writes into its last lines, and into a log file of bounded size.

Bytes are taken as they come and never wait for a newline, so a flood without one costs a bounded line and never
stops the child. The file is CLEF_SERVER_LOG: its first part, with the start-up, stays where it is; what follows goes
to NAME.1, which moves to NAME.2 when it is full. The file of an earlier run becomes NAME.previous.
"""

import contextlib
import sys
from collections import deque
from collections.abc import Callable
from io import RawIOBase
from pathlib import Path
from queue import Full, Queue
from threading import Thread
from typing import BinaryIO, Protocol

from clef.errors import SettingsError

KEPT_LINES = 200
MAX_LINE = 2000
"""Bytes of one line that are kept; the rest of a longer line is dropped."""
TERMINAL = Path("-")
"""As CLEF_SERVER_LOG: the terminal."""
FILE_SIZE = 5_000_000
"""Bytes in each of the three log files."""


class Log(Protocol):
    """Something that keeps or shows what a child writes. No method blocks for long or raises."""

    def write(self, data: bytes) -> None:
        """Take some bytes."""
        ...

    def close(self) -> None:
        """Take no more. Safe to call twice."""
        ...


class Output:
    """What a child said. `on_line` gets each finished line, decoded; undecodable bytes are replaced."""

    def __init__(self, on_line: Callable[[str], None] | None = None, log: "Log | None" = None) -> None:
        self._lines: deque[str] = deque(maxlen=KEPT_LINES)
        self._open_line = bytearray()
        self._on_line = on_line
        self._log = log
        self.finished = 0
        """Lines that have been finished, those that are no longer kept included."""

    def feed(self, data: bytes) -> None:
        """Take what the child wrote."""
        if self._log is not None:
            self._log.write(data)
        *finished, rest = data.split(b"\n")
        for part in finished:
            self._extend(part)
            self._finish()
        self._extend(rest)

    def tail(self, count: int = KEPT_LINES) -> list[str]:
        """The last lines, oldest first, an unfinished one included."""
        lines = [*self._lines, self._text()] if self._open_line else list(self._lines)
        return lines[-count:]

    def since(self, finished: int) -> list[str]:
        """The lines finished after the first `finished` ones, as far as they are kept."""
        fresh = min(self.finished - finished, len(self._lines))
        return list(self._lines)[-fresh:] if fresh > 0 else []

    def _extend(self, part: bytes) -> None:
        self._open_line += part[: MAX_LINE - len(self._open_line)]

    def _finish(self) -> None:
        line = self._text()
        self._open_line.clear()
        self._lines.append(line)
        self.finished += 1
        if self._on_line is not None:
            self._on_line(line)

    def _text(self) -> str:
        return self._open_line.decode("utf-8", "replace").rstrip("\r")


class LogFile:
    """A log in three files of at most `size` bytes, the first of which is never overwritten while it is open."""

    def __init__(self, path: Path, size: int = FILE_SIZE) -> None:
        """Open it for a new run. Raises OSError where it cannot be written."""
        self._path = path
        self._size = size
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            path.replace(self._beside("previous"))
        for later in ("1", "2"):
            self._beside(later).unlink(missing_ok=True)
        self._file: BinaryIO | None = path.open("wb")
        self._room = size

    def write(self, data: bytes) -> None:
        """Append; goes quiet when the disk refuses, because the log must never stop the server."""
        if self._file is None:
            return
        try:
            while data:
                if not self._room:
                    self._turn()
                taken, data = data[: self._room], data[self._room :]
                self._file.write(taken)
                self._room -= len(taken)
            self._file.flush()
        except OSError:
            self.close()

    def close(self) -> None:
        """Close the file. Safe to call twice."""
        file, self._file = self._file, None
        if file is not None:
            try:
                file.close()
            except OSError:
                return

    def _turn(self) -> None:
        assert self._file is not None
        self._file.close()
        following = self._beside("1")
        if following.exists():
            following.replace(self._beside("2"))
        self._file = following.open("wb")
        self._room = self._size

    def _beside(self, suffix: str) -> Path:
        return self._path.with_name(f"{self._path.name}.{suffix}")


class TerminalLog:
    """What a child writes, on a terminal. Writes in a thread: a terminal that is held must hold nothing else up, and
    gets no more than it takes."""

    def __init__(self, terminal: BinaryIO | RawIOBase) -> None:
        self._terminal = terminal
        self._waiting: Queue[bytes | None] = Queue(maxsize=1000)
        Thread(target=self._show, daemon=True, name="llama.cpp on the terminal").start()

    def write(self, data: bytes) -> None:
        """Show it, unless the terminal takes nothing."""
        with contextlib.suppress(Full):
            self._waiting.put_nowait(data)

    def close(self) -> None:
        """End the thread once it has shown what it has."""
        with contextlib.suppress(Full):
            self._waiting.put_nowait(None)

    def _show(self) -> None:
        while (data := self._waiting.get()) is not None:
            try:
                self._terminal.write(data)
                self._terminal.flush()
            except (OSError, ValueError):
                return


def open_log(path: Path | None) -> Log | None:
    """The log that CLEF_SERVER_LOG asks for. Raises SettingsError where it cannot be written."""
    if path is None:
        return None
    if path == TERMINAL:
        return TerminalLog(sys.stderr.buffer)
    try:
        return LogFile(path.expanduser())
    except OSError as error:
        raise SettingsError(f'CLEF_SERVER_LOG: "{path}" cannot be written: {error.strerror}') from error
