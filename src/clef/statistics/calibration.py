"""Turns outcomes into what their probabilities are worth: Brier score, log loss, calibration error, reliability table.

All of it is on the probabilities as the engine sent them, never on the confidence, and on rows with a label and an
answer only. The Brier score is the main number: it is finite, and needs no bins.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from clef.statistics.binning import BINS, CalibrationError, calibration_error, equal_width
from clef.statistics.columns import Columns, Outcomes, as_columns
from clef.statistics.intervals import Estimate, undefined
from clef.statistics.resampling import NO_ROWS, mean_estimate

if TYPE_CHECKING:
    from clef.statistics.columns import Floats

SMALLEST = 1e-15
"""Probability below which the log loss counts a label's as this much."""


@dataclass(frozen=True, slots=True)
class Decomposition:
    """Brier score = reliability - resolution + uncertainty, exactly."""

    reliability: float
    """How far the probabilities are from the shares they stand for; 0 is best."""
    resolution: float
    """How far the answers tell rows apart; more is better."""
    uncertainty: float
    """What always answering each class's share would score."""

    def to_dict(self) -> dict[str, object]:
        """The three terms as JSON."""
        return {"reliability": self.reliability, "resolution": self.resolution, "uncertainty": self.uncertainty}


@dataclass(frozen=True, slots=True)
class Calibration:
    """What the probabilities of one question, or of all together, are worth."""

    question: str | None
    """None for all questions together."""
    count: int
    """Rows with a label and an answer."""
    failed: int
    unlabelled: int
    ties: int
    brier: Estimate
    """Mean over rows of Σ (p - y)² over the answers: 0 best, 2 worst, (n - 1)/n for n equal probabilities."""
    decomposition: Decomposition | None
    log_loss: Estimate
    """Mean of -ln of the label's probability, in nats."""
    clipped: int
    """Rows whose label had less than 1e-15, counted as that much."""
    error: CalibrationError | None
    """With bins of equal width; its bins are the reliability table."""
    error_equal_mass: CalibrationError | None

    def to_dict(self) -> dict[str, object]:
        """The calibration as JSON; without rows everything is null, with the reason."""
        return {
            "question": self.question,
            "count": self.count,
            "failed": self.failed,
            "unlabelled": self.unlabelled,
            "ties": self.ties,
            "brier": self.brier.to_dict(),
            "decomposition": self.decomposition.to_dict() if self.decomposition else None,
            "log_loss": self.log_loss.to_dict(),
            "clipped": self.clipped,
            "error": self.error.to_dict() if self.error else None,
            "error_equal_mass": self.error_equal_mass.to_dict() if self.error_equal_mass else None,
            "reason": None if self.count else NO_ROWS,
        }


def calibration(outcomes: Outcomes, *, bins: int = BINS) -> Calibration:
    """The calibration of all questions together."""
    return _calibration(as_columns(outcomes), None, bins)


def calibrations(outcomes: Outcomes, *, bins: int = BINS) -> tuple[Calibration, ...]:
    """The calibration of each question, in the order of their first row."""
    columns = as_columns(outcomes)
    return tuple(_calibration(part, columns.names[place], bins) for place, part in enumerate(columns.by_question()))


def brier_scores(judged: Columns) -> Floats:
    """Σ (p - y)² over the answers, one a row, 0 to 2. scikit-learn's binary score is half of it.

    Source: G. W. Brier, "Verification of forecasts expressed in terms of probability", Monthly Weather Review 78
    (1950).
    """
    import numpy as np

    squares = np.bincount(judged.flat_row, judged.flat**2, minlength=len(judged.row))
    scores: Floats = squares - 2 * judged.label_probability + 1
    return np.maximum(scores, 0.0)  # a hair below 0 where the label has everything, by rounding


def log_losses(judged: Columns) -> Floats:
    """-ln of the label's probability, clipped at SMALLEST; one a row, in nats.

    Source: I. J. Good, "Rational decisions", JRSS B 14 (1952).
    """
    import numpy as np

    losses: Floats = -np.log(np.maximum(judged.label_probability, SMALLEST))
    return losses


def decompose(judged: Columns, bins: int = BINS) -> Decomposition:
    """The Brier score's three terms, each class against the rest and summed over the classes, in bins of equal width.

    What varies within a bin is counted to the resolution, which makes the sum exact.
    Source: A. H. Murphy, J. Applied Meteorology 12 (1973); within-bin terms: D. B. Stephenson, C. A. S. Coelho and
    I. T. Jolliffe, "Two extra components in the Brier score decomposition", Weather and Forecasting 23 (2008).
    """
    import numpy as np

    rows = len(judged.row)
    row, position = judged.flat_row, judged.flat_position
    classes = judged.class_map[judged.class_base[row] + position]
    hit = (position == judged.label[row]).astype(np.float64)
    cell, size = classes * bins + equal_width(judged.flat, bins), len(judged.class_names) * bins
    count = np.maximum(np.bincount(cell, minlength=size), 1)
    forecast, observed = (np.bincount(cell, values, minlength=size) / count for values in (judged.flat, hit))
    offered = np.maximum(np.bincount(classes, minlength=len(judged.class_names)), 1)
    share = np.bincount(classes, hit, minlength=len(offered)) / offered
    apart, within = judged.flat - forecast[cell], hit - observed[cell]
    resolution = (observed[cell] - share[classes]) ** 2 - apart**2 + 2 * apart * within
    return Decomposition(
        reliability=float(((forecast - observed)[cell] ** 2).sum() / rows),
        resolution=float(resolution.sum() / rows),
        uncertainty=float((share * (1 - share))[classes].sum() / rows),
    )


def _calibration(columns: Columns, question: str | None, bins: int) -> Calibration:
    judged = columns.judged
    rows = len(judged.row)
    return Calibration(
        question=question,
        count=rows,
        failed=int((columns.labelled & ~columns.answered).sum()),
        unlabelled=int((~columns.labelled).sum()),
        ties=int(judged.tie.sum()),
        brier=mean_estimate(brier_scores(judged), judged.state) if rows else undefined(NO_ROWS),
        decomposition=decompose(judged, bins) if rows else None,
        log_loss=mean_estimate(log_losses(judged), judged.state) if rows else undefined(NO_ROWS),
        clipped=int((judged.label_probability < SMALLEST).sum()) if rows else 0,
        error=calibration_error(judged, "equal width", bins) if rows else None,
        error_equal_mass=calibration_error(judged, "equal mass", bins) if rows else None,
    )
