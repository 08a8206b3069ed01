"""What the statistics are worth, by simulation with models whose truth is known, and what they cost.

Two models of a two-way question: a calibrated one, right with exactly its top probability, and one that is too sure.
Tables are drawn from a model, measured, and compared with what is true of it. Seeds are fixed.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from clef.decisions.answers import Answer
from clef.decisions.examples import Example, Outcome
from clef.decisions.questions import Choice, Noul, Question, Score
from clef.statistics.binning import error_value
from clef.statistics.calibration import SMALLEST, brier_scores, calibration, log_losses
from clef.statistics.columns import Columns, as_columns
from clef.statistics.compare import sign_flip_p
from clef.statistics.gates import Cut, gates
from clef.statistics.guarantee import guaranteed_gates
from clef.statistics.intervals import Interval, paired_difference, wilson
from clef.statistics.ladder import TargetAccuracy
from clef.statistics.methods import Method
from clef.statistics.rates import rate
from clef.statistics.recalibration import fit, recalibrate
from clef.statistics.resampling import mean_estimate
from clef.statistics.summary import summarise

Floats = NDArray[np.float64]
Row = tuple[str, str, str]
QUESTION = Choice("Which?", ["a", "b"])
POPULATION = 400_000
TARGET = 0.9
RISK, CONFIDENCE = 0.1, 0.95
BUDGET_S = 2.0


@dataclass(frozen=True)
class Model:
    """A model of which it is known how often it is right at each top probability."""

    name: str
    right_at: Callable[[Floats], Floats]

    def tops(self, rng: np.random.Generator, rows: int) -> Floats:
        """Top probabilities: from one half up, many close to 1."""
        return 0.5 + 0.5 * rng.beta(1.6, 0.8, rows)

    def table(self, rng: np.random.Generator, rows: int) -> list[Outcome]:
        """Labelled outcomes, a state each."""
        tops = self.tops(rng, rows)
        right = rng.random(rows) < self.right_at(tops)
        return [
            Outcome(
                Example(f"{at}", QUESTION, 0 if hit else 1, row=at + 2, question_name="q"),
                Answer("choice", QUESTION.answers, (top, 1 - top)),
            )
            for at, (top, hit) in enumerate(zip(tops.tolist(), right.tolist(), strict=True))
        ]

    @cached_property
    def population(self) -> tuple[Floats, Floats]:
        """Top probabilities of many rows, rising, and the accuracy of all rows from each on."""
        tops = np.sort(self.tops(np.random.default_rng(0), POPULATION))
        return tops, (self.right_at(tops)[::-1].cumsum() / np.arange(1, POPULATION + 1))[::-1]

    @cached_property
    def unseen(self) -> tuple[Columns, Floats]:
        """Rows at even steps of the population, and how often each is right."""
        tops = self.population[0][POPULATION // 8000 :: POPULATION // 4000]
        columns = as_columns(self.table(np.random.default_rng(5), len(tops))).judged
        return columns.with_probabilities(np.stack([tops, 1 - tops], axis=1).ravel()), self.right_at(tops)

    def truth(self, threshold: float) -> tuple[float, float]:
        """Coverage and accuracy above a threshold, in a large population."""
        tops, accuracy = self.population
        place = min(int(np.searchsorted(tops, threshold)), POPULATION - 1)
        return 1 - place / POPULATION, float(accuracy[place])


CALIBRATED = Model("calibrated", lambda p: p)
TOO_SURE = Model("too sure", lambda p: 1 - 0.5**0.4 * (1 - p) ** 0.6)
FLAT = Model(f"right {1 - RISK - 0.001:.1%} everywhere", lambda p: np.full_like(p, 1 - RISK - 0.001))
WORSE_WHEN_SURE = Model("worse when sure", lambda p: 1 - RISK - 0.15 * (p - 0.75))
MODELS = (CALIBRATED, TOO_SURE)
RECALIBRATED: tuple[Method, ...] = ("temperature", "isotonic", "beta")


def shown(hits: list[bool]) -> str:
    """A share with the simulation's own 95 % interval."""
    low, high = wilson(sum(hits), len(hits))
    return f"{sum(hits) / len(hits):.1%} ({low:.1%} to {high:.1%}, {len(hits)} tables)"


def holds(interval: Interval | None, truth: float) -> bool:
    """Whether an interval covers the truth."""
    return interval is not None and interval.low <= truth <= interval.high


def expected_scores(columns: Columns, right: Floats) -> tuple[float, float]:
    """True Brier score and log loss of two-way rows, each right so often."""
    top = columns.flat[::2]
    brier = 2 * (right * (1 - top) ** 2 + (1 - right) * top**2)
    loss = -right * np.log(np.maximum(top, SMALLEST)) - (1 - right) * np.log(np.maximum(1 - top, SMALLEST))
    return float(brier.mean()), float(loss.mean())


def points(values: list[float]) -> str:
    """A mean with its standard error, in points."""
    spread = np.std(values, ddof=1) / len(values) ** 0.5
    return f"{np.mean(values) * 100:+.2f} ± {spread * 100:.2f} points"


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


class Worth:
    """What gates said of themselves against what they are worth."""

    def __init__(self) -> None:
        self._gap: list[float] = []
        self._optimism: list[float] = []
        self._coverage: list[float] = []
        self._accuracy_held: list[bool] = []
        self._coverage_held: list[bool] = []

    def note(self, cut: Cut, covered: float, accuracy: float) -> None:
        """Note a cut with a threshold, of which coverage and accuracy are known."""
        if cut.accuracy.value is None or cut.optimistic_accuracy is None:
            return
        self._gap.append(cut.accuracy.value - accuracy)
        self._optimism.append((cut.optimistic_accuracy.value or 0) - accuracy)
        self._coverage.append((cut.coverage.value or 0) - covered)
        self._accuracy_held.append(holds(cut.accuracy.interval, accuracy))
        self._coverage_held.append(holds(cut.coverage.interval, covered))

    def rows(self, of: str) -> Iterator[Row]:
        """The rows of the table."""
        yield f"{of}: out-of-bag accuracy less true", points(self._gap), "0 within noise"
        yield "  in-sample accuracy less true (shown as optimistic)", points(self._optimism), ""
        yield "  out-of-bag coverage less true", points(self._coverage), "0 within noise"
        yield "  Clopper-Pearson interval covers the true accuracy", shown(self._accuracy_held), "95 %"
        yield "  that of the coverage covers the true coverage", shown(self._coverage_held), "95 %"


def gate_estimates() -> Iterator[Row]:
    """Out-of-bag and in-sample numbers of a gate against what its threshold is really worth."""
    for model, rows in ((CALIBRATED, 600), (TOO_SURE, 600), (CALIBRATED, 200)):
        rng = np.random.default_rng(3)
        worth = Worth()
        for _ in range(250):
            cut = gates(model.table(rng, rows), TargetAccuracy(TARGET)).questions[0].cuts[0]
            if cut.threshold is not None:
                worth.note(cut, *model.truth(cut.threshold))
        yield from worth.rows(f"gate for {TARGET:.0%}, {rows} rows, {model.name}")


def recalibrated_gates() -> Iterator[Row]:
    """The same where thresholds are on the probabilities of a map fitted on the same rows."""
    for method in RECALIBRATED:
        for rows in (200, 600):
            rng = np.random.default_rng(9)
            fresh, right = TOO_SURE.unseen
            worth = Worth()
            for _ in range(250):
                columns = as_columns(TOO_SURE.table(rng, rows))
                map = fit(columns, method)
                if map is None:
                    continue
                cut = gates(map.transform(columns), TargetAccuracy(TARGET)).questions[0].cuts[0]
                if cut.threshold is not None:
                    acted = map.transform(fresh).top >= cut.threshold
                    worth.note(cut, float(acted.mean()), float(right[acted].mean()))
            yield from worth.rows(f"gate for {TARGET:.0%} on {method} probabilities, {rows} rows, too sure")


def pooled_gates() -> Iterator[Row]:
    """The same of one gate for two questions, one of them harder than its probabilities say."""
    for rows in (200, 600):
        rng = np.random.default_rng(10)
        worth = Worth()
        for _ in range(250):
            cut = gates(two_questions(rng, rows), TargetAccuracy(TARGET), pooled=True).questions[0].cuts[0]
            if cut.threshold is not None:
                worth.note(cut, *truth_of_two(cut.threshold))
        yield from worth.rows(f"gate for {TARGET:.0%} pooled over an easy and a hard question, {rows} rows")


def two_questions(rng: np.random.Generator, rows: int) -> list[Outcome]:
    """Rows of two questions by turns: the calibrated model answers one, the too sure one the other."""
    easy, hard = CALIBRATED.table(rng, rows // 2), TOO_SURE.table(rng, rows // 2)
    harder = [
        replace(one, example=replace(one.example, state=f"hard {one.example.state}", question_name="hard"))
        for one in hard
    ]
    return [one for pair in zip(easy, harder, strict=True) for one in pair]


def truth_of_two(threshold: float) -> tuple[float, float]:
    """Coverage and accuracy above a threshold, over both questions."""
    (covered, accuracy), (also, worse) = CALIBRATED.truth(threshold), TOO_SURE.truth(threshold)
    return (covered + also) / 2, (covered * accuracy + also * worse) / (covered + also)


def further_promises() -> Iterator[Row]:
    """The promise on probabilities of a map that was fitted on other rows, and pooled over unequal questions."""
    fresh, right = TOO_SURE.unseen
    of = f"promise of {RISK:.0%} risk at {CONFIDENCE:.0%}"
    for method in RECALIBRATED:
        rng = np.random.default_rng(12)
        broken = []
        for _ in range(400):
            map, columns = fit(TOO_SURE.table(rng, 400), method), as_columns(TOO_SURE.table(rng, 800))
            if map is None:
                continue
            cut = guaranteed_gates(map.transform(columns), RISK, CONFIDENCE).questions[0].cuts[0]
            acted = map.transform(fresh).top >= (2 if cut.threshold is None else cut.threshold)
            broken.append(bool(acted.any()) and 1 - float(right[acted].mean()) > RISK)
        yield f"{of}, 800 rows on {method} probabilities of another table: broken", shown(broken), "at most 5%"
    for rows in (400, 1600):
        rng = np.random.default_rng(13)
        broken = []
        for _ in range(400):
            cut = guaranteed_gates(two_questions(rng, rows), RISK, CONFIDENCE, pooled=True).questions[0].cuts[0]
            broken.append(cut.threshold is not None and 1 - truth_of_two(cut.threshold)[1] > RISK)
        yield f"{of}, pooled over an easy and a hard question, {rows} rows: broken", shown(broken), "at most 5%"


def promises() -> Iterator[Row]:
    """How often the guaranteed gate's risk is larger than it promised, and how often it dares to promise."""
    for model in (CALIBRATED, TOO_SURE, FLAT, WORSE_WHEN_SURE):
        rng = np.random.default_rng(4)
        broken, given = [], []
        for _ in range(600):
            cut = guaranteed_gates(model.table(rng, 400), RISK, CONFIDENCE).questions[0].cuts[0]
            given.append(cut.threshold is not None)
            broken.append(cut.threshold is not None and 1 - model.truth(cut.threshold)[1] > RISK)
        of = f"promise of {RISK:.0%} risk at {CONFIDENCE:.0%}, 400 rows, {model.name}"
        yield f"{of}: broken", shown(broken), f"at most {1 - CONFIDENCE:.0%}"
        yield "  a threshold was given", shown(given), ""


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
    gate_parts = (gate_estimates, recalibrated_gates, pooled_gates, promises, further_promises)
    parts = (speed, accuracy_intervals, score_intervals, *gate_parts, recalibrated, comparisons)
    return [row for part in parts for row in part()]


if __name__ == "__main__":
    for line in measure():
        print(" | ".join(line))
