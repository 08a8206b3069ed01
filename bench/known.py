"""Turns models whose truth is known into tables, and what was measured of many tables into rows of a report.

Two models of a two-way question: a calibrated one, right with exactly its top probability, and one that is too sure.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from clef.decisions.answers import Answer
from clef.decisions.examples import Example, Outcome
from clef.decisions.questions import Choice, Noul
from clef.statistics.columns import Columns, as_columns
from clef.statistics.intervals import Interval, wilson
from clef.statistics.methods import Method

Floats = NDArray[np.float64]
Row = tuple[str, str, str]
QUESTION = Choice("Which?", ["a", "b"])
NOUL = Noul("Is it?")
NOUL_YES = 0.3
"""Share of yes among the predictions of a noul."""
POPULATION = 400_000
RISK = 0.1


@dataclass(frozen=True)
class Model:
    """A model of which it is known how often it is right at each top probability."""

    name: str
    right_at: Callable[[Floats], Floats]

    def tops(self, rng: np.random.Generator, rows: int) -> Floats:
        """Top probabilities: from one half up, many close to 1."""
        return 0.5 + 0.5 * rng.beta(1.6, 0.8, rows)

    def table(self, rng: np.random.Generator, rows: int) -> list[Outcome]:
        """Labelled outcomes, a state each."""
        tops = self.tops(rng, rows)
        return outcomes_of(tops, rng.random(rows) < self.right_at(tops))

    def shared(self, rng: np.random.Generator, rows: int, copies: int) -> list[Outcome]:
        """Outcomes of states that have so many rows each, alike in top probability and in being right.

        Each row by itself is as one of `table`: a Gaussian copula ties those of a state.
        """
        from scipy.special import betaincinv, ndtr

        def tied(share: float) -> Floats:
            common = np.repeat(rng.normal(size=rows // copies), copies)
            found: Floats = ndtr(share**0.5 * common + (1 - share) ** 0.5 * rng.normal(size=rows))
            return found

        tops = 0.5 + 0.5 * betaincinv(1.6, 0.8, tied(0.6))
        return outcomes_of(tops, tied(0.4) < self.right_at(tops), copies)

    def noul(self, rng: np.random.Generator, rows: int) -> list[Outcome]:
        """Labelled outcomes of a yes/no question, a state each; three in ten predictions are yes."""
        tops = self.tops(rng, rows)
        right, yes = rng.random(rows) < self.right_at(tops), rng.random(rows) < NOUL_YES
        return [
            Outcome(
                Example(f"{at}", NOUL, int(yes[at] != right[at]), row=at + 2, question_name="q"),
                Answer("noul", NOUL.answers, (top, 1 - top) if yes[at] else (1 - top, top)),
            )
            for at, top in enumerate(tops.tolist())
        ]

    @cached_property
    def population(self) -> tuple[Floats, Floats]:
        """Top probabilities of many rows, rising, and the accuracy of all rows from each on."""
        tops = np.sort(self.tops(np.random.default_rng(0), POPULATION))
        return tops, (self.right_at(tops)[::-1].cumsum() / np.arange(1, POPULATION + 1))[::-1]

    @cached_property
    def unseen(self) -> tuple[Columns, Floats]:
        """Rows at even steps of the population, and how often each is right."""
        tops = self.population[0][POPULATION // 8000 :: POPULATION // 4000]
        columns = as_columns(self.table(np.random.default_rng(5), len(tops))).judged
        return columns.with_probabilities(np.stack([tops, 1 - tops], axis=1).ravel()), self.right_at(tops)

    def truth(self, threshold: float) -> tuple[float, float]:
        """Coverage and accuracy above a threshold, in a large population."""
        tops, accuracy = self.population
        place = min(int(np.searchsorted(tops, threshold)), POPULATION - 1)
        return 1 - place / POPULATION, float(accuracy[place])


def outcomes_of(tops: Floats, right: NDArray[np.bool_], copies: int = 1) -> list[Outcome]:
    """Outcomes of a two-way question with these top probabilities; so many rows in turn share a state."""
    return [
        Outcome(
            Example(f"{at // copies}", QUESTION, 0 if hit else 1, row=at + 2, question_name="q"),
            Answer("choice", QUESTION.answers, (top, 1 - top)),
        )
        for at, (top, hit) in enumerate(zip(tops.tolist(), right.tolist(), strict=True))
    ]


CALIBRATED = Model("calibrated", lambda p: p)
TOO_SURE = Model("too sure", lambda p: 1 - 0.5**0.4 * (1 - p) ** 0.6)
FLAT = Model(f"right {1 - RISK - 0.001:.1%} everywhere", lambda p: np.full_like(p, 1 - RISK - 0.001))
WORSE_WHEN_SURE = Model("worse when sure", lambda p: 1 - RISK - 0.15 * (p - 0.75))
MODELS = (CALIBRATED, TOO_SURE)
RECALIBRATED: tuple[Method, ...] = ("temperature", "isotonic", "beta")


def shown(hits: list[bool]) -> str:
    """A share with the simulation's own 95 % interval."""
    low, high = wilson(sum(hits), len(hits))
    return f"{sum(hits) / len(hits):.1%} ({low:.1%} to {high:.1%}, {len(hits)} tables)"


def holds(interval: Interval | None, truth: float) -> bool:
    """Whether an interval covers the truth."""
    return interval is not None and interval.low <= truth <= interval.high


def points(values: list[float]) -> str:
    """A mean with its standard error, in points."""
    spread = np.std(values, ddof=1) / len(values) ** 0.5
    return f"{np.mean(values) * 100:+.2f} ± {spread * 100:.2f} points"
