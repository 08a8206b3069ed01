"""Turns the outcomes of score questions into measures that know their levels are ordered.

A score's prediction is its most likely level; its expected level and its whole distribution count as well. Levels are
numbered from 0. Other questions are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from clef.statistics.columns import Columns, Outcomes, as_columns
from clef.statistics.intervals import Estimate, Rate, undefined
from clef.statistics.rates import rate
from clef.statistics.resampling import NO_ROWS, mean_estimate, percentile_interval, replicates, state_sums

if TYPE_CHECKING:
    from clef.statistics.columns import Floats


@dataclass(frozen=True, slots=True)
class OrdinalSummary:
    """How far one score question's answers are from its labels."""

    question: str
    levels: int
    exact: Rate
    """Rows whose most likely level is the label."""
    within_one: Rate
    """Rows whose most likely level is the label or next to it."""
    mean_error: Estimate
    """Mean |expected level - label|, in levels."""
    kappa: Estimate
    """Quadratic weighted kappa of the most likely level and the label: 1 agreement, 0 chance."""
    ranked_probability_score: Estimate
    """Mean squared distance of the cumulative distributions, 0 (best) to 1."""
    failed: int
    unlabelled: int
    ties: int

    def to_dict(self) -> dict[str, object]:
        """The summary as JSON; what is undefined is null with its reason."""
        return {
            "question": self.question,
            "levels": self.levels,
            "failed": self.failed,
            "unlabelled": self.unlabelled,
            "ties": self.ties,
            "exact": self.exact.to_dict(),
            "within_one": self.within_one.to_dict(),
            "mean_error": self.mean_error.to_dict(),
            "kappa": self.kappa.to_dict(),
            "ranked_probability_score": self.ranked_probability_score.to_dict(),
        }


def ordinal(outcomes: Outcomes) -> tuple[OrdinalSummary, ...]:
    """One summary a score question, in the order of their first row."""
    columns = as_columns(outcomes)
    parts = enumerate(columns.by_question())
    return tuple(_summary(part, place) for place, part in parts if columns.types[place] == "score")


def expected_levels(judged: Columns) -> Floats:
    """Expected level of each row: the sum of level times probability."""
    import numpy as np

    sums = np.bincount(judged.flat_row, judged.flat * judged.flat_position, minlength=len(judged.row))
    return sums.astype(np.float64)


def ranked_probability_scores(judged: Columns) -> Floats:
    """For each row Σ (F_k - O_k)² / (levels - 1), F and O the cumulative probabilities of answer and label; 0 to 1.

    Source: E. S. Epstein, "A scoring system for probability forecasts of ranked categories", J. Applied Meteorology 8
    (1969), in the form of A. H. Murphy (1971). 0 where a question has one level.
    """
    import numpy as np

    row, position = judged.flat_row, judged.flat_position
    total = judged.flat.cumsum()
    before = np.concatenate([[0.0], total])[judged.starts] if len(row) else total
    reached = position >= judged.label[row]
    distance = (total - before[row] - reached) ** 2
    distance[position == judged.sizes[row] - 1] = 0.0  # both have reached 1 at the last level, but for rounding
    return np.bincount(row, distance, minlength=len(judged.row)) / np.maximum(judged.sizes - 1, 1)


def quadratic_kappa(judged: Columns) -> Estimate:
    """1 - Σ (label - level)² / Σ expected by chance from the margins; undefined where either is constant.

    Where every label or every prediction is one level it is 0 or 0/0 whatever the agreement, so it says nothing.
    Source: J. Cohen, "Weighted kappa", Psychological Bulletin 70 (1968).
    """
    import numpy as np

    label, level, count = judged.label, judged.predicted, len(judged.row)
    if not count:
        return undefined(NO_ROWS)
    for what, values in (("label", label), ("prediction", level)):
        if (values == values[0]).all():
            return undefined(f"every {what} is the same level", count)
    a, b = label.astype(np.float64), level.astype(np.float64)
    columns = np.stack([np.ones(count), a, b, a * a, b * b, a * b], axis=1)
    interval = percentile_interval(_kappa(replicates(state_sums(judged.state, columns))))
    reason = None if interval else "some bootstrap samples have one level only"
    return Estimate(float(_kappa(columns.sum(axis=0))), interval, count, reason)


def _kappa(sums: Floats) -> Floats:
    """Kappa from Σ1, Σa, Σb, Σa², Σb², Σab: both sums of squares follow from them. NaN where undefined."""
    import numpy as np

    count, a, b, aa, bb, ab = np.moveaxis(sums, -1, 0)
    observed = aa + bb - 2 * ab
    by_chance = aa + bb - 2 * a * b / count
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(by_chance > 0, 1 - observed / by_chance, np.nan))


def _summary(columns: Columns, place: int) -> OrdinalSummary:
    import numpy as np

    judged = columns.judged
    distance = np.abs(judged.predicted - judged.label)
    return OrdinalSummary(
        question=columns.names[place],
        levels=int(columns.sizes.max(initial=0)),
        exact=rate(distance == 0, judged.state),
        within_one=rate(distance <= 1, judged.state),
        mean_error=mean_estimate(np.abs(expected_levels(judged) - judged.label), judged.state),
        kappa=quadratic_kappa(judged),
        ranked_probability_score=mean_estimate(ranked_probability_scores(judged), judged.state),
        failed=int((columns.labelled & ~columns.answered).sum()),
        unlabelled=int((~columns.labelled).sum()),
        ties=int(judged.tie.sum()),
    )
