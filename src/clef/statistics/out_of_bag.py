"""Turns a rule and the rows it chose a threshold on into what that threshold is worth on others.

The accuracy of a threshold is not read off the rows that chose it: bag by bag the rule chooses again, and is judged on
the rows left out. Its coverage is, since how many rows lie above a threshold hardly depends on what chose it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from clef.statistics.intervals import Estimate, Interval, clopper_pearson
from clef.statistics.ladder import Ladder, Rule
from clef.statistics.rates import rate
from clef.statistics.resampling import bags, draws_for

if TYPE_CHECKING:
    from clef.statistics.columns import Bools, Columns, Floats, Ints

DRAWS = 300
LEFT_OUT = 0.1
"""Share of the states that each bag leaves out to be judged."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What bags tell of a rule: of the rows left out of each, how many are acted on, the right ones, and all."""

    acted: Floats
    right: Floats
    out: Floats
    spread: float
    """Variance, between the thresholds that the bags choose, of the accuracy on all rows."""

    @property
    def accuracy(self) -> float:
        """Mean over the bags that act; one must. Pooled, bags that act on more and worse rows would weigh more."""
        acting = self.acted > 0
        return float((self.right[acting] / self.acted[acting]).mean())


def out_of_bag(judged: Columns, rungs: Ladder, rule: Rule) -> Seen:
    """What the rule does on rows left out of each bag.

    Bags are drawn without doubles, which mislead a rule more than the table does.
    Source: D. N. Politis and J. P. Romano, Annals of Statistics 22 (1994), subsampling.
    """
    import numpy as np

    right = judged.correct.astype(np.float64)
    share = rungs.counts(right) / rungs.counts(np.ones(len(right)))
    draws = draws_for(len(right), DRAWS)
    acted, hits, out = np.zeros((3, draws))
    shares = []
    for bag, weights in enumerate(bags(judged.state, draws, LEFT_OUT)):
        left = 1 - weights
        out[bag] = left.sum()
        inside = rungs.counts(weights)
        rung = rule.rung(inside, rungs.counts(weights * right), float(weights.sum()))
        if rung is not None:
            rung = int(np.searchsorted(inside, inside[rung]))  # at a row of the bag, not at one left out
            acted[bag] = rungs.counts(left)[rung]
            hits[bag] = rungs.counts(left * right)[rung]
            shares.append(share[rung])
    return Seen(acted, hits, out, float(np.var(shares)) if shares else 0.0)


def coverage_of(inside: Bools, state: Ints) -> Estimate:
    """The share of new rows, drawn as these were, that the very thresholds given out act on, with its exact interval.

    `inside` says of each row at hand whether they act on it. A review budget sets a threshold at a quantile of the
    rows, whose noise is binomial; other rules choose it by labels, which say little of how many rows lie above. By
    simulation the share is off by under half a point (docs/metrics.md). The mean of what the bags' thresholds act on
    would be about other thresholds; an exact interval around it covers 85 to 94 %.
    Source: C. J. Clopper and E. S. Pearson, Biometrika 26 (1934); rows of shared states count for what they are worth.
    """
    found = rate(inside, state)
    return Estimate(found.value, Interval(*found.exact) if found.exact else None, found.count)


def accuracy_of(share: float, correct: Bools, state: Ints, spread: float) -> Estimate:
    """A share right out of bag, with the exact interval of as many rows as its variance is worth.

    `correct` and `state` are of the rows acted on. Its variance is theirs, and `spread`: where the optimum of a rule is
    flat, as that of a cost is, another table would have chosen another threshold. Without it the interval of a cheapest
    gate covers 89 to 95 %, with it 93 to 98 %.
    """
    found = rate(correct, state)
    share = 1.0 if share > 1 - 1e-9 else share  # a sum of shares that are all 1 may fall short of it
    worth = float(found.count) if found.effective is None else found.effective
    typical = (share * worth + 1) / (worth + 2)  # has a variance where all or none are right
    own = typical * (1 - typical) / worth
    worth *= own / (own + spread)
    return Estimate(share, Interval(*clopper_pearson(share * worth, worth)), found.count)
