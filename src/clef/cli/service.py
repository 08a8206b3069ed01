"""Turns a command's needs into whoever does the work: a clef that serves this data folder, or this process.

Commands see one protocol. `Here` opens the store and the engine when they are first needed, and closes both;
`There` goes through the HTTP API of the clef that runs, with its engine, its line and its store.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

from clef.decisions.examples import Reply, Request, Shape
from clef.engines.engine import EngineFacts
from clef.errors import SettingsError
from clef.running import Running, find
from clef.settings import load_settings

if TYPE_CHECKING:
    from clef.runs.store import Store
    from clef.tables import ReadOptions

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TableSource:
    """A table file, and how it is to be read and run."""

    path: Path
    encoding: str | None = None
    separator: str | None = None
    sheet: str | None = None
    mapping: Mapping[str, str] = field(default_factory=dict)
    """Role → column header."""
    questions: Path | None = None
    """Typed questions, for a table of labels only."""
    skip_bad_rows: bool = False
    shape: Shape = "isolated"
    note: str = ""

    def reading(self, **more: Any) -> "ReadOptions":
        """How it is to be read, here on its own machine: images may lie beside it."""
        from clef.tables import ReadOptions, read_question_set

        return ReadOptions(
            encoding=self.encoding,
            separator=self.separator,
            sheet=self.sheet,
            mapping=self.mapping,
            questions=read_question_set(self.questions) if self.questions else None,
            beside=True,
            **more,
        )


@dataclass(frozen=True, slots=True)
class Made:
    """A run that is in line, and what its reader warned of."""

    id: str
    rows: int
    name: str


class Service(Protocol):
    """Who does the work of a command. Runs are JSON as `GET /api/runs` gives them."""

    where: str | None
    """Address of the clef that does it; None where this process does."""

    async def facts(self) -> EngineFacts:
        """Who answers, once that is known."""
        ...

    async def decide(self, request: Request) -> Reply:
        """Answer a request. Raises EngineError, or InputError for what cannot be asked."""
        ...

    async def runs(self, search: str = "", limit: int = 50) -> list[dict[str, Any]]:
        """Runs, newest first."""
        ...

    async def run(self, run_id: str) -> dict[str, Any]:
        """One run. Raises NotFound."""
        ...

    async def rows(self, run_id: str, chosen: Mapping[str, Any]) -> dict[str, Any]:
        """A page of rows: `rows`, `total`; `chosen` are the query parameters of `GET /api/runs/{id}/rows`."""
        ...

    async def kept(self, run_id: str) -> "Store":
        """A store to read this run from. Raises NotFound."""
        ...

    async def submit(self, table: TableSource) -> Made:
        """Put a run of a table in line. Raises InputError with every problem of the table."""
        ...

    def events(self, run_id: str) -> AsyncGenerator[dict[str, Any], None]:
        """How a run goes until it ends: `state`, `done`, `rows`, `failed`, `cached`, `reason`, `rate`, `left_s`."""
        ...

    async def stop(self, run_id: str) -> None:
        """Stop a run; what came back stays."""
        ...

    async def go_on(self, run_id: str, *, retry: bool) -> None:
        """Put a run in line again: its rows without outcome, or with `retry` the failed ones."""
        ...

    async def delete(self, run_id: str) -> None:
        """Put a run away."""
        ...

    async def export(self, run_id: str, path: Path) -> None:
        """Write a run to a file that another clef takes in."""
        ...

    async def take_in(self, path: Path) -> str:
        """Take in the run of such a file; its new id."""
        ...

    async def close(self) -> None:
        """Give everything back."""
        ...


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """The engine that a command line asks for; nothing where any will do."""

    engine: str | None = None
    upstream: str | None = None
    model: str | None = None

    @property
    def given(self) -> dict[str, str]:
        """The options that were given."""
        pairs = {"engine": self.engine, "upstream": self.upstream, "model": self.model}
        return {name: value for name, value in pairs.items() if value is not None}


NO_ENGINE = EngineOptions()
Needs = Literal["decisions", "reading", "writing"]
"""decisions: only the engine; reading: looks at runs; writing: makes or changes runs."""


@asynccontextmanager
async def service(needs: Needs, options: EngineOptions = NO_ENGINE) -> AsyncGenerator[Service, None]:
    """Whoever does the work, closed afterwards.

    A clef that runs does it, unless the command line asks for an engine that it has not: then this process decides,
    and what needs the store is refused. Raises SettingsError, StoreError.
    """
    settings = load_settings(**options.given)
    running = find(settings.data_dir)
    chosen = await _there(running, options, needs) if running else None
    if chosen is None:
        from clef.cli.here import Here

        chosen = Here(settings, writes=needs == "writing")
    try:
        yield chosen
    finally:
        await chosen.close()


def through(needs: Needs, work: Callable[[Service], Awaitable[T]], options: EngineOptions = NO_ENGINE) -> T:
    """What `work` comes to with whoever does it. Raises as `service` does, and what `work` raises."""

    async def whole() -> T:
        async with service(needs, options) as at:
            return await work(at)

    return asyncio.run(whole())


async def _there(running: Running, options: EngineOptions, needs: Needs) -> Service | None:
    """The clef that runs, or None where it is only asked to decide and another engine is wanted."""
    from clef.cli.there import There

    there = There(running)
    if not options.given or _is_same(options, await there.facts()):
        return there
    await there.close()
    if needs == "decisions":
        return None
    said = " ".join(f"--{name} {value}" for name, value in options.given.items())
    hint = f"leave out {said} to use its engine, stop it, or give this command a folder of its own with CLEF_DATA_DIR"
    raise SettingsError(f"a clef at {running.url} keeps this data folder, with another engine", hint=hint)


def _is_same(options: EngineOptions, facts: EngineFacts) -> bool:
    """Whether the engine of a clef that runs is the one asked for."""
    if options.engine not in (None, "auto", facts.kind):
        return False
    if options.upstream is not None and (facts.kind != "upstream" or facts.address != options.upstream.rstrip("/")):
        return False
    return options.model is None or (facts.kind == "llama" and Path(options.model).stem == facts.model)
