"""Turns counts into rates with the interval that the true rate plausibly lies in."""

import math
from dataclasses import dataclass
from statistics import NormalDist

LEVEL = 0.95
"""Confidence level of every interval that is shown."""
Z = NormalDist().inv_cdf(0.5 + LEVEL / 2)
"""Standard deviations that such an interval of a normal number reaches to either side."""


@dataclass(frozen=True, slots=True)
class Interval:
    """Where a true value plausibly lies, at LEVEL."""

    low: float
    high: float

    @property
    def excludes_zero(self) -> bool:
        """Whether all of it lies on one side of zero."""
        return self.low > 0 or self.high < 0


@dataclass(frozen=True, slots=True)
class Rate:
    """So many right out of so many, with a 95 % Wilson interval; all None where there is nothing to count."""

    correct: int
    count: int
    effective: float | None = None
    """Independent rows that the rows are worth, where rows share a state; None where each stands alone."""

    @property
    def value(self) -> float | None:
        """Share that is right, 0 to 1."""
        return self.correct / self.count if self.count else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Lower and upper end, 0 to 1."""
        return wilson(*self._worth) if self.count else None

    @property
    def exact(self) -> tuple[float, float] | None:
        """Lower and upper end of the Clopper-Pearson interval, which never covers less than it says."""
        return clopper_pearson(*self._worth) if self.count else None

    @property
    def _worth(self) -> tuple[float, float]:
        """What the interval is computed from: the counts, or as many independent rows as they are worth."""
        if self.effective is None:
            return self.correct, self.count
        if self.correct == self.count:
            return self.effective, self.effective
        return self.correct / self.count * self.effective, self.effective

    def to_dict(self) -> dict[str, object]:
        """Counts, share and interval as JSON; the last three are null where nothing was counted.

        `effective` is there only where rows share states.
        """
        low, high = self.interval or (None, None)
        said: dict[str, object] = {"correct": self.correct, "count": self.count, "accuracy": self.value}
        said |= {"low": low, "high": high}
        return said if self.effective is None else said | {"effective": self.effective}


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its 95 % interval, or the reason why there is none."""

    value: float | None
    interval: Interval | None = None
    count: int = 0
    """Rows it is computed from."""
    reason: str | None = None
    """Why the value, or only its interval, is missing."""

    def to_dict(self) -> dict[str, object]:
        """Value, ends of the interval, count and reason as JSON; what is undefined is null, never NaN."""
        low, high = (None, None) if self.interval is None else (self.interval.low, self.interval.high)
        return {"value": self.value, "low": low, "high": high, "count": self.count, "reason": self.reason}


def undefined(reason: str, count: int = 0) -> Estimate:
    """An estimate that could not be made."""
    return Estimate(None, None, count, reason)


def wilson(correct: float, count: float, level: float = LEVEL) -> tuple[float, float]:
    """Wilson score interval of a proportion; stays in [0, 1] and has width at 0 and 1. Counts may be fractions.

    Source: E. B. Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22 (1927).
    """
    z = NormalDist().inv_cdf(0.5 + level / 2)
    share = correct / count
    centre = share + z * z / (2 * count)
    spread = z * math.sqrt(max(0.0, share * (1 - share)) / count + z * z / (4 * count * count))
    scale = 1 + z * z / count
    low = (centre - spread) / scale if correct else 0.0  # exactly 0 and 1 there, but for rounding
    high = (centre + spread) / scale if correct < count else 1.0
    return max(0.0, low), min(1.0, high)


def clopper_pearson(correct: float, count: float, level: float = LEVEL) -> tuple[float, float]:
    """Exact interval of a proportion by its beta quantiles. Counts may be fractions.

    Source: C. J. Clopper and E. S. Pearson, "The use of confidence or fiducial limits illustrated in the case of the
    binomial", Biometrika 26 (1934); with fractions as E. L. Korn and B. I. Graubard, Survey Methodology 24 (1998).
    """
    from scipy.special import betaincinv

    tail = (1 - level) / 2
    low = float(betaincinv(correct, count - correct + 1, tail)) if correct > 0 else 0.0
    high = float(betaincinv(correct + 1, count - correct, 1 - tail)) if correct < count else 1.0
    return low, high


def paired_difference(gained: float, lost: float, count: float) -> Interval:
    """Interval of (gained - lost) / count for two classifiers on the same rows; has width where they never differ.

    Half a row is added to each of the four cells of the paired table.
    Source: A. Agresti and Y. Min, "Simple improved confidence intervals for comparing matched proportions",
    Statistics in Medicine 24 (2005).
    """
    more, less, total = gained + 0.5, lost + 0.5, count + 2
    centre = (more - less) / total
    spread = Z * math.sqrt(max(0.0, (more + less - (more - less) ** 2 / total) / total**2))
    return Interval(max(-1.0, centre - spread), min(1.0, centre + spread))
