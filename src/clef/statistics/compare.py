"""Turns two runs over the same rows into what changed, whether it is more than chance, and one sentence that says so.

Only pairs that both runs answered are compared; the others are counted, and the accuracy with failures counted wrong
stands beside. A difference is called decisive where the exact test on the flips stays at or below ALPHA; else the
sentence says "not decisive". Where rows share states, whole states are exchanged and resampled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Literal

from clef.errors import InputError
from clef.statistics.calibration import brier_scores
from clef.statistics.columns import Columns
from clef.statistics.halves import Half, Runs, as_half
from clef.statistics.intervals import Estimate, Rate, paired_difference, undefined
from clef.statistics.pairing import Pairs, pair
from clef.statistics.policy import Policy
from clef.statistics.rates import rate
from clef.statistics.resampling import NO_ROWS, percentile_interval, replicates, state_sums

if TYPE_CHECKING:
    from clef.statistics.columns import Bools, Floats, Ints

ALPHA = 0.05
"""A test at or below it is decisive."""
Change = Literal["fixed", "broken", "both wrong"]


@dataclass(frozen=True, slots=True)
class Flip:
    """A pair in which one run is right and the other wrong, or both are wrong in different ways."""

    change: Change
    first: int
    """Place among the first run's outcomes."""
    second: int
    first_probability: float
    """Top probability of the first run's answer."""
    second_probability: float

    def to_dict(self) -> dict[str, object]:
        """The flip as JSON."""
        return {
            "change": self.change,
            "first": self.first,
            "second": self.second,
            "first_probability": self.first_probability,
            "second_probability": self.second_probability,
        }


@dataclass(frozen=True, slots=True)
class Comparison:
    """The second run against the first; differences are second less first."""

    names: tuple[str, str]
    pairs: Pairs
    unanswered: tuple[int, int]
    """Pairs that the first, and that the second run did not answer."""
    first: Rate
    second: Rate
    with_failures: tuple[Rate, Rate]
    """Over all pairs, failures counted as wrong."""
    fixed: int
    broken: int
    both_wrong: int
    both_right: int
    p: float
    """Exact McNemar test; where rows share states, of exchanging whole states."""
    accuracy_change: Estimate
    brier_change: Estimate
    """Below 0 is better."""
    coverage_change: Estimate
    """Of the share acted on at the gate."""
    gate_accuracy_change: Estimate
    """Of the accuracy of those acted on."""
    flips: tuple[Flip, ...]
    """Broken ones first, the surest first; then fixed ones; then pairs wrong in different ways."""
    adjusted_p: float | None = None
    """After Holm, where several runs were compared."""

    @property
    def decisive(self) -> bool:
        """Whether the difference in accuracy is more than chance, the number of comparisons allowed for."""
        return (self.p if self.adjusted_p is None else self.adjusted_p) <= ALPHA

    @property
    def verdict(self) -> str:
        """One sentence: how much better or worse, the flips, and whether that decides anything."""
        first, second = self.names
        change, interval = self.accuracy_change.value, self.accuracy_change.interval
        if change is None or interval is None:
            return f"{first} and {second} answered no row together: not decisive."
        low, high = (interval.low, interval.high) if change >= 0 else (0.0 - interval.high, 0.0 - interval.low)
        said = f"{second} is {'better' if change > 0 else 'worse'} than {first} by {abs(change) * 100:.1f} points"
        if change == 0:
            said = f"{second} is right as often as {first}"
        p = self.p if self.adjusted_p is None else self.adjusted_p
        shown = "p < 0.001" if p < 0.001 else f"p = {p:.3f}" if p < 0.1 else f"p = {p:.2f}"
        after = "" if self.adjusted_p is None else " after Holm"
        numbers = f"({low * 100:.1f} to {high * 100:.1f})".replace("-", "−")  # a minus, not a hyphen
        numbers += f", {self.fixed} fixed, {self.broken} broken, {shown}{after}"
        return f"{said} {numbers}: {'decisive' if self.decisive else 'not decisive'}."

    def to_dict(self) -> dict[str, object]:
        """The comparison as JSON; what is undefined is null with its reason."""
        return {
            "names": list(self.names),
            "note": self.pairs.note,
            "same_rows": self.pairs.same_rows,
            "pairs": len(self.pairs.first),
            "only_first": self.pairs.only_first,
            "only_second": self.pairs.only_second,
            "relabelled": self.pairs.relabelled,
            "unlabelled": self.pairs.unlabelled,
            "unanswered": list(self.unanswered),
            "first": self.first.to_dict(),
            "second": self.second.to_dict(),
            "with_failures": [one.to_dict() for one in self.with_failures],
            "fixed": self.fixed,
            "broken": self.broken,
            "both_wrong": self.both_wrong,
            "both_right": self.both_right,
            "p": self.p,
            "adjusted_p": self.adjusted_p,
            "accuracy_change": self.accuracy_change.to_dict(),
            "brier_change": self.brier_change.to_dict(),
            "coverage_change": self.coverage_change.to_dict(),
            "gate_accuracy_change": self.gate_accuracy_change.to_dict(),
            "decisive": self.decisive,
            "verdict": self.verdict,
            "flips": [flip.to_dict() for flip in self.flips],
        }


def compare(
    first: Runs,
    second: Runs,
    *,
    names: tuple[str, str] = ("A", "B"),
    policy: Policy | None = None,
    refuse: bool = False,
) -> Comparison:
    """The second run against the first, on the rows that both have.

    `policy` is the gate at which coverage is compared; a half that was made before has its own. Raises InputError where
    no labelled row is in both, or, if told to `refuse`, where the two row sets differ.
    """
    halves = as_half(first, policy), as_half(second, policy)
    pairs = pair(*halves, refuse=refuse)
    ours, theirs = halves[0].columns.at(pairs.first), halves[1].columns.at(pairs.second)
    both = ours.answered & theirs.answered
    a, b = ours.take(both), theirs.take(both)
    right_a, right_b = a.correct, b.correct
    fixed, broken = int((right_b & ~right_a).sum()), int((right_a & ~right_b).sum())
    coverage, gate_accuracy = _at_gate(halves, pairs, both, (a, b))
    return Comparison(
        names=names,
        pairs=pairs,
        unanswered=(int((~ours.answered).sum()), int((~theirs.answered).sum())),
        first=rate(right_a, a.state),
        second=rate(right_b, a.state),
        with_failures=(rate(ours.correct, ours.state), rate(theirs.correct, ours.state)),
        fixed=fixed,
        broken=broken,
        both_wrong=int((~right_a & ~right_b).sum()),
        both_right=int((right_a & right_b).sum()),
        p=sign_flip_p(right_b.astype(int) - right_a.astype(int), a.state),
        accuracy_change=_accuracy_change(fixed, broken, right_b.astype(float) - right_a, a.state),
        brier_change=_change(brier_scores(b) - brier_scores(a), a.state),
        coverage_change=coverage,
        gate_accuracy_change=gate_accuracy,
        flips=_flips(pairs, both, a, b),
    )


def compare_all(
    runs: Mapping[str, Runs], *, policy: Policy | None = None, refuse: bool = False
) -> tuple[Comparison, ...]:
    """Every two runs against each other; several p values are adjusted after Holm. Raises InputError for under two."""
    if len(runs) < 2:
        raise InputError("one run cannot be compared", hint="give at least two")
    halves = {name: as_half(run, policy) for name, run in runs.items()}
    found = [
        compare(halves[one], halves[other], names=(one, other), refuse=refuse) for one, other in combinations(halves, 2)
    ]
    if len(found) == 1:
        return tuple(found)
    adjusted = holm([one.p for one in found])
    return tuple(replace(one, adjusted_p=p) for one, p in zip(found, adjusted, strict=True))


def holm(p_values: Sequence[float]) -> list[float]:
    """Each p value adjusted so that one false "decisive" among all of them is as rare as ALPHA.

    Source: S. Holm, "A simple sequentially rejective multiple test procedure", Scandinavian J. of Statistics 6 (1979).
    """
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    adjusted, most = [0.0] * len(p_values), 0.0
    for rank, place in enumerate(order):
        most = max(most, min(1.0, p_values[place] * (len(p_values) - rank)))
        adjusted[place] = most
    return adjusted


def sign_flip_p(gains: Ints, state: Ints) -> float:
    """Two-sided p value that gains, 1 fixed and -1 broken, are as likely as their opposites; exact, by whole states.

    With one row a state it is the exact McNemar test: twice the binomial tail of the flips, at most 1.
    Source: Q. McNemar, Psychometrika 12 (1947); exchange of clusters: R. A. Fisher, "The Design of Experiments" (1935).
    """
    import numpy as np

    sums = np.abs(state_sums(state, gains.astype(np.float64)[:, None])[:, 0]).round().astype(np.int64)
    observed = abs(int(state_sums(state, gains.astype(np.float64)[:, None]).sum()))
    sizes, counts = np.unique(sums[sums > 0], return_counts=True)
    chances = np.ones(1)
    for size, count in zip(sizes.tolist(), counts.tolist(), strict=True):
        chances = _convolve(chances, _spread(size, count))
    reach = len(chances) // 2  # index of the sum 0; sums run from -reach to reach
    tail = float(chances[reach + observed :].sum())
    return min(1.0, 2 * tail) if observed else 1.0


def _convolve(one: Floats, other: Floats) -> Floats:
    """Chances of the sum of two independent numbers; by Fourier transform where the direct way would take seconds."""
    import numpy as np

    if len(one) * len(other) < 10_000_000:
        return np.convolve(one, other)
    length = len(one) + len(other) - 1
    product = np.fft.irfft(np.fft.rfft(one, length) * np.fft.rfft(other, length), length)
    return np.maximum(product, 0.0)


def _spread(size: int, count: int) -> Floats:
    """Chances of each sum of `count` random signs times `size`, from the lowest to the highest."""
    import numpy as np
    from scipy.special import bdtr

    steps = np.arange(count + 1)
    upto = bdtr(steps, count, 0.5)
    spread = np.zeros(2 * size * count + 1)
    spread[:: 2 * size] = np.diff(upto, prepend=0)
    return (spread + spread[::-1]) / 2  # both tails with the accuracy of the lower one


def _accuracy_change(fixed: int, broken: int, gains: Floats, state: Ints) -> Estimate:
    """Difference in accuracy by the paired bootstrap; where it has no width, by Agresti and Min."""
    found = _change(gains, state)
    if found.value is None:
        return found
    if found.interval is None or found.interval.low == found.interval.high:
        scale = len(set(state.tolist())) / len(gains)
        return replace(
            found, interval=paired_difference(fixed * scale, broken * scale, len(gains) * scale), reason=None
        )
    return found


def _change(values: Floats, state: Ints) -> Estimate:
    """Mean of one difference a pair, with the paired bootstrap's interval."""
    import numpy as np

    if not len(values):
        return undefined(NO_ROWS)
    sums = state_sums(state, np.stack([values, np.ones(len(values))], axis=1))
    if len(sums) == 1:
        return Estimate(float(values.mean()), None, len(values), "one state has no interval")
    drawn = replicates(sums)
    return Estimate(float(values.mean()), percentile_interval(drawn[:, 0] / drawn[:, 1]), len(values))


def _at_gate(
    halves: tuple[Half, Half], pairs: Pairs, both: Bools, judged: tuple[Columns, Columns]
) -> tuple[Estimate, Estimate]:
    """Change of coverage, and of the accuracy of what is acted on, with paired bootstrap intervals."""
    import numpy as np

    first, second = (half.acts for half in halves)
    if first is None or second is None:
        return undefined("no gate was given"), undefined("no gate was given")
    acts = np.stack([first[pairs.first], second[pairs.second]])[:, both].astype(np.float64)
    right, state, count = [one.correct for one in judged], judged[0].state, int(both.sum())
    coverage = _change(acts[1] - acts[0], state)
    if min(acts.sum(axis=1)) == 0:
        return coverage, undefined("one run acts on no row", count)
    sums = state_sums(state, np.stack([acts[0], acts[0] * right[0], acts[1], acts[1] * right[1]], axis=1))
    with np.errstate(invalid="ignore"):
        value, drawn = (s[..., 3] / s[..., 2] - s[..., 1] / s[..., 0] for s in (sums.sum(axis=0), replicates(sums)))
    interval = percentile_interval(drawn)
    return coverage, Estimate(float(value), interval, count, None if interval else "too few rows are acted on")


def _flips(pairs: Pairs, both: Bools, a: Columns, b: Columns) -> tuple[Flip, ...]:
    import numpy as np

    changed = np.flatnonzero((a.correct != b.correct) | (~a.correct & (a.predicted != b.predicted)))
    rank = np.where(a.correct[changed], 0, np.where(b.correct[changed], 1, 2))
    order = np.lexsort((-b.top[changed], rank))  # stable, so equal ones stand in the table's order
    kept, changed = np.flatnonzero(both)[changed[order]], changed[order]
    places = zip(pairs.first[kept].tolist(), pairs.second[kept].tolist(), strict=True)
    tops = zip(a.top[changed].tolist(), b.top[changed].tolist(), strict=True)
    changes: tuple[Change, ...] = ("broken", "fixed", "both wrong")
    return tuple(
        Flip(changes[which], *place, *top) for which, place, top in zip(rank[order].tolist(), places, tops, strict=True)
    )
