"""Turns the wish for a model into its files in the cache, with progress, pause and resume.

state       what is going on                            goes on to
fetching    a process of its own transfers              verifying, done, paused, failed
verifying   the same process compares the hash          done, failed
paused      nothing runs; what came is on the disk      fetching
failed      nothing runs; why is in the message         fetching
done        the files are whole

Progress is the size of what lies on the disk, never what a transfer says of itself. A pause is the end of the
process, so it comes at once however slow the link is; one that was killed looks the same, and goes on the same way.
"""

import asyncio
import json
import os
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from clef.engines.durations import duration
from clef.engines.models.access import child_environment
from clef.engines.models.cache import Cached, hub_cache
from clef.engines.models.catalogue import CatalogueModel, ModelFile

if TYPE_CHECKING:  # what runs a process is not needed for a start
    from clef.engines.llama.child import Child

DownloadState = Literal["fetching", "verifying", "paused", "failed", "done"]
PROGRAM = Path(__file__).with_name("fetch.py")
WINDOW_S = 10.0
"""The speed is that of this long."""
GRACE_S = 1.0


@dataclass(frozen=True, slots=True)
class Order:
    """Which files of a model are wanted."""

    model: CatalogueModel
    file: ModelFile
    with_projector: bool = False

    @property
    def name(self) -> str:
        """The model's name with its quantisation."""
        return f"{self.model.name}:{self.file.quantisation}"

    @property
    def files(self) -> tuple[ModelFile, ...]:
        """The model, and its projector where that is wanted and there is one."""
        extra = (self.model.projector,) if self.with_projector and self.model.projector else ()
        return (self.file, *extra)


@dataclass(frozen=True, slots=True)
class Progress:
    """How a download goes."""

    name: str
    state: DownloadState
    done_bytes: int
    """On the disk, of all its files."""
    size_bytes: int
    bytes_per_s: float | None = None
    """Over the last seconds; None where nothing moves or it is too early to say."""
    message: str | None = None
    hint: str | None = None
    failure: str | None = None
    """A stable name of what went wrong: gated, missing, token, space, disk, network, range, damaged, busy, hub."""
    choices: tuple[str, ...] = ()
    """The files there are, where the one that is wanted is missing."""

    @property
    def seconds_left(self) -> float | None:
        """At the present speed."""
        return (self.size_bytes - self.done_bytes) / self.bytes_per_s if self.bytes_per_s else None

    @property
    def in_words(self) -> str:
        """As a person is told."""
        done, size = (f"{count / 1e9:.1f}" for count in (self.done_bytes, self.size_bytes))
        if self.state == "verifying":
            return f"Checking {self.name}, which has arrived"
        left = self.seconds_left
        soon = "" if left is None else f", {duration(left)} left"
        return f"Downloading {self.name}: {done} of {size} GB{soon}"

    def to_dict(self) -> dict[str, object]:
        """As JSON."""
        return {
            "name": self.name,
            "state": self.state,
            "done_bytes": self.done_bytes,
            "size_bytes": self.size_bytes,
            "bytes_per_s": self.bytes_per_s,
            "seconds_left": self.seconds_left,
            "message": self.message,
            "hint": self.hint,
            "failure": self.failure,
            "choices": list(self.choices),
        }


@dataclass(slots=True, eq=False)
class _Download:
    """One download since clef was started."""

    order: Order
    state: DownloadState = "fetching"
    child: "Child | None" = None
    sizes: dict[str, int] = field(default_factory=dict)
    """By file, as the hub says."""
    report: dict[str, object] = field(default_factory=dict)
    seen: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=64))
    running: asyncio.Task[None] | None = None
    most_bytes: int = 0
    """Most that was seen on the disk: for a moment a whole file is in neither of its two places."""


class Downloads:
    """All downloads of this clef. Use it in one event loop, and close it."""

    def __init__(self, cache: Path | None = None) -> None:
        self.cache = cache or hub_cache()
        self._downloads: dict[str, _Download] = {}

    def start(self, order: Order) -> Progress:
        """Begin, or go on. Does nothing while it runs, and asks nobody where the files are here.

        Raises SettingsError for a token that cannot be one.
        """
        download = self._downloads.get(order.name)
        if self.paths(order) is not None:
            return self.progress(order)
        if download is None or download.running is None or download.running.done():
            environment = child_environment(os.environ)
            download = self._downloads[order.name] = _Download(order)
            download.running = asyncio.create_task(self._run(download, environment), name=f"download of {order.name}")
        return self.progress(order)

    async def pause(self, order: Order) -> Progress:
        """Stop; what came stays. Does nothing where nothing runs."""
        download = self._downloads.get(order.name)
        if download is not None and download.running is not None and not download.running.done():
            download.state = "paused"
            if download.child is not None:
                await download.child.stop(GRACE_S)
            await asyncio.wait({download.running})
        return self.progress(order)

    async def remove(self, order: Order) -> int:
        """Stop and delete; the bytes that are free then."""
        await self.pause(order)
        self._downloads.pop(order.name, None)
        return await asyncio.to_thread(self._delete, order)

    async def wait(
        self, order: Order, tell: Callable[[Progress], None] | None = None, every_s: float = 0.2
    ) -> Progress:
        """Wait until it no longer runs; `tell` hears how it goes."""
        download = self._downloads.get(order.name)
        while download is not None and download.running is not None and not download.running.done():
            if tell is not None:
                tell(self.progress(order))
            await asyncio.wait({download.running}, timeout=every_s)
        return self.progress(order)

    def progress(self, order: Order) -> Progress:
        """How it goes now; for one that this clef did not begin, what lies on the disk."""
        download = self._downloads.get(order.name)
        sizes = download.sizes if download else {}
        size = sum(sizes.get(file.file, file.size_bytes) for file in order.files)
        if self.paths(order) is not None and (download is None or download.state != "verifying"):
            return Progress(order.name, "done", size, size)
        done = self._bytes_of(order)
        size = max(size, done)
        if download is None:
            return Progress(order.name, "paused", done, size)
        if download.state == "verifying":
            done = max(done, download.most_bytes)
        download.most_bytes = done
        report = download.report
        return Progress(
            name=order.name,
            state=download.state,
            done_bytes=done,
            size_bytes=size,
            bytes_per_s=self._speed(download, done),
            message=_text(report.get("message")),
            hint=_text(report.get("hint")),
            failure=_text(report.get("failed")),
            choices=tuple(map(str, _items(report.get("choices")))),
        )

    def known(self, order: Order) -> bool:
        """Whether it was begun, by this clef or an earlier one."""
        return order.name in self._downloads or self._bytes_of(order) > 0

    def active(self) -> list[Progress]:
        """How those go that run now."""
        return [
            self.progress(item.order) for item in self._downloads.values() if item.running and not item.running.done()
        ]

    def paths(self, order: Order) -> list[Path] | None:
        """Where the files are; None unless all are whole."""
        cached = self._cached(order)
        found = [cached.path_of(file.file) for file in order.files]
        return [path for path in found if path] if all(found) else None

    async def close(self) -> None:
        """Pause everything."""
        await asyncio.gather(*(self.pause(download.order) for download in list(self._downloads.values())))

    def _delete(self, order: Order) -> int:
        """Delete the files of an order, and the projector with the last file of its model."""
        cached, model = self._cached(order), order.model
        freed = sum(cached.remove(file.file) for file in order.files)
        if model.projector is not None and not any(cached.path_of(file.file) for file in model.files):
            freed += cached.remove(model.projector.file)
        return freed

    async def _run(self, download: _Download, environment: dict[str, str]) -> None:
        from clef.engines.llama.child import spawn
        from clef.engines.llama.output import Output

        order = download.order
        argv = [sys.executable, "-P", str(PROGRAM), str(self.cache), order.model.repo]
        argv += [file.file for file in order.files]
        output = Output(lambda line: self._hear(download, line))
        try:
            download.child = await spawn(argv, environment, output)
        except OSError as error:
            self._fail(download, {"failed": "disk", "message": f"no process can be started: {error.strerror}"})
            return
        if download.state == "paused":  # asked for while the process was being started
            await download.child.stop(GRACE_S)
        end = await asyncio.shield(download.child.exited)
        if download.state in ("fetching", "verifying"):
            said = " ".join(output.tail(3))
            self._fail(download, {"failed": "crash", "message": f"the download ended with {end}: {said}"})

    def _hear(self, download: _Download, line: str) -> None:
        try:
            event = json.loads(line)
        except ValueError:
            return
        match event:
            case {"files": [*files]}:
                download.sizes = {str(item["file"]): int(item["size"]) for item in files}
            case {"fetching": _} | {"verifying": _} | {"done": _} if download.state != "paused":
                download.state = next(iter(event))
            case {"failed": _}:
                self._fail(download, event)

    def _fail(self, download: _Download, report: dict[str, object]) -> None:
        if download.state != "paused":
            download.state, download.report = "failed", report

    def _speed(self, download: _Download, done: int) -> float | None:
        if download.state != "fetching":
            return None
        now, seen = time.monotonic(), download.seen
        if not seen or now - seen[-1][0] > 0.15:
            seen.append((now, done))
        while seen and now - seen[0][0] > WINDOW_S:
            seen.popleft()
        if len(seen) < 2 or seen[-1][1] <= seen[0][1]:
            return None
        return (seen[-1][1] - seen[0][1]) / (seen[-1][0] - seen[0][0])

    def _bytes_of(self, order: Order) -> int:
        cached = self._cached(order)
        whole = [(file, cached.path_of(file.file)) for file in order.files]
        return sum(path.stat().st_size if path else cached.partial_bytes(file.file) for file, path in whole)

    def _cached(self, order: Order) -> Cached:
        return Cached(order.model.repo, self.cache)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _items(value: object) -> Sequence[object]:
    return value if isinstance(value, list) else ()
