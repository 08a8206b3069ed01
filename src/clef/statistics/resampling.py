"""Turns rows into what a repetition of the study would have measured: the bootstrap, by whole states.

Every number we give a bootstrap interval is a function of sums over rows. So rows are summed within their state once,
and a repetition draws as many states as there are, with replacement, and adds their sums. Rows that share a state
stay together, since they are not independent. Seeds are fixed: the same outcomes give the same interval.

Source: B. Efron and R. J. Tibshirani, "An Introduction to the Bootstrap" (1993), percentile intervals, chapter 13;
resampling whole clusters: A. C. Davison and D. V. Hinkley, "Bootstrap Methods and their Application" (1997), 3.8.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from clef.statistics.intervals import LEVEL, Estimate, Interval, undefined

if TYPE_CHECKING:
    from clef.statistics.columns import Floats, Ints

DRAWS = 1000
"""Repetitions where each is cheap."""
SEED = 20_260_101
"""Of every simulation, so that a report made again says the same."""
NO_ROWS = "no row has both a label and an answer"
_CELLS = 1_600_000
"""Weights held at once."""
_MANY, _FEW_DRAWS = 20_000, 200
"""From so many states on an interval is so narrow that the noise of fewer repetitions is not seen."""
_NORMAL_FROM = 200_000
"""States from which on the sums are drawn from their normal limit, which no interval can tell from the bootstrap."""
_ROWS_DRAWN = 40_000_000
_WORTH = 10
"""States a distinct sum from which on it is faster to draw how often each sum occurs: the same distribution."""


def state_sums(state: Ints, values: Floats) -> Floats:
    """The columns of `values`, rows x k, summed within each state: states x k."""
    import numpy as np

    found, place = np.unique(state, return_inverse=True)
    if len(found) == len(state):
        return values
    return np.stack([np.bincount(place, column, minlength=len(found)) for column in values.T], axis=1)


def replicates(sums: Floats, draws: int = DRAWS, seed: int = SEED) -> Floats:
    """Totals of `draws` bootstrap samples of the states' sums, states x k: draws x k."""
    import numpy as np

    rng = np.random.default_rng(seed)
    states = len(sums)
    sample = sums[:: max(1, states // 2000)]
    if len(np.unique(sample, axis=0)) * _WORTH <= len(sample):
        patterns, counts = np.unique(sums, axis=0, return_counts=True)
        if len(patterns) * _WORTH <= states:
            return rng.multinomial(states, counts / states, size=draws) @ patterns
    if states >= _NORMAL_FROM:
        spread = np.atleast_2d(np.cov(sums.T, bias=True)) * states
        return rng.multivariate_normal(sums.sum(axis=0), spread, size=draws, method="eigh")
    found = np.empty((draws, sums.shape[1]))
    batch = max(1, min(draws, _CELLS // max(states, 1)))
    for first in range(0, draws, batch):
        rows = min(batch, draws - first)
        drawn = rng.integers(0, states, (rows, states), dtype=np.int64) + states * np.arange(rows)[:, None]
        weights = np.bincount(drawn.ravel(), minlength=rows * states).reshape(rows, states)
        found[first : first + rows] = weights.astype(np.float64) @ sums
    return found


def draws_for(rows: int, most: int) -> int:
    """Repetitions for a table, `most` unless it is so large that fewer say the same; at least 50."""
    return max(50, min(most, _ROWS_DRAWN // max(rows, 1)))


def row_weights(state: Ints, draws: int, seed: int = SEED) -> Iterator[Floats]:
    """For each of `draws` samples, how often each row is in it; rows with 0 are out of the bag."""
    import numpy as np

    rng = np.random.default_rng(seed)
    found, place = np.unique(state, return_inverse=True)
    for _ in range(draws):
        drawn = rng.integers(0, len(found), len(found), dtype=np.int32)
        yield np.bincount(drawn, minlength=len(found)).astype(np.float64)[place]


def bags(state: Ints, draws: int, left_out: float, seed: int = SEED) -> Iterator[Floats]:
    """For each of `draws` bags, 1 for the rows in it, 0 for those out of it: a share of the states, at least one."""
    import numpy as np

    rng = np.random.default_rng(seed)
    found, place = np.unique(state, return_inverse=True)
    out = max(1, round(len(found) * left_out))
    for _ in range(draws):
        inside = np.ones(len(found))
        inside[rng.permutation(len(found))[:out]] = 0
        yield inside[place]


def percentile_interval(values: Floats) -> Interval | None:
    """The middle LEVEL of what the repetitions measured; None where some could not measure it."""
    import numpy as np

    if not len(values) or not np.isfinite(values).all():
        return None
    low, high = np.quantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(float(low), float(high))


def mean_estimate(values: Floats, state: Ints) -> Estimate:
    """Mean of one value a row with the interval of whole states; no interval from a single state."""
    return mean_estimates([values], state)[0]


def mean_estimates(values: Sequence[Floats], state: Ints, doubts: Sequence[float] | None = None) -> list[Estimate]:
    """The mean of each of several values a row, their intervals from the same bootstrap samples, studentised.

    `doubts` are variances that each mean has besides that of its rows. The percentiles of the means themselves would
    stop short where a few rows carry most of a mean, as they do in a log loss.
    Source: B. Efron and R. J. Tibshirani (1993), bootstrap-t, chapter 12.5.
    """
    import numpy as np

    rows = len(state)
    if not rows:
        return [undefined(NO_ROWS) for _ in values]
    means = [float(one.mean()) for one in values]
    apart = np.stack([*(one - mean for one, mean in zip(values, means, strict=True)), np.ones(rows)], axis=1)
    sums = state_sums(state, apart)
    if len(sums) == 1:
        return [Estimate(mean, None, rows, "one state has no interval") for mean in means]
    errors = _standard_errors(sums.sum(axis=0), (sums**2).sum(axis=0), (sums * sums[:, -1:]).sum(axis=0))
    every = np.concatenate([sums, sums**2, sums[:, :-1] * sums[:, -1:]], axis=1)
    drawn = replicates(every, DRAWS if len(sums) <= _MANY else _FEW_DRAWS)
    wide = sums.shape[1]
    totals, squares = drawn[:, :wide].T, drawn[:, wide : 2 * wide].T
    shifts = totals[:-1] / totals[-1]
    spreads = _standard_errors(totals, squares, np.concatenate([drawn[:, 2 * wide :].T, squares[-1:]]))
    found = []
    for place, mean in enumerate(means):
        reach = float(errors[place] ** 2 + (doubts[place] if doubts else 0.0)) ** 0.5
        interval = _studentised(mean, reach, shifts[place], spreads[place])
        inside = Interval(max(interval.low, float(values[place].min())), min(interval.high, float(values[place].max())))
        found.append(Estimate(mean, inside, rows))
    return found


def variance_of_mean(values: Floats, state: Ints) -> float:
    """Variance of the mean of one value a row, between whole states."""
    import numpy as np

    sums = state_sums(state, np.stack([values - values.mean(), np.ones(len(values))], axis=1))
    return float(_standard_errors(sums.sum(axis=0), (sums**2).sum(axis=0), (sums * sums[:, -1:]).sum(axis=0))[0] ** 2)


def _standard_errors(totals: Floats, squares: Floats, products: Floats) -> Floats:
    """Standard error of each mean from sums over states: of the values, of squares, and of value times rows.

    The last of each is of the rows themselves; further axes are samples.
    """
    import numpy as np

    shift = totals[:-1] / totals[-1]
    found: Floats = np.sqrt(np.maximum(squares[:-1] - 2 * shift * products[:-1] + shift**2 * squares[-1], 0.0))
    found /= totals[-1]
    return found


def _studentised(mean: float, error: float, shifts: Floats, spreads: Floats) -> Interval:
    """The mean less the error times the outer ratios of shift to spread; percentiles where a sample has no spread."""
    import numpy as np

    tails = [(1 - LEVEL) / 2, (1 + LEVEL) / 2]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(shifts == 0, 0.0, shifts / spreads)
    low, high = np.quantile(ratios, tails, method="closest_observation").tolist()
    if not (np.isfinite(low) and np.isfinite(high)):
        low, high = np.quantile(shifts, tails).tolist()
        return Interval(mean + low, mean + high)
    return Interval(min(mean, mean - error * high), max(mean, mean - error * low))
