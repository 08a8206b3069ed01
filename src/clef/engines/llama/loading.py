"""Turns a child that loads its model into how far it is: what it has read of its files.

llama.cpp tells nobody but its own router while it loads, so the system is asked: on Linux /proc counts what a process
has read, and which pages of a mapped file it has in memory. Elsewhere nothing is known, and nothing is guessed.
"""

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from clef.engines.durations import duration

WORTH_TELLING = 200_000_000
"""Bytes. A smaller model is there before one has looked, and the program's own libraries would count for too much."""
ENOUGH = 0.02
"""Share from which on the time left is told: before that, most of the time passed was the program's own start."""
_PART = re.compile(r"-\d{5}-of-(\d{5})\.gguf$")


@dataclass(frozen=True, slots=True)
class Loading:
    """How far a model is read."""

    done_bytes: int
    size_bytes: int
    seconds_left: float | None
    """At the speed so far; None where it is too early to say, or nothing is left."""

    @property
    def share(self) -> float:
        """From 0 to 1."""
        return self.done_bytes / self.size_bytes

    @property
    def in_short(self) -> str:
        """Such as "43 % · 20 s left"."""
        left = "" if self.seconds_left is None else f" · {duration(self.seconds_left)} left"
        return f"{100 * self.share:.0f} %{left}"

    @property
    def in_words(self) -> str:
        """As a person is told."""
        whole = f"{self.size_bytes / 1e9:.1f} GB"
        if self.done_bytes >= self.size_bytes:
            return f"Loading the model: all of its {whole} are read, and it is made ready"
        left = "" if self.seconds_left is None else f", about {duration(self.seconds_left)} left"
        return f"Loading the model: {100 * self.share:.0f} % of its {whole} are read{left}"


class Reading:
    """What one child has read of the model files among its arguments."""

    def __init__(self, pid: int, arguments: Sequence[str]) -> None:
        self._process = Path("/proc") / str(pid)
        self._files = model_files(arguments)
        self._size = sum(file.stat().st_size for file in self._files)
        self._began = time.monotonic()

    def now(self) -> Loading | None:
        """How far it is; None where that cannot be known or is not worth telling. Takes up to 0.1 s for 10 GB."""
        if self._size < WORTH_TELLING:
            return None
        try:
            done = min(self._size, max(self._read(), self._mapped()))
        except (OSError, KeyError):  # it has just ended, or this is no Linux
            return None
        if done > 0.995 * self._size:
            done = self._size  # the last pages of a mapped file need never be read
        is_told = ENOUGH < done / self._size < 1
        passed = time.monotonic() - self._began
        return Loading(done, self._size, passed * (self._size - done) / done if is_told else None)

    def _read(self) -> int:
        """Bytes it had from files and disks; those of a mapped file only where they came from a disk."""
        counts = dict(line.split(": ") for line in (self._process / "io").read_text().splitlines())
        return max(int(counts["rchar"]), int(counts["read_bytes"]))

    def _mapped(self) -> int:
        """Bytes of its mapped model files that it has in memory."""
        names, kib, is_ours = {str(file) for file in self._files}, 0, False
        for line in (self._process / "smaps").read_text(errors="replace").splitlines():
            first = line.partition(" ")[0]
            if not first.endswith(":"):  # "7f…-7f… r--s 00000000 fe:00 123   /path", the head of a mapping
                is_ours = line.partition("/")[1] + line.partition("/")[2] in names
            elif is_ours and first == "Rss:":
                kib += int(line.split()[1])
        return kib * 1024


def model_files(arguments: Sequence[str]) -> list[Path]:
    """The model files that a command line names, with all parts of a split one, as the system spells their paths."""
    named = [Path(argument).resolve() for argument in arguments if argument.endswith(".gguf")]
    files = dict.fromkeys(file for one in named for file in _parts(one) if file.is_file())
    return list(files)


def _parts(file: Path) -> list[Path]:
    found = _PART.search(file.name)
    if not found:
        return [file]
    stem = file.name[: found.start()]
    return [file.with_name(f"{stem}-{n:05d}-of-{found[1]}.gguf") for n in range(1, int(found[1]) + 1)]
