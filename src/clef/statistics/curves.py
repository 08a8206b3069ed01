"""Turns probabilities into recalibrated ones by one fitted curve: a temperature, isotonic steps, or a beta curve.

Invariants of every curve: the prediction stays, ties stay ties, equal probabilities stay equal and a higher top
probability stays higher, so that no threshold becomes unreachable; what comes out adds up to 1. A temperature bends
all probabilities of an answer; isotonic and beta curves map the top one, and the others share what is left in the
proportions they had. Where a curve would put the top one below the second, it stops a hair above it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from clef.errors import InputError

if TYPE_CHECKING:
    from clef.statistics.columns import Columns, Floats, Ints

_LOWEST, _HIGHEST = 0.05, 20.0
"""Temperatures looked at."""
_CLIP = 1e-9
_HAIR = 1e-6
"""Slope given to isotonic steps, so that answers on one step keep their order."""


@dataclass(frozen=True, slots=True)
class Temperature:
    """p^(1/T), scaled to add up to 1: above 1 the model was too sure.

    Source: C. Guo et al., "On calibration of modern neural networks", ICML 2017.
    """

    temperature: float

    def warp(self, flat: Floats, lengths: Ints) -> Floats:
        """The probabilities of answers that stand one after the other, `lengths` each."""
        import numpy as np

        starts = lengths.cumsum() - lengths
        scaled = flat / np.repeat(np.maximum.reduceat(flat, starts), lengths)
        bent = scaled ** (1 / self.temperature)
        return np.asarray(bent / np.repeat(np.add.reduceat(bent, starts), lengths))

    def to_dict(self) -> dict[str, object]:
        """The curve as JSON."""
        return {"curve": "temperature", "temperature": self.temperature}


@dataclass(frozen=True, slots=True)
class Steps:
    """Accuracy at a top probability, rising, between the points of an isotonic regression.

    Source: B. Zadrozny and C. Elkan, "Transforming classifier scores into accurate multiclass probability estimates",
    KDD 2002.
    """

    at: tuple[float, ...]
    values: tuple[float, ...]

    def warp(self, flat: Floats, lengths: Ints) -> Floats:
        """As `Temperature.warp`."""
        import numpy as np

        top, wanted = _tops(flat, lengths)
        wanted = np.interp(top, self.at, self.values) * (1 - _HAIR) + top * _HAIR
        return _with_tops(flat, lengths, wanted)

    def to_dict(self) -> dict[str, object]:
        """The curve as JSON."""
        return {"curve": "steps", "at": list(self.at), "values": list(self.values)}


@dataclass(frozen=True, slots=True)
class Beta:
    """logit q = c + a·ln p - b·ln(1 - p) with a, b ≥ 0, p the top probability.

    Source: M. Kull, T. M. Silva Filho and P. Flach, "Beta calibration", AISTATS 2017.
    """

    a: float
    b: float
    c: float

    def warp(self, flat: Floats, lengths: Ints) -> Floats:
        """As `Temperature.warp`."""
        import numpy as np
        from scipy.special import expit

        top, _ = _tops(flat, lengths)
        p = np.clip(top, _CLIP, 1 - _CLIP)
        wanted = expit(self.c + self.a * np.log(p) - self.b * np.log1p(-p))
        return _with_tops(flat, lengths, wanted * (1 - _HAIR) + top * _HAIR)

    def to_dict(self) -> dict[str, object]:
        """The curve as JSON."""
        return {"curve": "beta", "a": self.a, "b": self.b, "c": self.c}


Curve: TypeAlias = Temperature | Steps | Beta


def read_curve(raw: Mapping[str, Any]) -> Curve:
    """The curve that `to_dict` wrote. Raises InputError for anything else."""
    try:
        kind = raw["curve"]
        if kind == "temperature":
            numbers = [float(raw["temperature"])]
        elif kind == "beta":
            numbers = [float(raw[name]) for name in "abc"]
        else:
            numbers = [float(value) for value in (*raw["at"], *raw["values"])]
        good = all(map(math.isfinite, numbers)) and numbers
        if good and kind == "temperature" and numbers[0] > 0:
            return Temperature(numbers[0])
        if good and kind == "beta" and min(numbers[:2]) >= 0:
            return Beta(*numbers)
        at, values = numbers[: len(numbers) // 2], numbers[len(numbers) // 2 :]
        if good and kind == "steps" and len(raw["at"]) == len(values) and at == sorted(at) and values == sorted(values):
            return Steps(tuple(at), tuple(values))
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"not a recalibration curve: {error}") from error
    raise InputError(f"not a recalibration curve: {kind}", hint="use a file that clef wrote")


def fit_temperature(judged: Columns) -> Temperature:
    """The temperature with the lowest log loss of the labels, between 0.05 and 20."""
    import numpy as np
    from scipy.optimize import minimize_scalar

    logs = np.log(np.maximum(judged.flat, 1e-15))
    starts, lengths = judged.starts, judged.lengths
    of_label = logs[starts + judged.label]
    highest = np.maximum.reduceat(logs, starts)
    below = logs - np.repeat(highest, lengths)

    def loss(log_temperature: float) -> float:
        scale = math.exp(-log_temperature)
        totals = np.log(np.add.reduceat(np.exp(below * scale), starts))
        return float((totals - (of_label - highest) * scale).mean())

    bounds = (math.log(_LOWEST), math.log(_HIGHEST))
    return Temperature(math.exp(float(minimize_scalar(loss, bounds=bounds, method="bounded").x)))


def fit_steps(judged: Columns) -> Steps:
    """Isotonic regression of being right on the top probability; equal probabilities are one point.

    Values are kept 1 / (rows + 2) away from 0 and 1, since no table shows that an answer is certain.
    """
    import numpy as np
    from scipy.optimize import isotonic_regression

    values, place, counts = np.unique(judged.top, return_inverse=True, return_counts=True)
    right = np.bincount(place, judged.correct) / counts
    fitted = isotonic_regression(right, weights=counts.astype(np.float64)).x
    margin = 1 / (len(judged.row) + 2)
    fitted = np.clip(fitted, margin, 1 - margin)
    changes = np.diff(fitted) > 0
    ends = np.concatenate([[True], changes]) | np.concatenate([changes, [True]])  # first and last point of each step
    return Steps(tuple(values[ends].tolist()), tuple(fitted[ends].tolist()))


def fit_beta(judged: Columns) -> Beta | None:
    """The beta curve with the lowest log loss of being right; None where all or none are right."""
    import numpy as np
    from scipy.optimize import minimize
    from scipy.special import expit

    right = judged.correct.astype(np.float64)
    if right.min() == right.max():
        return None
    p = np.clip(judged.top, _CLIP, 1 - _CLIP)
    terms = np.stack([np.log(p), -np.log1p(-p), np.ones(len(p))], axis=1)

    def loss(weights: Floats) -> tuple[float, Floats]:
        logits = terms @ weights
        value = np.logaddexp(0, logits) - right * logits
        return float(value.mean()), (expit(logits) - right) @ terms / len(right)

    found = minimize(loss, np.array([1.0, 1.0, 0.0]), jac=True, method="L-BFGS-B", bounds=[(0, 50), (0, 50), (-50, 50)])
    a, b, c = (float(weight) for weight in found.x)
    return Beta(a, b, c)


def _tops(flat: Floats, lengths: Ints) -> tuple[Floats, Floats]:
    """The highest and the second highest probability of each answer; 0 as second where there is one answer only."""
    import numpy as np

    starts = lengths.cumsum() - lengths
    top = np.maximum.reduceat(flat, starts)
    is_top = flat == np.repeat(top, lengths)
    rest = np.maximum.reduceat(np.where(is_top, 0.0, flat), starts)
    return top, np.where(np.add.reduceat(is_top, starts, dtype=np.int64) > 1, top, rest)


def _with_tops(flat: Floats, lengths: Ints, wanted: Floats) -> Floats:
    """The answers with other top probabilities; tied and single ones only scaled to add up to 1."""
    import numpy as np

    starts = lengths.cumsum() - lengths
    total = np.add.reduceat(flat, starts)
    top, second = _tops(flat, lengths)
    others = total - top
    even = others <= 0
    spare = np.maximum(lengths - 1, 1)
    part = np.where(even, 1 / spare, second / np.where(even, 1.0, others))  # of what is left, the second's share
    floor = part / (1 + part)
    new_top = np.clip(np.maximum(wanted, floor + (1 - floor) * _CLIP), 0.0, 1.0)
    fixed = (top == second) | (lengths == 1)
    is_top = flat == np.repeat(top, lengths)
    share = np.where(
        np.repeat(even, lengths), np.repeat(1 / spare, lengths), flat / np.repeat(np.where(even, 1.0, others), lengths)
    )
    moved = np.where(is_top, np.repeat(new_top, lengths), share * np.repeat(1 - new_top, lengths))
    return np.where(np.repeat(fixed, lengths), flat / np.repeat(total, lengths), moved)
