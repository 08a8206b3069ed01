"""Turns outcomes into a map from the engine's probabilities to calibrated ones, scored on rows it was not fitted on.

A map is fitted on every row and given with what the same procedure scored by cross-validation, in which all rows
about a state are in one fold. It is a small frozen object: it can be kept as JSON and applied to any later answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, get_args

from clef.decisions.answers import Answer
from clef.decisions.examples import Outcome
from clef.decisions.questions import QuestionType
from clef.errors import InputError
from clef.statistics.binning import calibration_error
from clef.statistics.calibration import brier_scores, log_losses
from clef.statistics.columns import Columns, Outcomes, as_columns
from clef.statistics.curves import Curve, fit_beta, fit_steps, fit_temperature, read_curve
from clef.statistics.intervals import Estimate
from clef.statistics.methods import METHODS, Method
from clef.statistics.resampling import SEED, mean_estimates, variance_of_mean

if TYPE_CHECKING:
    from clef.statistics.columns import Bools

FEWEST = 50
"""Labels, on different states, below which nothing is fitted, and below which a type takes the pooled curve."""
FOLDS = 5
OVERLAP: Mapping[Method, float] = {"temperature": 4.0, "temperature by type": 4.0, "isotonic": 2.0, "beta": 2.0}
"""By how much the variance between maps of two halves is larger than what fitting adds to a cross-validated score."""
VERSION = 1


@dataclass(frozen=True, slots=True)
class Recalibrator:
    """A fitted map of probabilities: one curve for all answers, and one for each type that had labels enough."""

    method: Method
    pooled: Curve
    by_type: Mapping[QuestionType, Curve] = field(default_factory=dict)

    def curve(self, type: QuestionType) -> Curve:
        """The curve for answers of a type."""
        return self.by_type.get(type, self.pooled)

    def apply(self, answer: Answer) -> Answer:
        """The answer with calibrated probabilities; its prediction and its ties are the same."""
        import numpy as np

        flat = np.array(answer.probabilities, dtype=np.float64)
        warped = self.curve(answer.type).warp(flat, np.array([len(flat)]))
        return replace(answer, probabilities=tuple(warped.tolist()))

    def apply_to(self, outcomes: Iterable[Outcome]) -> Iterator[Outcome]:
        """The outcomes with calibrated answers; failures as they are."""
        for outcome in outcomes:
            yield outcome if outcome.answer is None else replace(outcome, answer=self.apply(outcome.answer))

    def transform(self, columns: Columns) -> Columns:
        """As `apply_to`, of arrays."""
        import numpy as np

        flat, lengths = columns.flat.copy(), columns.lengths
        kinds = np.array(columns.types, dtype=object)
        for kind in dict.fromkeys(columns.types):
            chosen = columns.answered & (kinds[columns.question] == kind)
            if chosen.any():
                part = np.repeat(chosen, lengths)
                flat[part] = self.curve(kind).warp(columns.flat[part], lengths[chosen])
        return columns.with_probabilities(flat)

    def to_dict(self) -> dict[str, object]:
        """The map as JSON."""
        by_type = {kind: curve.to_dict() for kind, curve in self.by_type.items()}
        return {"version": VERSION, "method": self.method, "pooled": self.pooled.to_dict(), "by_type": by_type}

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> Recalibrator:
        """The map that `to_dict` wrote. Raises InputError for another version or anything that is no map."""
        if raw.get("version") != VERSION:
            raise InputError(f"recalibration of version {raw.get('version')!r}", hint=f"this clef reads {VERSION}")
        method, by_type = raw.get("method"), raw.get("by_type", {})
        if method not in METHODS or not isinstance(by_type, Mapping) or set(by_type) - set(get_args(QuestionType)):
            raise InputError("not a recalibration", hint="use a file that clef wrote")
        return cls(method, read_curve(raw.get("pooled", {})), {kind: read_curve(one) for kind, one in by_type.items()})


@dataclass(frozen=True, slots=True)
class Scores:
    """What probabilities are worth, on judged rows, each with its interval."""

    brier: Estimate
    log_loss: Estimate
    calibration_error: Estimate
    """In bins of equal width."""

    def to_dict(self) -> dict[str, object]:
        """The scores as JSON."""
        return {
            "brier": self.brier.to_dict(),
            "log_loss": self.log_loss.to_dict(),
            "calibration_error": self.calibration_error.to_dict(),
        }


@dataclass(frozen=True, slots=True)
class Change:
    """What other probabilities are worth on the same rows."""

    before: Scores
    after: Scores
    brier: Estimate
    log_loss: Estimate
    """After less before; below 0 is better."""

    def to_dict(self) -> dict[str, object]:
        """Both scores and their differences as JSON."""
        return {
            "before": self.before.to_dict(),
            "after": self.after.to_dict(),
            "brier_change": self.brier.to_dict(),
            "log_loss_change": self.log_loss.to_dict(),
        }


@dataclass(frozen=True, slots=True)
class Recalibration:
    """A map and what it is worth, or the reason why none was fitted."""

    method: Method
    count: int
    """Rows with a label and an answer."""
    states: int
    map: Recalibrator | None
    before: Scores | None
    after: Scores | None
    """By cross-validation: each row by a map that was fitted without its state."""
    brier_change: Estimate | None
    log_loss_change: Estimate | None
    """After less before, on the same rows; below 0 is better."""
    reason: str | None = None

    @property
    def change(self) -> Change | None:
        """What the map is worth; None where none was fitted."""
        if self.before is None or self.after is None or self.brier_change is None or self.log_loss_change is None:
            return None
        return Change(self.before, self.after, self.brier_change, self.log_loss_change)

    @property
    def helps(self) -> bool:
        """Whether the log loss falls, beyond doubt, on rows the map was not fitted on."""
        change = self.log_loss_change
        return change is not None and change.interval is not None and change.interval.high < 0

    def to_dict(self) -> dict[str, object]:
        """The recalibration as JSON, its map included."""

        def plain(part: Recalibrator | Scores | Estimate | None) -> dict[str, object] | None:
            return None if part is None else part.to_dict()

        return {
            "method": self.method,
            "count": self.count,
            "states": self.states,
            "folds": FOLDS,
            "map": plain(self.map),
            "before": plain(self.before),
            "after": plain(self.after),
            "brier_change": plain(self.brier_change),
            "log_loss_change": plain(self.log_loss_change),
            "helps": self.helps,
            "reason": self.reason,
        }


def fit(outcomes: Outcomes, method: Method) -> Recalibrator | None:
    """The map fitted on all judged rows; None with fewer than FEWEST, or where a beta curve does not exist."""
    return _fit(as_columns(outcomes).judged, method, FEWEST)


def fitted(outcomes: Outcomes, method: Method) -> Recalibrator:
    """As `fit`. Raises InputError where no map can be fitted."""
    found = fit(outcomes, method)
    if found is None:
        raise _unfit(method)
    return found


def recalibrate(outcomes: Outcomes, method: Method = "temperature") -> Recalibration:
    """The map of one method with its cross-validated scores; refused under FEWEST labels."""
    import numpy as np

    judged = as_columns(outcomes).judged
    states = len(np.unique(judged.state))
    map = fit(judged, method)
    folded = None if map is None else _out_of_fold(judged, method)
    if map is None or folded is None:
        few = f"{states} labels on different states; at least {FEWEST} are needed"
        reason = few if states < FEWEST else "answers are all right or all wrong: nothing to fit"
        return Recalibration(method, len(judged.row), states, None, None, None, None, None, reason)
    change = change_of(judged, folded, _doubts(judged, folded, method))
    return Recalibration(
        method, len(judged.row), states, map, change.before, change.after, change.brier, change.log_loss
    )


def recalibrations(outcomes: Outcomes) -> tuple[Recalibration, ...]:
    """Every method on the same rows and folds, the one with the lowest log loss first, refused ones last."""
    columns = as_columns(outcomes)
    found = [recalibrate(columns, method) for method in METHODS]
    return tuple(sorted(found, key=lambda one: (one.after and one.after.log_loss.value) or float("inf")))


def cross_validated(outcomes: Outcomes, method: Method) -> Columns:
    """The outcomes with recalibrated probabilities, each labelled row by a map that was fitted without its state.

    A row without a label went into no map, and is given that of all others. Raises InputError where there are too few
    labels for a map.
    """
    import numpy as np

    columns = as_columns(outcomes)
    judged = columns.labelled & columns.answered
    folded = _out_of_fold(columns.take(judged), method)
    if folded is None:
        raise _unfit(method)
    flat = fitted(columns, method).transform(columns).flat.copy()
    flat[np.repeat(judged, columns.lengths)] = folded.flat
    return columns.with_probabilities(flat)


def _unfit(method: Method) -> InputError:
    hint = f"at least {FEWEST} labels on different states are needed, some of them right and some wrong"
    return InputError(f"no {method} map can be fitted on these rows", hint=hint)


def _fit(judged: Columns, method: Method, fewest: int) -> Recalibrator | None:
    pooled = _fit_curve(judged, method, fewest)
    if pooled is None:
        return None
    found: dict[QuestionType, Curve] = {}
    for kind in dict.fromkeys(judged.types) if method != "temperature" else ():
        curve = _fit_curve(judged.take(_of_type(judged, kind)), method, fewest)
        if curve is not None:
            found[kind] = curve
    return Recalibrator(method, pooled, found)


def _fit_curve(judged: Columns, method: Method, fewest: int) -> Curve | None:
    import numpy as np

    if len(np.unique(judged.state)) < fewest:
        return None
    if method == "isotonic":
        return fit_steps(judged)
    return fit_beta(judged) if method == "beta" else fit_temperature(judged)


def _of_type(columns: Columns, kind: QuestionType) -> Bools:
    import numpy as np

    same = np.array([one == kind for one in columns.types], dtype=bool)
    return same[columns.question]


def _out_of_fold(judged: Columns, method: Method, part: int | None = None) -> Columns | None:
    """The rows with the probabilities of maps fitted without their fold; None where a fold leaves nothing to fit.

    With a `part`, 0 or 1, each map is fitted on that half of the states it may see.
    """
    import numpy as np

    states, place = np.unique(judged.state, return_inverse=True)
    rng = np.random.default_rng(SEED)
    fold, half = (rng.permutation(len(states))[place] for _ in range(2))
    fold, seen = fold % FOLDS, (half % 2 == part) | (part is None)
    fewest = FEWEST * (FOLDS - 1) // FOLDS if part is None else FEWEST // FOLDS
    flat = judged.flat.copy()
    for number in range(FOLDS):
        map = _fit(judged.take((fold != number) & seen), method, fewest)
        if map is None:
            return None
        held = fold == number
        flat[np.repeat(held, judged.lengths)] = map.transform(judged.take(held)).flat
    return judged.with_probabilities(flat)


def _doubts(judged: Columns, folded: Columns, method: Method) -> tuple[float, float]:
    """Variance that fitting adds to the cross-validated Brier score and log loss.

    Maps of overlapping rows err together, which the rows' own variance does not know (Y. Bengio and Y. Grandvalet,
    JMLR 5, 2004). How far a score depends on the rows of its map is seen by maps of two disjoint halves: their
    difference has four times the variance of one map's part where that falls as 1 / rows; it falls more slowly for
    curves of a free form, and `OVERLAP` is what simulation gave. Without two such maps, 5/4 of the rows' own variance
    (C. Nadeau and Y. Bengio, Machine Learning 52, 2003).
    """
    halves = [_out_of_fold(judged, method, part) for part in (0, 1)]
    first, second = halves
    if first is None or second is None:
        brier, loss = (score(folded) - score(judged) for score in (brier_scores, log_losses))
        return 1.25 * variance_of_mean(brier, judged.state), 1.25 * variance_of_mean(loss, judged.state)
    brier, loss = (score(first) - score(second) for score in (brier_scores, log_losses))
    share = 1 / OVERLAP[method]
    return share * variance_of_mean(brier, judged.state), share * variance_of_mean(loss, judged.state)


def change_of(before: Columns, after: Columns, doubts: tuple[float, float] = (0.0, 0.0)) -> Change:
    """The scores of the same judged rows with one and with other probabilities.

    `doubts` are variances that the Brier score and the log loss after have besides that of their rows.
    """
    briers, losses = (
        [brier_scores(before), brier_scores(after)],
        [log_losses(before), log_losses(after)],
    )
    values = [*briers, *losses, briers[1] - briers[0], losses[1] - losses[0]]
    more = [0.0, doubts[0], 0.0, doubts[1], *doubts]
    brier, brier_after, loss, loss_after, brier_change, loss_change = mean_estimates(values, before.state, more)
    return Change(
        Scores(brier, loss, _error(before)), Scores(brier_after, loss_after, _error(after)), brier_change, loss_change
    )


def _error(judged: Columns) -> Estimate:
    error = calibration_error(judged)
    return Estimate(error.value, error.interval, len(judged.row))
