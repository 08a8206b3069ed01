"""Turns rows cut into cells (questions, bands, classes, slices) into one rate a cell, honest where rows share a state.

Where every row of a cell has its own state, the rate is the counts. Where rows share states, they are worth fewer
independent rows, and the interval is that of so many: the number comes from the variance of the share between states,
which is what a cluster bootstrap's variance converges to, without its noise. Where all or none are right, that
variance says nothing, and each state counts as one row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from clef.statistics.intervals import LEVEL, Rate

if TYPE_CHECKING:
    from clef.statistics.columns import Bools, Floats, Ints


def rates(correct: Bools, cell: Ints, state: Ints, cells: int) -> tuple[Rate, ...]:
    """One rate a cell. The first three have one entry a row; `cell` is 0 to cells - 1."""
    import numpy as np

    right = np.bincount(cell, correct, minlength=cells)
    count = np.bincount(cell, minlength=cells)
    worth = effective_rows(correct, cell, state, cells)
    return tuple(
        Rate(int(k), int(n), None if np.isnan(w) else float(w)) for k, n, w in zip(right, count, worth, strict=True)
    )


def rate(correct: Bools, state: Ints) -> Rate:
    """The rate of all rows together."""
    import numpy as np

    return rates(correct, np.zeros(len(correct), dtype=np.int64), state, 1)[0]


def effective_rows(correct: Bools, cell: Ints, state: Ints, cells: int) -> Floats:
    """Independent rows that the rows of each cell are worth; NaN where no two of a cell share a state. Never more
    than its rows.

    n / deff, times (t_{n-1} / t_{states-1})² for the few states the variance is known from.
    Source: L. Kish, "Survey Sampling" (1965); E. L. Korn and B. I. Graubard, "Confidence intervals for proportions
    with small expected number of positive counts estimated from survey data", Survey Methodology 24 (1998).
    """
    import numpy as np

    worth = np.full(cells, np.nan)
    pairs, pair = np.unique(cell * (int(state.max(initial=0)) + 1) + state, return_inverse=True)
    count = np.bincount(cell, minlength=cells)
    cell_of = np.zeros(len(pairs), dtype=np.int64)
    cell_of[pair] = cell
    states = np.bincount(cell_of, minlength=cells)
    shared = np.flatnonzero(states < count)
    if not len(shared):
        return worth
    share = np.bincount(cell, correct, minlength=cells) / np.maximum(count, 1)
    excess = np.bincount(pair, correct - share[cell])
    between = np.bincount(cell_of, excess**2, minlength=cells)
    for place in shared:
        n, g, p = int(count[place]), int(states[place]), float(share[place])
        if g == 1 or p in (0.0, 1.0):
            worth[place] = g
            continue
        design = g / (g - 1) * float(between[place]) / (n * p * (1 - p))
        worth[place] = n if design == 0 else min(n, n / design * (t_quantile(n - 1) / t_quantile(g - 1)) ** 2)
    return worth


def t_quantile(degrees: int) -> float:
    """How many standard errors an interval at LEVEL reaches, with so many degrees of freedom."""
    from scipy.special import stdtrit

    return float(stdtrit(degrees, 0.5 + LEVEL / 2))
