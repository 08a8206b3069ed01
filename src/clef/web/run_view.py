"""Turns a stored run and its numbers into what its page shows."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from clef.runs.browse import Page, Row
from clef.runs.measures import SUMMARY
from clef.runs.narrowing import Labels
from clef.runs.store import LIVE, Store, StoredRun
from clef.statistics.summary import summarise
from clef.web.measured import Measured
from clef.web.run_filter import PAGE_ROWS, Filter
from clef.web.runs_api import summary_of

if TYPE_CHECKING:
    from clef.statistics.columns import Columns

IN_THE_BACKGROUND = 5_000
"""Outcomes from which a page does not wait for its numbers but comes again for them."""
PATIENCE_S = 0.05
"""How long a page waits for numbers that may have been kept."""
KEPT = 16
"""Runs whose numbers are kept in memory."""
RESTS = 10
"""Numbers of a run under way are used for this many times the time that they took to count, so that looking at a
long run never costs it more than a tenth; but never once the run has grown twofold."""
FEW = 20
"""Answered rows below which a share says little."""
MOST_LABELS = 200
"""Labels that the filter offers; a search finds the others."""


@dataclass(frozen=True, slots=True)
class Share:
    """A rate as the store keeps it."""

    correct: int = 0
    count: int = 0
    value: float | None = None
    interval: tuple[float, float] | None = None

    @classmethod
    def of(cls, kept: Mapping[str, Any]) -> "Share":
        """The rate in a dictionary that has it flat among its keys."""
        low, high = kept.get("low"), kept.get("high")
        interval = None if low is None or high is None else (low, high)
        return cls(kept.get("correct") or 0, kept.get("count") or 0, kept.get("accuracy"), interval)


@dataclass(frozen=True, slots=True)
class Rows:
    """One page of rows."""

    items: Sequence[Row]
    page: int
    found: Page
    opened: Row | None = None
    """The row that the address opens, among the items or apart from them."""

    @property
    def apart(self) -> Row | None:
        """The row that the address opens where the filter does not lead to it."""
        return None if self.opened is None or self.opened in self.items else self.opened

    @property
    def first(self) -> int:
        """Rank of the first row, from 1; 0 where there is none."""
        return (self.page - 1) * PAGE_ROWS + 1 if self.items else 0

    @property
    def last(self) -> int:
        """Rank of the last row of this page."""
        return self.first + len(self.items) - 1 if self.items else 0

    @property
    def total(self) -> int:
        """Rows that the filter leads to."""
        return self.found.total

    @property
    def pages(self) -> int:
        """Pages that they fill."""
        return pages_of(self.found.total)

    @property
    def counts(self) -> dict[str, int]:
        """Rows that each value of `show` would lead to, the rest of the filter as it is."""
        return self.found.counts


@dataclass(frozen=True)
class RunView:
    """A run with its numbers, as templates read them."""

    run: StoredRun
    summary: Mapping[str, Any] | None
    """None while they are being counted."""
    reviewed: int = 0
    """Rows that a person has looked at."""
    corrected: int = 0
    """Rows among them whose label became another."""

    @property
    def is_live(self) -> bool:
        """Whether it will go on by itself."""
        return self.run.state in LIVE

    @cached_property
    def overall(self) -> Share:
        """Right among all answered rows."""
        return Share.of(self.summary or {})

    @cached_property
    def questions(self) -> list[dict[str, Any]]:
        """The questions of the table, each with its share."""
        return [item | {"share": Share.of(item)} for item in (self.summary or {}).get("questions", ())]

    @cached_property
    def bands(self) -> list[dict[str, Any]]:
        """The bands of top probability, surest first, each with its share."""
        kept = reversed((self.summary or {}).get("bands", ()))
        return [{"low": band["from"], "high": band["to"], "share": Share.of(band)} for band in kept]

    @property
    def labels(self) -> list[str]:
        """The labels that occur."""
        names = dict.fromkeys(one["label"] for item in self.questions for one in item.get("classes", ()))
        return list(names)[:MOST_LABELS]

    @property
    def failed_labelled(self) -> int:
        """Labelled rows that failed."""
        return sum(int(item["failed"]) for item in self.questions)

    @property
    def baseline(self) -> float | None:
        """Accuracy of always giving each question's most frequent label, over all answered rows."""
        return self._over_questions("majority_accuracy")

    @property
    def chance(self) -> float | None:
        """Accuracy of guessing evenly, over all answered rows."""
        return self._over_questions("chance_accuracy")

    def _over_questions(self, name: str) -> float | None:
        weighted = [(item[name], item["share"].count) for item in self.questions if item.get(name) is not None]
        total = sum(count for _, count in weighted)
        return sum(share * count for share, count in weighted) / total if total else None


@dataclass(slots=True)
class _Counted:
    """Numbers in memory, what they are about, and until when they will do."""

    revision: int
    done: int
    """Rows of the run when they were counted."""
    summary: Mapping[str, Any]
    until: float

    def will_do(self, run: StoredRun, now: float) -> bool:
        """Whether they are of the run as it stands, or near enough for one under way."""
        if run.state not in LIVE:
            return self.revision == run.revision
        return now < self.until and run.done <= 2 * self.done


@dataclass
class Summaries:
    """The numbers of runs, counted no more often than needed and, for a large run, never while a page waits."""

    clock: Callable[[], float] = time.monotonic
    _counted: OrderedDict[str, _Counted] = field(default_factory=OrderedDict)
    _counting: dict[str, asyncio.Task[None]] = field(default_factory=dict)

    async def of(self, store: Store, run: StoredRun) -> Mapping[str, Any] | None:
        """The numbers of a run as it stands, or lately stood; None while they are counted for the first time."""
        known = self._counted.get(run.id)
        if known and known.will_do(run, self.clock()):
            return known.summary
        kept = await store.measures.get(run.id, SUMMARY)
        if kept is not None:
            return dict(kept)
        for _ in range(2):  # what is being counted may be what the run was before its last change
            task = self.count(store, run)
            if run.done < IN_THE_BACKGROUND:
                await asyncio.shield(task)
            known = self._counted.get(run.id)
            if known and (run.state in LIVE or known.revision == run.revision):
                return known.summary
        return None

    def count(self, store: Store, run: StoredRun) -> asyncio.Task[None]:
        """Count the numbers of a run, unless that is being done."""
        task = self._counting.get(run.id)
        if task is None:
            task = self._counting[run.id] = asyncio.create_task(self._count(store, run))
            task.add_done_callback(lambda _: self._counting.pop(run.id, None))
        return task

    async def _count(self, store: Store, run: StoredRun) -> None:
        started = self.clock()
        summary = await summary_of(store, run)
        took_s = self.clock() - started
        self._counted[run.id] = _Counted(run.revision, run.done, summary, self.clock() + RESTS * took_s)
        self._counted.move_to_end(run.id)
        while len(self._counted) > KEPT:
            self._counted.popitem(last=False)


async def summary_by(
    summaries: Summaries, measured: Measured, store: Store, run: StoredRun, labels: Labels
) -> Mapping[str, Any] | None:
    """The numbers of a run by a person's labels, or by those of the table; None while they are counted."""
    if labels == "own":
        return await summaries.of(store, run)
    making: asyncio.Task[Mapping[str, Any]] = asyncio.create_task(
        measured.of_columns(run, labels, "page summary", _summary)
    )
    waits = run.done < IN_THE_BACKGROUND or run.state in LIVE  # what is not kept would be counted at each look
    await asyncio.wait([making], timeout=None if waits else PATIENCE_S)
    return making.result() if making.done() else None


def _summary(columns: "Columns") -> Mapping[str, Any]:
    return summarise(columns).to_dict()


async def rows_of(store: Store, run: StoredRun, chosen: Filter) -> Rows:
    """The page of rows that a filter leads to; one beyond the last page leads to the last page.

    An address that opens a row leads to the page which has it.
    """
    if chosen.row is not None:
        before = await store.rank(run.id, chosen.rows, chosen.row)
        chosen = chosen if before is None else replace(chosen, page=before // PAGE_ROWS + 1)
    found = await store.page(run.id, chosen.rows)
    last = pages_of(found.total)
    if chosen.page > last:
        return await rows_of(store, run, replace(chosen, page=last))
    opened = next((row for row in found.rows if row.position == chosen.row), None)
    if opened is None and chosen.row is not None:
        opened = await store.one(run.id, chosen.row, chosen.labels)
    return Rows(found.rows, chosen.page, found, opened)


def pages_of(rows: int) -> int:
    """Pages that so many rows fill, at least one."""
    return max(1, -(-rows // PAGE_ROWS))
