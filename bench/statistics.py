"""What the statistics are worth, by simulation with models whose truth is known, and what they cost.

Tables are drawn from a model, measured, and compared with what is true of it. Seeds are fixed.
"""

import time
from collections.abc import Iterator

import numpy as np

from bench import gates
from bench.known import CALIBRATED, MODELS, POPULATION, RECALIBRATED, Floats, Model, Row, holds, points, shown
from clef.decisions.answers import Answer
from clef.decisions.examples import Example, Outcome
from clef.decisions.questions import Choice, Noul, Question, Score
from clef.statistics.binning import error_value
from clef.statistics.calibration import SMALLEST, brier_scores, calibration, log_losses
from clef.statistics.columns import Columns, as_columns
from clef.statistics.compare import sign_flip_p
from clef.statistics.intervals import paired_difference, wilson
from clef.statistics.methods import Method
from clef.statistics.rates import rate
from clef.statistics.recalibration import recalibrate
from clef.statistics.resampling import mean_estimate
from clef.statistics.summary import summarise

BUDGET_S = 2.0


def expected_scores(columns: Columns, right: Floats) -> tuple[float, float]:
    """True Brier score and log loss of two-way rows, each right so often."""
    top = columns.flat[::2]
    brier = 2 * (right * (1 - top) ** 2 + (1 - right) * top**2)
    loss = -right * np.log(np.maximum(top, SMALLEST)) - (1 - right) * np.log(np.maximum(1 - top, SMALLEST))
    return float(brier.mean()), float(loss.mean())


def accuracy_intervals() -> Iterator[Row]:
    """Wilson, and Wilson over what rows that share states are worth."""
    rng = np.random.default_rng(1)
    for rows, share in ((20, 0.95), (100, 0.9), (1000, 0.7)):
        counts = rng.binomial(rows, share, 4000)
        hits = [low <= share <= high for low, high in (wilson(int(k), rows) for k in counts)]
        yield f"accuracy interval covers, {rows} rows of {share:.0%}", shown(hits), "95 %"
    for states, copies in ((30, 8), (150, 8)):
        ours, naive = [], []
        for _ in range(1500):
            right = rng.random(states * copies) < np.repeat(rng.beta(3.2, 0.8, states), copies)
            found = rate(right, np.repeat(np.arange(states), copies))
            low, high = found.interval or (0.0, 1.0)
            ours.append(low <= 0.8 <= high)
            low, high = wilson(found.correct, found.count)
            naive.append(low <= 0.8 <= high)
        yield f"  the same, {states} states of {copies} rows", shown(ours), "95 %"
        yield "    were rows taken for independent", shown(naive), ""


def score_intervals() -> Iterator[Row]:
    """Brier score, log loss and calibration error: bootstrap intervals against the truth."""
    for model in MODELS:
        rng = np.random.default_rng(2)
        population = as_columns(model.table(rng, POPULATION // 2)).judged
        true_brier, true_loss = float(brier_scores(population).mean()), float(log_losses(population).mean())
        true_error = 0.0 if model is CALIBRATED else error_value(population)
        brier, losses, errors, alarms = [], [], [], []
        for _ in range(250):
            found = calibration(model.table(rng, 500))
            assert found.error is not None
            brier.append(holds(found.brier.interval, true_brier))
            losses.append(holds(found.log_loss.interval, true_loss))
            errors.append(holds(found.error.interval, true_error))
            alarms.append(found.error.above_noise)
        yield f"Brier interval covers, 500 rows, {model.name}", shown(brier), "95 %"
        yield f"log loss interval covers, 500 rows, {model.name}", shown(losses), "95 %"
        yield f"calibration error interval covers, 500 rows, {model.name}", shown(errors), "95 %"
        yield f"  called above the noise, {model.name}", shown(alarms), "5 %" if model is CALIBRATED else ""


def recalibrated() -> Iterator[Row]:
    """Cross-validated scores of fitted maps against their true scores, on rows whose accuracy is known."""
    for rows, tables in ((150, 300), (400, 300), (2000, 300)):
        for model in MODELS:
            for method in RECALIBRATED:
                yield from _recalibrated(model, method, rows, tables)


def _recalibrated(model: Model, method: Method, rows: int, tables: int) -> Iterator[Row]:
    rng = np.random.default_rng(6)
    fresh, right = model.unseen
    here = expected_scores(fresh, right)
    gaps, after, brier, loss = [], [], [], []
    for _ in range(tables):
        found = recalibrate(model.table(rng, rows), method)
        if found.map is None or found.brier_change is None or found.log_loss_change is None:
            continue
        there = expected_scores(found.map.transform(fresh), right)
        true_brier, true_loss = there[0] - here[0], there[1] - here[1]
        gaps.append((found.brier_change.value or 0) - true_brier)
        after.append(true_brier)
        brier.append(holds(found.brier_change.interval, true_brier))
        loss.append(holds(found.log_loss_change.interval, true_loss))
    of = f"{method}, {rows} rows, {model.name}"
    yield f"{of}: change of Brier, cross-validated less true", points(gaps), "0 within noise"
    yield "  true change of Brier on unseen rows", points(after), ""
    yield "  its interval covers", shown(brier), "95 %"
    yield "  that of the change of log loss covers", shown(loss), "95 %"


def comparisons() -> Iterator[Row]:
    """How often two equally good runs are called different, and how often the interval holds the difference."""
    rng = np.random.default_rng(7)
    for states, copies in ((300, 1), (60, 5)):
        false = []
        for _ in range(2000):
            gains = rng.choice([-1, 0, 1], p=[0.1, 0.8, 0.1], size=states)
            false.append(sign_flip_p(np.repeat(gains, copies), np.repeat(np.arange(states), copies)) <= 0.05)
        yield f"equal runs called decisive, {states} states of {copies}", shown(false), "at most 5 %"
    hits = []
    for _ in range(600):
        gains = rng.choice([-1.0, 0.0, 1.0], p=[0.06, 0.82, 0.12], size=300)
        hits.append(holds(mean_estimate(gains, np.arange(300)).interval, 0.06))
    yield "difference of two runs covers, 300 rows", shown(hits), "95 %"
    for rows in (30, 200):
        cells = rng.multinomial(rows, [0.12, 0.05, 0.83], size=4000)
        hits = [holds(paired_difference(int(a), int(b), rows), 0.07) for a, b, _ in cells]
        yield f"difference to the baseline covers, {rows} rows", shown(hits), "95 %"


def mixed(rows: int, *, shared: bool) -> list[Outcome]:
    """Three questions, one of each type; each about a state of its own, or all three about one."""
    rng = np.random.default_rng(8)
    asked: list[Question] = [Choice("Team?", ["a", "b", "c", "d"]), Noul("Angry?"), Score("Urgent?", ["0", "1", "2"])]
    found = []
    for at in range(rows):
        question = asked[at % 3]
        p = rng.dirichlet(np.full(len(question.answers), 0.5))
        example = Example(
            f"{at // 3 if shared else at}",
            question,
            int(rng.choice(len(p), p=p)),
            row=at + 2,
            question_name=str(question.instructions),
        )
        found.append(Outcome(example, Answer(question.type, question.answers, tuple(p.tolist()))))
    return found


def speed(rows: int = 100_000) -> Iterator[Row]:
    """Seconds from outcomes to a summary and its bootstrap intervals."""
    for shared in (False, True):
        outcomes = mixed(rows, shared=shared)
        taken = []
        for _ in range(3):
            started = time.perf_counter()
            columns = as_columns(outcomes)
            summarise(columns)
            calibration(columns)
            taken.append(time.perf_counter() - started)
        kind = "three rows a state" if shared else "a state each"
        what = f"summary, calibration and their bootstrap, {rows:,} outcomes, {kind}"
        yield what, f"{min(taken):.2f} s (best of 3)", f"{BUDGET_S:.0f} s"


def measure() -> list[Row]:
    """Rows of the table: what, measured, budget or what is right."""
    parts = (speed, accuracy_intervals, score_intervals, *gates.PARTS, recalibrated, comparisons)
    return [row for part in parts for row in part()]


if __name__ == "__main__":
    for line in measure():
        print(" | ".join(line))
