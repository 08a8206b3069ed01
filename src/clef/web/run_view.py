"""Turns a run into what its page shows: its summary, and its rows ranked by confidence, filtered and cut into pages.

A view is made once for each state of a run and then read many times; ranking is the expensive part.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import urlencode

from clef.decisions.examples import Outcome
from clef.runs.recent import Run
from clef.statistics.summary import BAND_EDGES, Summary, band_of, summarise

PAGE_ROWS = 100
"""Rows of one page."""
IN_THREAD = 2_000
"""Outcomes from which a view is made in a thread, so that no other request waits for it."""
KEPT = 8
"""Views kept; as many as there are runs."""
RESTS = 10
"""A view of a run under way is used for this many times the time that it took to make, so that looking at a long run
never costs it more than a tenth."""
FEW = 20
"""Answered rows below which a share says little."""

SHOWS: dict[str, Callable[[Outcome], bool]] = {
    "all": lambda outcome: True,
    "wrong": lambda outcome: outcome.correct is False,
    "errors": lambda outcome: outcome.failure is not None,
    "ties": lambda outcome: outcome.answer is not None and outcome.answer.tie,
    "unlabelled": lambda outcome: outcome.example.label is None,
}
"""Which outcomes each filter keeps."""


@dataclass(frozen=True, slots=True)
class Filter:
    """What of a run is looked at; its query string is the page's address."""

    show: str = "all"
    question: int | None = None
    """Place of the question among the table's, from 1."""
    band: int | None = None
    """Place of the band of top probability, from 1."""
    page: int = 1

    @classmethod
    def read(cls, query: Mapping[str, str], questions: int) -> "Filter":
        """The filter in a query string; what cannot be meant is left out."""
        return cls(
            show=query["show"] if query.get("show") in SHOWS else "all",
            question=_number(query.get("question"), questions),
            band=_number(query.get("band"), len(BAND_EDGES) - 1),
            page=_number(query.get("page")) or 1,
        )

    def query(self, **changes: object) -> str:
        """The query string of this filter with changes; the page starts again unless it is what changes."""
        values = {"show": self.show, "question": self.question, "band": self.band, "page": 1} | changes
        plain = {"show": "all", "page": 1}
        said = {name: value for name, value in values.items() if value is not None and value != plain.get(name)}
        return f"?{urlencode(said)}" if said else "?"


@dataclass(frozen=True, slots=True)
class Rows:
    """One page of rows; each has its number among the outcomes, by which its details are fetched."""

    items: list[tuple[int, Outcome]]
    first: int
    """Rank of the first row, from 1; 0 where there is none."""
    total: int
    pages: int
    page: int
    counts: dict[str, int]
    """Rows each value of `show` would keep, the other filters as they are."""

    @property
    def last(self) -> int:
        """Rank of the last row of this page."""
        return self.first + len(self.items) - 1 if self.items else 0


class RunView:
    """A run as it stood when the view was made."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.state = run.state
        self.outcomes: Sequence[Outcome] = tuple(run.outcomes)
        self.names = tuple(dict.fromkeys(example.question_name for example in run.examples))
        self.fresh_until = 0.0
        self._kept: dict[tuple[int | None, int | None], dict[str, list[int]]] = {}

    @property
    def is_large(self) -> bool:
        """Whether to work on it in a thread, so that no other request waits."""
        return len(self.outcomes) >= IN_THREAD

    @cached_property
    def summary(self) -> Summary:
        """What the run measured so far; in the table's order, so that nothing depends on which row came back first."""
        return summarise(sorted(self.outcomes, key=lambda outcome: outcome.example.row))

    @cached_property
    def order(self) -> list[int]:
        """Numbers of the outcomes, most confident first, failures last; equal ones as in the table."""

        def key(number: int) -> tuple[bool, float, int]:
            answer = self.outcomes[number].answer
            return answer is None, -answer.rank if answer else 0.0, self.outcomes[number].example.row

        return sorted(range(len(self.outcomes)), key=key)

    def prepare(self) -> "RunView":
        """Compute what is expensive, and return the view itself."""
        started = time.monotonic()
        _ = self.summary, self.order, self._kept_by(None, None)
        took_s = time.monotonic() - started
        self.fresh_until = started + took_s + RESTS * took_s
        return self

    @property
    def baseline(self) -> float | None:
        """Accuracy of always giving each question's most frequent label, over the answered rows."""
        return self._over_questions([question.majority_share for question in self.summary.questions])

    @property
    def chance(self) -> float | None:
        """Accuracy of guessing evenly, over the answered rows."""
        return self._over_questions([question.chance for question in self.summary.questions])

    def rows(self, chosen: Filter) -> Rows:
        """The page of rows that a filter leads to; a page beyond the last one is the last one."""
        kept = self._kept_by(chosen.question, chosen.band)
        numbers = kept[chosen.show]
        pages = max(1, -(-len(numbers) // PAGE_ROWS))
        page = min(chosen.page, pages)
        start = (page - 1) * PAGE_ROWS
        items = [(number, self.outcomes[number]) for number in numbers[start : start + PAGE_ROWS]]
        counts = {show: len(found) for show, found in kept.items()}
        return Rows(items, start + 1 if items else 0, len(numbers), pages, page, counts)

    def _kept_by(self, question: int | None, band: int | None) -> dict[str, list[int]]:
        """The numbers that each value of `show` keeps, in order, within a question and a band."""
        found = self._kept.get((question, band))
        if found is None:
            within = [number for number in self.order if self._is_within(self.outcomes[number], question, band)]
            found = {show: [n for n in within if keeps(self.outcomes[n])] for show, keeps in SHOWS.items()}
            self._kept[question, band] = found
        return found

    def _is_within(self, outcome: Outcome, question: int | None, band: int | None) -> bool:
        if question is not None and self.names[question - 1] != outcome.example.question_name:
            return False
        if band is None:
            return True
        answer = outcome.answer
        return outcome.correct is not None and answer is not None and band_of(answer.top_probability) == band - 1

    def _over_questions(self, shares: Sequence[float | None]) -> float | None:
        weighted = [
            (share, question.rate.count)
            for share, question in zip(shares, self.summary.questions, strict=True)
            if share is not None
        ]
        total = sum(count for _, count in weighted)
        return sum(share * count for share, count in weighted) / total if total else None


def _number(text: str | None, most: int = 10**9) -> int | None:
    """A number from 1 to `most`, or None."""
    number = int(text) if text is not None and text.isdecimal() and len(text) < 10 else 0
    return number if 1 <= number <= most else None


class RunViews:
    """The views of the last few runs, each made again when its run has moved on."""

    def __init__(self, kept: int = KEPT) -> None:
        self._kept = kept
        self._views: OrderedDict[str, RunView] = OrderedDict()

    async def of(self, run: Run) -> RunView:
        """The view of a run as it stands now."""
        view = self._views.get(run.id)
        if view is None or self._is_old(view, run):
            view = RunView(run)
            await asyncio.to_thread(view.prepare) if view.is_large else view.prepare()
            self._views[run.id] = view
        self._views.move_to_end(run.id)
        while len(self._views) > self._kept:
            self._views.popitem(last=False)
        return view

    @staticmethod
    def _is_old(view: RunView, run: Run) -> bool:
        if view.state != run.state:
            return True
        return len(view.outcomes) != len(run.outcomes) and time.monotonic() >= view.fresh_until
