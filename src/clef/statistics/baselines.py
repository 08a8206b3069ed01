"""Turns judged rows into what a rule that reads nothing would score, and how far the model is above it.

Two rules: always the question's most frequent label (*majority*), and guessing evenly among the answers (*chance*).
The most frequent label is known from the same rows, so the majority is a little too good on small tables.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from clef.statistics.intervals import Estimate, Interval, Rate, paired_difference, undefined
from clef.statistics.resampling import NO_ROWS, draws_for, percentile_interval, row_weights

if TYPE_CHECKING:
    from clef.statistics.columns import Bools, Columns, Floats, Ints

_DRAWS = 400


def majorities(judged: Columns) -> tuple[Ints, Floats]:
    """For each question its most frequent class (of equal ones the first) and that class's share, 0 without rows."""
    import numpy as np

    counts = np.bincount(judged.label_class, minlength=len(judged.class_names))
    best = np.zeros(len(judged.names), dtype=np.int64)
    order = np.lexsort((-np.arange(len(counts)), counts))  # the last write of a question is its largest, first class
    best[judged.class_question[order]] = order
    rows = np.bincount(judged.question, minlength=len(judged.names))
    return best, counts[best] / np.maximum(rows, 1) if len(counts) else np.zeros(len(judged.names))


def chances(judged: Columns) -> Floats:
    """For each question the mean of 1 / (number of answers); 0 without rows."""
    import numpy as np

    rows = np.bincount(judged.question, minlength=len(judged.names))
    return np.bincount(judged.question, 1 / judged.sizes, minlength=len(judged.names)) / np.maximum(rows, 1)


def majority_right(judged: Columns) -> Bools:
    """Whether the majority rule gets each row right."""
    best, _ = majorities(judged)
    right: Bools = judged.label_class == best[judged.question]
    return right


def above_majority(rate: Rate, gained: int, lost: int) -> Estimate:
    """Difference on the same rows: `gained` only the model has right, `lost` only the rule.

    The interval is that of Agresti and Min for pairs; where rows share states, of as many pairs as they are worth.
    """
    if not rate.count:
        return undefined(NO_ROWS)
    scale = 1.0 if rate.effective is None else rate.effective / rate.count
    interval = paired_difference(gained * scale, lost * scale, rate.count * scale)
    return Estimate((gained - lost) / rate.count, interval, rate.count)


def above_chance(rate: Rate, chance: float) -> Estimate:
    """Accuracy less the accuracy of guessing, which is known exactly: the accuracy's interval, moved."""
    if rate.value is None or rate.interval is None:
        return undefined(NO_ROWS)
    low, high = rate.interval
    return Estimate(rate.value - chance, Interval(low - chance, high - chance), rate.count)


def mean_of_rates(judged: Columns, rates: Sequence[Rate]) -> Estimate:
    """Mean of the questions' accuracies, each counting the same; questions without rows are left out.

    Interval from the rates' own, as for independent ones (G. Y. Zou and A. Donner, Statistics in Medicine 27, 2008);
    where rows share states, the cluster bootstrap's.
    """
    measured = [(rate.value, rate.interval) for rate in rates if rate.value is not None and rate.interval is not None]
    if not measured:
        return undefined(NO_ROWS)
    mean = sum(value for value, _ in measured) / len(measured)
    below = [value - low for value, (low, _) in measured]
    above = [high - value for value, (_, high) in measured]
    shared = any(rate.effective is not None for rate in rates) or len(set(judged.state.tolist())) < len(judged.row)
    interval = Interval(
        max(0.0, mean - math.hypot(*below) / len(measured)), min(1.0, mean + math.hypot(*above) / len(measured))
    )
    if shared:
        drawn = _bootstrap_mean(judged)
        widest = Interval(max(0.0, mean - sum(below) / len(below)), min(1.0, mean + sum(above) / len(above)))
        interval = drawn if drawn is not None and drawn.low < drawn.high else widest
    return Estimate(mean, interval, len(judged.row))


def _bootstrap_mean(judged: Columns) -> Interval | None:
    import numpy as np

    size, right = len(judged.names), judged.correct
    means = []
    for weights in row_weights(judged.state, draws_for(len(right), _DRAWS)):
        count = np.bincount(judged.question, weights, minlength=size)
        shares = np.bincount(judged.question, weights * right, minlength=size)[count > 0] / count[count > 0]
        means.append(shares.mean())
    return percentile_interval(np.array(means))
