"""Turns the bytes a child writes into its last lines, and into a log file of bounded size.

Bytes are taken as they come and never wait for a newline, so a flood without one costs a bounded line and never
stops the child. The file is CLEF_SERVER_LOG: its first part, with the start-up, stays where it is; what follows goes
to NAME.1, which moves to NAME.2 when it is full. The file of an earlier run becomes NAME.previous.
"""

from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

KEPT_LINES = 200
MAX_LINE = 2000
"""Bytes of one line that are kept; the rest of a longer line is dropped."""
FILE_SIZE = 5_000_000
"""Bytes in each of the three log files."""


class Output:
    """What a child said. `on_line` gets each finished line, decoded; undecodable bytes are replaced."""

    def __init__(self, on_line: Callable[[str], None] | None = None, log: "LogFile | None" = None) -> None:
        self._lines: deque[str] = deque(maxlen=KEPT_LINES)
        self._open_line = bytearray()
        self._on_line = on_line
        self._log = log

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

    def _extend(self, part: bytes) -> None:
        self._open_line += part[: MAX_LINE - len(self._open_line)]

    def _finish(self) -> None:
        line = self._text()
        self._open_line.clear()
        self._lines.append(line)
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
