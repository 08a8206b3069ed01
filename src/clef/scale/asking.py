"""Turns a part into its outcomes with an engine of this machine, and writes them: what one worker does.

It knows nothing of the cluster: the same class works in a test, in one process. What goes wrong with the engine or
the folder comes back as a Trouble, since it is the crew's to decide who tries again.
"""

from __future__ import annotations

import asyncio
import platform
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from clef.decisions.examples import Outcome
from clef.engines.opening import ChosenEngine
from clef.errors import ClefError, EngineError
from clef.runs.execute import outcomes as outcomes_of
from clef.scale.parts import Part, Receipt, read_receipt, write_part
from clef.scale.task import Task
from clef.settings import load_settings

LOOK_S = 0.2
"""Time between two looks whether an engine is up."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a worker has no answers."""

    kind: Literal["engine", "task"]
    """Whether another engine may do better."""
    message: str
    hint: str | None
    host: str


@dataclass(frozen=True, slots=True)
class Ready:
    """An engine that is up."""

    identity: str
    """Which model answers there."""
    model: str
    host: str


class Asker:
    """One engine, and the parts that it answers one after the other."""

    def __init__(self, task: Task, upstream: str | None = None) -> None:
        """`upstream` is the server that this worker asks; without one its settings choose an engine."""
        self._task = task
        self._upstream = upstream
        self._engine: ChosenEngine | None = None
        self._concurrency = 1

    async def open(self) -> Ready | Trouble:
        """Open the engine and wait until it answers."""
        options = dict(self._task.settings)
        if self._upstream:
            options |= {"engine": "upstream", "upstream": self._upstream}
        try:
            settings = load_settings(**options)
            self._concurrency = settings.eval_concurrency
            self._engine = ChosenEngine(settings)
            self._engine.start()
            await self._engine.chosen()
            facts = await self._engine.facts()
            end = time.monotonic() + settings.ready_timeout
            while facts.phase in ("starting", "loading") and time.monotonic() < end:
                await asyncio.sleep(LOOK_S)
                facts = await self._engine.facts()
        except ClefError as error:
            return _trouble("engine", error)
        if facts.phase != "ready":
            return Trouble("engine", facts.message or f"the engine is {facts.phase}", facts.hint, platform.node())
        return Ready(facts.identity, facts.model or "", platform.node())

    async def ask(self, part: Part) -> Receipt | Trouble:
        """Ask a part and write what came back; a part that is done already is not asked."""
        assert self._engine is not None
        try:
            done = await asyncio.to_thread(read_receipt, self._task.folder, part.name)
            if done is not None:
                return done
            started = time.perf_counter()
            at, examples = part.examples()
            source = outcomes_of(examples, self._engine, self._concurrency, self._task.shape)
            outcomes = [(at[place], outcome) async for place, outcome in source]
            receipt = receipt_of(part.name, [outcome for _, outcome in outcomes], time.perf_counter() - started)
            await asyncio.to_thread(write_part, self._task, part, outcomes, receipt)
        except EngineError as error:
            return _trouble("engine", error)
        except ClefError as error:
            return _trouble("task", error)
        return receipt

    async def close(self) -> None:
        """Stop the engine."""
        if self._engine is not None:
            await self._engine.close()


def receipt_of(name: str, outcomes: Sequence[Outcome], seconds: float) -> Receipt:
    """What a part's outcomes came to."""
    correct: dict[str, int] = {}
    judged: dict[str, int] = {}
    for outcome in outcomes:
        if outcome.correct is not None:
            question = outcome.example.question_name
            judged[question] = judged.get(question, 0) + 1
            correct[question] = correct.get(question, 0) + outcome.correct
    answered = sum(outcome.answer is not None for outcome in outcomes)
    model = next((outcome.model for outcome in outcomes if outcome.model), "")
    failed = len(outcomes) - answered
    return Receipt(name, len(outcomes), answered, failed, correct, judged, model, platform.node(), round(seconds, 3))


def _trouble(kind: Literal["engine", "task"], error: ClefError) -> Trouble:
    return Trouble(kind, error.message, error.hint, platform.node())
