"""Turns the work of a command into work of this process: its own store and engine, opened when first needed."""

from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clef.cli.service import Made, TableSource
from clef.decisions.examples import Reply, Request
from clef.engines.engine import EngineFacts
from clef.engines.opening import ChosenEngine
from clef.settings import Settings

if TYPE_CHECKING:  # the store costs start-up time, and `clef ask` needs none
    from clef.runs.queue import RunQueue
    from clef.runs.store import Store


class Here:
    """This process does the work."""

    where: str | None = None

    def __init__(self, settings: Settings, *, writes: bool) -> None:
        """One that `writes` has the data folder to itself as long as it is open."""
        self._settings = settings
        self._writes = writes
        self._engine: ChosenEngine | None = None
        self._kept: Store | None = None
        self._line: RunQueue | None = None

    async def facts(self) -> EngineFacts:
        """Who answers. Raises SettingsError where the settings lead to nobody."""
        engine = self._answering()
        await engine.chosen()
        return await engine.facts()

    async def decide(self, request: Request) -> Reply:
        """Answer a request, waiting for an engine that is coming up."""
        from clef.runs.execute import decide

        return await decide(request, self._answering())

    async def runs(self, search: str = "", limit: int = 50) -> list[dict[str, Any]]:
        """Runs, newest first."""
        return [run.to_dict() for run in await self._store().runs(search=search, limit=limit)]

    async def run(self, run_id: str) -> dict[str, Any]:
        """One run."""
        return (await self._store().get(run_id)).to_dict()

    async def rows(self, run_id: str, chosen: Mapping[str, Any]) -> dict[str, Any]:
        """A page of rows."""
        from clef.runs.narrowing import RowFilter
        from clef.web.lines import row_of

        await self._store().get(run_id)
        page = await self._store().page(run_id, RowFilter(**chosen))
        return {"rows": [row_of(row) for row in page.rows], "total": page.total}

    async def kept(self, run_id: str) -> "Store":
        """The store of this folder."""
        await self._store().get(run_id)
        return self._store()

    async def submit(self, table: TableSource) -> Made:
        """Put a run of a table in line."""
        from clef.errors import InputError
        from clef.runs.remembered import read_as_before
        from clef.runs.store import NewRun

        options = table.reading(max_rows=self._settings.max_rows)
        found = await read_as_before(self._store(), table.path, options)
        examples = found.examples if table.skip_bad_rows else found.require()
        if not examples:
            raise InputError("the table has no row to ask", found.problems)
        if table.mapping:
            await self._store().remember(found.facts.columns, table.mapping)
        new = NewRun(table.path.name, await self.facts(), table.shape, table.note, facts=found.facts.to_dict())
        run = await self._store().create(new, examples)
        await (await self._queue()).enqueue(run.id, patient=False)
        return Made(run.id, run.rows, run.name)

    async def events(self, run_id: str) -> AsyncGenerator[dict[str, Any], None]:
        """How a run goes until it ends."""
        async for event in (await self._queue()).events(run_id):
            yield event.to_dict()

    async def stop(self, run_id: str) -> None:
        """Stop a run; what came back stays."""
        await (await self._queue()).stop(run_id)

    async def go_on(self, run_id: str, *, retry: bool) -> None:
        """Put a run in line again; one that an ended process left under way goes on as well."""
        await self._store().get(run_id)
        await self.facts()
        queue = await self._queue()
        await (queue.retry(run_id, patient=False) if retry else queue.resume(run_id, patient=False))

    async def delete(self, run_id: str) -> None:
        """Put a run away."""
        await self._store().get(run_id)
        await self._store().delete(run_id)

    async def export(self, run_id: str, path: Path) -> None:
        """Write a run to a file that another clef takes in."""
        await self._store().export(run_id, path)

    async def take_in(self, path: Path) -> str:
        """Take in the run of such a file."""
        return (await self._store().take_in(path)).id

    async def close(self) -> None:
        """Close what was opened."""
        if self._line is not None:
            await self._line.close()
        if self._engine is not None:
            await self._engine.close()
        if self._kept is not None:
            await self._kept.close()

    def _answering(self) -> ChosenEngine:
        if self._engine is None:
            self._engine = ChosenEngine(self._settings)
            self._engine.start()
        return self._engine

    def _store(self) -> "Store":
        if self._kept is None:
            from clef.runs.database import Database
            from clef.runs.store import Store

            self._kept = Store(Database(self._settings.data_dir / "clef.db", alone=self._writes))
        return self._kept

    async def _queue(self) -> "RunQueue":
        """The line of this process. It takes up nothing that was left: a command does what it was told, no more."""
        if self._line is None:
            from clef.runs.queue import RunQueue

            self._line = RunQueue(self._store(), self._answering(), self._settings.eval_concurrency)
            await self._line.start(take_up=False)
        return self._line
