"""Turns top probabilities into bins, and the bins into an expected calibration error with its noise floor.

Invariants: every row is in exactly one bin, 0 and 1 included; rows of equal probability are never in two bins, so
probabilities rounded to two decimals do not make the error vanish. The measure is the top probability, never the
confidence.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from clef.statistics.intervals import LEVEL, Interval, Rate
from clef.statistics.rates import rates
from clef.statistics.resampling import SEED, draws_for, replicates, state_sums

if TYPE_CHECKING:
    from clef.statistics.columns import Columns, Floats, Ints

BINS = 15
"""As in C. Guo et al., "On calibration of modern neural networks", ICML 2017."""
Width = Literal["equal width", "equal mass"]
_DRAWS = 300


@dataclass(frozen=True, slots=True)
class Bin:
    """The rows whose top probability lies in a range."""

    low: float
    high: float
    """Ends of the range; with equal mass the lowest and highest probability in it."""
    mean_probability: float
    rate: Rate
    """How many of them are right."""

    @property
    def gap(self) -> float:
        """Mean probability less accuracy: above 0 the model is too sure."""
        return self.mean_probability - self.rate.correct / self.rate.count

    def to_dict(self) -> dict[str, object]:
        """The bin as JSON, its rate flat beside it."""
        own = {"from": self.low, "to": self.high, "mean_probability": self.mean_probability, "gap": self.gap}
        return own | self.rate.to_dict()


@dataclass(frozen=True, slots=True)
class CalibrationError:
    """Expected calibration error: the mean |probability - accuracy| of the bins, weighted by their rows."""

    bins: tuple[Bin, ...]
    """Those with rows, lowest first; their counts add up to the rows."""
    value: float
    interval: Interval | None
    """Where the error in all rows there could be plausibly lies, in the same bins."""
    corrected: float | None
    """The value less what chance adds to it; the middle of the interval in the same sense."""
    noise_floor: float
    """Mean of what a perfectly calibrated model with the same probabilities would show on so many rows."""
    noise_high: float
    """What such a model exceeds in 5 % of tables."""

    @property
    def above_noise(self) -> bool:
        """Whether the error is larger than chance alone explains."""
        return self.value > self.noise_high

    def to_dict(self) -> dict[str, object]:
        """The error as JSON, with its reliability table."""
        low, high = (self.interval.low, self.interval.high) if self.interval else (None, None)
        return {
            "value": self.value,
            "low": low,
            "high": high,
            "corrected": self.corrected,
            "noise_floor": self.noise_floor,
            "noise_high": self.noise_high,
            "above_noise": self.above_noise,
            "reason": None if self.interval else "one state has no interval",
            "bins": [one.to_dict() for one in self.bins],
        }


def equal_width(probabilities: Floats, bins: int = BINS) -> Ints:
    """Index of the bin of each probability: bin k holds k / bins <= p < (k + 1) / bins, and the last one 1 as well.

    Compared with the very ends that are shown, so whoever counts by those finds each row in the same bin.
    """
    import numpy as np

    found: Ints = np.searchsorted(np.arange(1, bins) / bins, probabilities, side="right")
    return found


def equal_mass(probabilities: Floats, bins: int = BINS) -> Ints:
    """Index of the bin of each probability, of about equal counts, from 0 without holes.

    Equal values go to the bin in which their middle one would be; many equal values make fewer bins.
    """
    import numpy as np

    if not len(probabilities):
        return np.zeros(0, dtype=np.int64)
    _, place, counts = np.unique(probabilities, return_inverse=True, return_counts=True)
    middle = counts.cumsum() - counts / 2
    of_value = np.minimum((middle * bins / len(probabilities)).astype(np.int64), bins - 1)
    _, dense = np.unique(of_value, return_inverse=True)
    found: Ints = dense[place]
    return found


def calibration_error(judged: Columns, width: Width = "equal width", bins: int = BINS) -> CalibrationError:
    """Of at least one judged row. The interval is a bootstrap of whole states in the bins of these rows.

    Chance alone makes such an error larger than 0, so a percentile interval would lie above the truth. Ours inverts a
    test: the true gaps are taken to be the observed ones times a factor, and the interval holds the factors under
    which the observed error lies in the middle LEVEL of what the bootstrap would show.
    Source: test inversion, Davison and Hinkley (1997), 5.2; the noise floor by simulation: J. Vaicenavicius et al.,
    "Evaluating model calibration in classification", AISTATS 2019.
    """
    import numpy as np

    cell = (equal_width if width == "equal width" else equal_mass)(judged.top, bins)
    size = int(cell.max()) + 1
    value = float(np.abs(np.bincount(cell, judged.top - judged.correct, minlength=size)).sum() / len(cell))
    floor, high = noise(judged.top, cell, draws_for(len(cell), _DRAWS))
    interval, corrected = _inverted(judged, cell, value)
    return CalibrationError(
        bins=_table(judged, cell, size, (width, bins)),
        value=value,
        interval=interval,
        corrected=corrected,
        noise_floor=floor,
        noise_high=high,
    )


def error_value(judged: Columns, bins: int = BINS) -> float:
    """The calibration error in bins of equal width, alone."""
    import numpy as np

    cell = equal_width(judged.top, bins)
    return float(np.abs(np.bincount(cell, judged.top - judged.correct)).sum() / len(cell))


def noise(top: Floats, cell: Ints, draws: int, seed: int = SEED) -> tuple[float, float]:
    """Mean and 95 % quantile of the error where each row is right with exactly its probability, rows independent."""
    import numpy as np

    rng = np.random.default_rng(seed)
    order = np.argsort(cell, kind="stable")
    probabilities = top[order].astype(np.float32)
    starts = np.flatnonzero(np.diff(cell[order], prepend=-1))
    expected = np.add.reduceat(top[order], starts)
    errors = np.empty(draws)
    for draw in range(draws):
        right = rng.random(len(top), dtype=np.float32) < probabilities
        errors[draw] = np.abs(np.add.reduceat(right, starts, dtype=np.int64) - expected).sum() / len(top)
    return float(errors.mean()), float(np.quantile(errors, 0.95))


def _inverted(judged: Columns, cell: Ints, value: float) -> tuple[Interval | None, float | None]:
    """Interval and bias-corrected value: the sizes of the true gaps under which `value` is no surprise."""
    import numpy as np

    size = int(cell.max()) + 1
    table = np.zeros((len(cell), size + 1))
    table[np.arange(len(cell)), cell] = judged.top - judged.correct
    table[:, size] = 1
    sums = state_sums(judged.state, table)
    if len(sums) == 1:
        return None, None
    drawn, observed = replicates(sums, _DRAWS), sums.sum(axis=0)
    gaps = observed[:size] / observed[size]
    noise_of_gaps = drawn[:, :size] / drawn[:, size:] - gaps
    factors = np.linspace(0, 2, 81)
    tails = [(1 - LEVEL) / 2, 0.5, (1 + LEVEL) / 2]
    errors = np.abs(factors[:, None, None] * gaps + noise_of_gaps).sum(axis=2)
    seen = np.maximum.accumulate(
        np.quantile(errors, tails, axis=1).T
    )  # larger gaps make larger errors, but for the simulation's noise
    high, middle, low = (float(np.interp(value, seen[:, tail], factors)) for tail in range(3))
    return Interval(low * value, high * value), middle * value


def _table(judged: Columns, cell: Ints, size: int, kind: tuple[Width, int]) -> tuple[Bin, ...]:
    import numpy as np

    width, bins = kind
    total = np.bincount(cell, judged.top, minlength=size)
    lowest, highest = np.full(size, np.inf), np.full(size, -np.inf)
    np.minimum.at(lowest, cell, judged.top)
    np.maximum.at(highest, cell, judged.top)
    found = []
    for place, one in enumerate(rates(judged.correct, cell, judged.state, size)):
        if one.count:
            ends = (place / bins, (place + 1) / bins)
            low, high = ends if width == "equal width" else (float(lowest[place]), float(highest[place]))
            found.append(Bin(low, high, float(total[place]) / one.count, one))
    return tuple(found)
