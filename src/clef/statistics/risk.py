"""Turns outcomes into the risk-coverage curve: how many are wrong among those acted on, at every threshold.

Coverage is of the rows with a label and an answer; ties are never acted on, so it may end below 1.
"""

from __future__ import annotations

from dataclasses import dataclass

from clef.statistics.columns import Outcomes, as_columns
from clef.statistics.intervals import Rate
from clef.statistics.ladder import ladder

POINTS = 400
"""Points a curve is thinned to; the area is of the whole curve."""


@dataclass(frozen=True, slots=True)
class Point:
    """Acting on every answer with at least this top probability."""

    threshold: float
    coverage: float
    rate: Rate
    """Right among those acted on."""

    def to_dict(self) -> dict[str, object]:
        """The point as JSON, with its risk and the rate flat beside it."""
        risk = 1 - self.rate.correct / self.rate.count
        return {"threshold": self.threshold, "coverage": self.coverage, "risk": risk} | self.rate.to_dict()


@dataclass(frozen=True, slots=True)
class RiskCoverage:
    """A risk-coverage curve."""

    count: int
    ties: int
    points: tuple[Point, ...]
    """By falling threshold; coverage rises."""
    area: float | None
    """Mean risk over the rows acted on, each at the coverage that it brings; lower is better."""

    def to_dict(self) -> dict[str, object]:
        """The curve as JSON."""
        reason = None if self.points else "no row with a label and an answer that is no tie"
        points = [point.to_dict() for point in self.points]
        return {"count": self.count, "ties": self.ties, "area": self.area, "reason": reason, "points": points}


def risk_coverage(outcomes: Outcomes) -> RiskCoverage:
    """The curve of all rows given; give those of one question for the curve of a question.

    Source: R. El-Yaniv and Y. Wiener, "On the foundations of noise-free selective classification", JMLR 11 (2010);
    the area weighs each rung by its rows, so equal probabilities have one risk whatever their order.
    """
    import numpy as np

    judged = as_columns(outcomes).judged
    rungs, total = ladder(judged), len(judged.row)
    acted = rungs.counts(np.ones(total))
    right = rungs.counts(judged.correct.astype(np.float64))
    count = len(acted)
    kept = [round(at) for at in np.linspace(0, count - 1, min(count, POINTS)).tolist()]
    points = tuple(
        Point(float(rungs.thresholds[at]), float(acted[at] / total), Rate(int(right[at]), int(acted[at])))
        for at in kept
    )
    area = float(((1 - right / acted) * np.diff(acted, prepend=0)).sum() / acted[-1]) if count else None
    return RiskCoverage(total, int(judged.tie.sum()), points, area)
