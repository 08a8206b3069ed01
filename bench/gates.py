"""What gates are worth, by simulation with models whose truth is known: their coverage, accuracy and promises."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from bench import known
from bench.known import CALIBRATED, MODELS, NOUL_YES, RECALIBRATED, RISK, TOO_SURE, Row, holds, points, shown
from clef.decisions.examples import Outcome
from clef.statistics.columns import as_columns
from clef.statistics.gates import Cut, Gates, gates
from clef.statistics.guarantee import guaranteed_gates
from clef.statistics.ladder import Cost, ReviewBudget, Rule, TargetAccuracy
from clef.statistics.recalibration import fit

TARGET = 0.9
CONFIDENCE = 0.95


class Worth:
    """What gates said of themselves against what they are worth."""

    def __init__(self) -> None:
        self._gap: list[float] = []
        self._optimism: list[float] = []
        self._coverage: list[float] = []
        self._accuracy_held: list[bool] = []
        self._coverage_held: list[bool] = []

    def note(self, cut: Cut | Gates, covered: float, accuracy: float) -> None:
        """Note a cut with a threshold, or several together, of which coverage and accuracy are known."""
        if cut.accuracy.value is None:
            return
        self._gap.append(cut.accuracy.value - accuracy)
        if isinstance(cut, Cut) and cut.optimistic_accuracy is not None:
            self._optimism.append((cut.optimistic_accuracy.value or 0) - accuracy)
        self._coverage.append((cut.coverage.value or 0) - covered)
        self._accuracy_held.append(holds(cut.accuracy.interval, accuracy))
        self._coverage_held.append(holds(cut.coverage.interval, covered))

    def rows(self, of: str) -> Iterator[Row]:
        """The rows of the table."""
        yield f"{of}: out-of-bag accuracy less true", points(self._gap), "0 within noise"
        if self._optimism:
            yield "  in-sample accuracy less true (shown as optimistic)", points(self._optimism), ""
        yield "  coverage less true", points(self._coverage), "0 within noise"
        yield "  the interval of the accuracy covers the true one", shown(self._accuracy_held), "95 %"
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


def gates_of_other_rules() -> Iterator[Row]:
    """The same by review budget and by cost, with rows of their own and with five to a state."""
    rules: tuple[tuple[str, Rule], ...] = (
        (f"gate for {TARGET:.0%}", TargetAccuracy(TARGET)),
        ("gate that has 30% reviewed", ReviewBudget(0.3)),
        ("cheapest gate, an error five checks", Cost(5, 1)),
    )
    for model in MODELS:
        for rows, copies in ((200, 1), (600, 1), (600, 5), (2000, 1)):
            for name, rule in rules:
                rng = np.random.default_rng(14)
                worth = Worth()
                for _ in range(200 if rows < 1000 else 100):
                    table = model.table(rng, rows) if copies == 1 else model.shared(rng, rows, copies)
                    cut = gates(table, rule).questions[0].cuts[0]
                    if cut.threshold is not None:
                        worth.note(cut, *model.truth(cut.threshold))
                yield from worth.rows(f"{name}, {rows} rows, {copies} a state, {model.name}")


def noul_gates() -> Iterator[Row]:
    """The same of a noul: its yes, its no, and both together."""
    for model in MODELS:
        rng = np.random.default_rng(15)
        each = {"yes": Worth(), "no": Worth(), "both": Worth()}
        for _ in range(200):
            found = gates(model.noul(rng, 600), TargetAccuracy(TARGET))
            covered = right = 0.0
            for cut in found.questions[0].cuts:
                if cut.threshold is not None:
                    true = model.truth(cut.threshold)
                    each[cut.side].note(cut, *true)
                    share = NOUL_YES if cut.side == "yes" else 1 - NOUL_YES
                    covered, right = covered + share * true[0], right + share * true[0] * true[1]
            if covered:
                each["both"].note(found, covered, right / covered)
        for side, worth in each.items():
            yield from worth.rows(f"gate of a noul for {TARGET:.0%}, 600 rows, {side}, {model.name}")


def questions_together() -> Iterator[Row]:
    """Coverage and accuracy over the gates of four questions about the same states."""
    for rows, states in ((800, 200), (2400, 600)):
        rng = np.random.default_rng(16)
        worth = Worth()
        for _ in range(100):
            table = [
                replace(one, example=replace(one.example, question_name=f"q{at % 4}"))
                for at, one in enumerate(CALIBRATED.shared(rng, rows, 4))
            ]
            found = gates(table, TargetAccuracy(TARGET))
            true = [CALIBRATED.truth(one.cuts[0].threshold) for one in found.questions if one.cuts[0].threshold]
            covered = sum(share for share, _ in true) / 4
            if covered:
                worth.note(found, covered, sum(share * right for share, right in true) / 4 / covered)
        yield from worth.rows(f"gates for {TARGET:.0%} of four questions together, {states} states, calibrated")


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
    for model in (CALIBRATED, TOO_SURE, known.FLAT, known.WORSE_WHEN_SURE):
        rng = np.random.default_rng(4)
        broken, given = [], []
        for _ in range(600):
            cut = guaranteed_gates(model.table(rng, 400), RISK, CONFIDENCE).questions[0].cuts[0]
            given.append(cut.threshold is not None)
            broken.append(cut.threshold is not None and 1 - model.truth(cut.threshold)[1] > RISK)
        of = f"promise of {RISK:.0%} risk at {CONFIDENCE:.0%}, 400 rows, {model.name}"
        yield f"{of}: broken", shown(broken), f"at most {1 - CONFIDENCE:.0%}"
        yield "  a threshold was given", shown(given), ""


GATES = (gate_estimates, gates_of_other_rules, noul_gates, questions_together, recalibrated_gates, pooled_gates)
PARTS = (*GATES, promises, further_promises)
