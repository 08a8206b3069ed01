"""Turns an evaluation into a Run that can be looked at and exported while the process lives.

Only the last few are kept, in memory.
"""

import secrets
from collections import OrderedDict
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from clef.decisions.examples import Example, Outcome
from clef.engines.engine import Engine, EngineFacts
from clef.errors import ClefError, NotFound
from clef.runs.execute import outcomes

RunState = Literal["running", "finished", "stopped", "failed"]
KEPT = 8
"""Runs kept in memory."""


@dataclass(slots=True)
class Run:
    """One evaluation: its examples, and the outcomes that have come back so far."""

    id: str
    name: str
    examples: tuple[Example, ...]
    engine: EngineFacts
    table: dict[str, Any]
    """What the table reader understood, as shown in its preview."""
    created: datetime
    state: RunState = "running"
    reason: str | None = None
    """Why it was cut, where it was."""
    outcomes: list[Outcome] = field(default_factory=list)
    """In the order they finished."""

    @property
    def in_table_order(self) -> list[Outcome]:
        """The outcomes by row; of one row, in the order of its questions."""
        return sorted(self.outcomes, key=lambda outcome: outcome.example.row)

    async def execute(self, engine: Engine, concurrency: int) -> AsyncGenerator[Outcome, None]:
        """Ask every example, keeping each outcome as it comes. Closing the iteration early stops the run."""
        source = outcomes(self.examples, engine, concurrency)
        try:
            async for outcome in source:
                self.outcomes.append(outcome)
                yield outcome
            self.state, self.reason = "finished", None
        except ClefError as error:
            self.state, self.reason = "failed", f"{error.message} ({error.hint})" if error.hint else error.message
            raise
        finally:
            if self.state == "running":
                self.state, self.reason = "stopped", "the client went away"
            await source.aclose()


class RecentRuns:
    """The last few runs, newest first."""

    def __init__(self, kept: int = KEPT) -> None:
        self._kept = kept
        self._runs: OrderedDict[str, Run] = OrderedDict()

    def create(self, name: str, examples: Sequence[Example], engine: EngineFacts, table: dict[str, Any]) -> Run:
        """A new run, which pushes the oldest one out when there are too many."""
        run = Run(secrets.token_hex(4), name, tuple(examples), engine, table, datetime.now(UTC))
        self._runs[run.id] = run
        while len(self._runs) > self._kept:
            self._runs.popitem(last=False)
        return run

    def get(self, run_id: str) -> Run:
        """The run of this id. Raises NotFound."""
        try:
            return self._runs[run_id]
        except KeyError:
            hint = f"the last {self._kept} runs are kept until clef stops"
            raise NotFound(f'no run "{run_id}"', hint=hint) from None

    def newest_first(self) -> list[Run]:
        """Every run that is kept."""
        return list(reversed(self._runs.values()))
