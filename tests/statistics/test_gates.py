"""Gates: the rule finds its rung, numbers come from rows it did not see, and too few labels give no advice."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clef.errors import InputError
from clef.statistics.columns import Columns, as_columns
from clef.statistics.gates import gates
from clef.statistics.intervals import clopper_pearson
from clef.statistics.ladder import FEWEST_ACTED, Cost, ReviewBudget, Rule, TargetAccuracy, ladder
from clef.statistics.out_of_bag import accuracy_of
from clef.statistics.risk import risk_coverage
from tests.statistics.making import ANGRY, PAIR, TEAM, drawn, each, outcome, steady

TOPS = st.lists(st.tuples(st.integers(50, 60), st.booleans()), min_size=1, max_size=60)

MANY = st.lists(st.tuples(st.integers(50, 60), st.integers(0, 4).map(bool)), min_size=30, max_size=60)
"""Rows enough for a target, most of them right."""


def chosen(rule: Rule, rows: list[tuple[int, bool]]) -> float | None:
    judged = as_columns(each(*[([p / 60, 1 - p / 60], int(not right)) for p, right in rows])).judged
    rungs = ladder(judged)
    counts = (rungs.counts(np.ones(len(rows))), rungs.counts(judged.correct.astype(float)))
    rung = rule.rung(*counts, len(rows))
    return None if rung is None else float(rungs.thresholds[rung])


def above(rows: list[tuple[int, bool]], threshold: float) -> list[bool]:
    return [right for p, right in rows if p / 60 >= threshold]


@steady
@given(MANY, st.sampled_from([0.5, 0.8, 0.9, 1.0]))
def test_the_target_is_reached_by_the_lowest_threshold_there_is(rows: list[tuple[int, bool]], target: float) -> None:
    reaching = []
    for threshold in {p / 60 for p, _ in rows}:
        inside = above(rows, threshold)
        if len(inside) >= FEWEST_ACTED and sum(inside) >= target * len(inside) - 1e-9:
            reaching.append(threshold)
    assert chosen(TargetAccuracy(target), rows) == min(reaching, default=None)


@steady
@given(TOPS, st.sampled_from([0.0, 0.1, 0.5]))
def test_the_budget_is_kept_by_the_highest_threshold_there_is(rows: list[tuple[int, bool]], share: float) -> None:
    keeping = [p / 60 for p, _ in rows if len(above(rows, p / 60)) >= (1 - share) * len(rows) - 1e-9]
    assert chosen(ReviewBudget(share), rows) == max(keeping)


@steady
@given(TOPS)
def test_no_threshold_is_cheaper_than_the_cheapest(rows: list[tuple[int, bool]]) -> None:
    def cost(threshold: float) -> float:
        inside = above(rows, threshold)
        return 5.0 * (len(inside) - sum(inside)) + 1.0 * (len(rows) - len(inside))

    found = chosen(Cost(wrong=5, check=1), rows)
    least = min([cost(p / 60) for p, _ in rows] + [float(len(rows))])
    assert (float(len(rows)) if found is None else cost(found)) == pytest.approx(least)


def test_random_correctness_gives_no_promise_beyond_what_it_is() -> None:
    unseen, optimistic, holding = [], [], []
    for seed in range(25):
        rng = np.random.default_rng(seed)
        rows = each(*[([p, 1 - p], int(rng.random() < 0.5)) for p in rng.uniform(0.5, 1, 60)])
        cut = gates(rows, TargetAccuracy(0.6)).questions[0].cuts[0]
        if cut.status == "unreachable":
            continue
        assert cut.status == "provisional"
        assert cut.optimistic_accuracy is not None
        assert cut.accuracy.interval is not None
        assert cut.accuracy.interval.high - cut.accuracy.interval.low > 0.2
        holding.append(cut.accuracy.interval.low <= 0.5 <= cut.accuracy.interval.high)  # true of every threshold
        optimistic.append(cut.optimistic_accuracy.value or 0)
        unseen.append(cut.accuracy.value or 0)
    assert min(optimistic) >= 0.6
    assert np.mean(unseen) < np.mean(optimistic) - 0.03
    assert np.mean(holding) > 0.8


@pytest.mark.parametrize(
    ("labels", "status"), [(49, "refused"), (50, "provisional"), (199, "provisional"), (200, "ready")]
)
def test_too_few_labels_are_refused_and_few_are_provisional(labels: int, status: str) -> None:
    cut = gates(drawn(labels, 3), ReviewBudget(0.5)).questions[0].cuts[0]
    assert cut.status == status
    assert (cut.threshold is None) == (status == "refused")
    assert (cut.reason is None) == (status == "ready")


def test_copies_of_a_state_are_one_label() -> None:
    cut = gates(drawn(500, 3, states=49), ReviewBudget(0.5)).questions[0].cuts[0]
    assert (cut.status, cut.count, cut.states) == ("refused", 500, 49)


def test_a_noul_has_a_threshold_for_each_side() -> None:
    rng = np.random.default_rng(11)
    rows = []
    for row in range(1200):
        p = float(rng.uniform(0, 1))
        true = p**2 if p > 0.5 else p  # its yes is worth less than it says, its no is not
        rows.append(outcome([p, 1 - p], int(rng.random() >= true), ANGRY, row=row + 2))
    gate = gates(rows, TargetAccuracy(0.85)).questions[0]
    yes, no = gate.cuts
    assert (yes.side, no.side) == ("yes", "no")
    assert yes.threshold is not None
    assert no.threshold is not None
    assert yes.threshold > no.threshold + 0.05
    assert yes.count + no.count == gate.count == 1200
    assert gate.coverage.value == pytest.approx(
        (yes.coverage.value * yes.count + no.coverage.value * no.count) / 1200  # type: ignore[operator]
    )


def drawn_evenly(rng: np.random.Generator, shape: Columns, right: float, copies: int) -> Columns:
    """Rows like `shape` with even top probabilities, which rows of one state share, so often right."""
    rows = len(shape.row)
    top = np.repeat(rng.uniform(0.5, 1, rows // copies), copies)
    labelled = replace(shape, label=np.where(rng.random(rows) < right, 0, 1))
    return labelled.with_probabilities(np.stack([top, 1 - top], axis=1).ravel())


@pytest.mark.parametrize(("rows", "questions", "rule"), [(60, 1, TargetAccuracy(0.8)), (240, 4, ReviewBudget(0.3))])
def test_the_interval_of_the_coverage_holds_what_the_thresholds_act_on(rows: int, questions: int, rule: Rule) -> None:
    rng = np.random.default_rng(1)
    shape = as_columns(
        [outcome([0.9, 0.1], 0, state=at // questions, row=at + 2, name=f"q{at % questions}") for at in range(rows)]
    )
    holding = []
    for _ in range(60):
        found = gates(drawn_evenly(rng, shape, 0.8, questions), rule)
        thresholds = [gate.cuts[0].threshold for gate in found.questions]
        if None in thresholds:
            continue
        true = np.mean([2 * (1 - threshold) for threshold in thresholds])  # type: ignore[operator]  # none is None
        assert found.coverage.interval is not None
        assert found.coverage.interval.low <= (found.coverage.value or 0) <= found.coverage.interval.high
        holding.append(found.coverage.interval.low <= true <= found.coverage.interval.high)
    assert len(holding) > 20
    assert np.mean(holding) >= 0.9


def test_the_shares_of_a_gate_are_those_of_its_cuts_together() -> None:
    found = gates([*drawn(300, 1, name="a"), *drawn(300, 2, sharpness=3, name="b")], TargetAccuracy(0.8))
    acted = [(cut.coverage.value or 0) * cut.count for gate in found.questions for cut in gate.cuts]
    right = [cut.accuracy.value or 0 for gate in found.questions for cut in gate.cuts]
    assert found.coverage.value == pytest.approx(sum(acted) / 600)
    assert found.accuracy.value == pytest.approx(np.average(right, weights=acted))
    assert found.accuracy.count == round(sum(acted))


def test_a_threshold_that_might_have_been_another_has_a_wider_interval() -> None:
    right, state = np.arange(100) % 10 > 0, np.arange(100)
    firm, loose = (accuracy_of(0.9, right, state, spread).interval for spread in (0.0, 0.03**2))
    assert firm is not None
    assert loose is not None
    assert (firm.low, firm.high) == pytest.approx(clopper_pearson(90, 100))
    assert loose.low < firm.low < 0.9 < firm.high < loose.high
    perfect = accuracy_of(1.0, np.ones(100, dtype=bool), state, 0.0).interval
    assert perfect is not None
    assert (perfect.low, perfect.high) == pytest.approx(clopper_pearson(100, 100))


def test_a_threshold_that_no_other_rows_can_judge_is_not_given() -> None:
    rows = [*[([0.99, 0.01], 0)] * 20, *[([0.6, 0.4], 1)] * 60]
    apart = [([p - at * 1e-4, 1 - p + at * 1e-4], label) for at, ((p, _), label) in enumerate(rows)]
    cut = gates(each(*apart), TargetAccuracy(1.0)).questions[0].cuts[0]
    assert (cut.status, cut.threshold) == ("unreachable", None)
    assert cut.reason == "the rule acts on none of the rows that it was not chosen on"


def test_ties_are_never_acted_on_and_equal_probabilities_never_parted() -> None:
    rows = each(*[([0.5, 0.5], 0)] * 60, *[([0.7, 0.3], 0)] * 60)
    gate = gates(rows, ReviewBudget(0.4)).questions[0]
    assert gate.ties == 60
    assert gate.cuts[0].status == "unreachable"
    met = gates(rows, ReviewBudget(0.5)).questions[0].cuts[0]
    assert (met.threshold, met.coverage.value) == (0.7, 0.5)


def test_the_cheapest_gate_costs_less_than_checking_all_or_none() -> None:
    gate = gates(drawn(1500, 4), Cost(wrong=4, check=1)).questions[0].cuts[0]
    assert gate.costs is not None
    assert gate.reason is None
    assert gate.costs.gate < gate.costs.check_all == 1
    assert gate.costs.gate < gate.costs.act_on_all
    hopeless = gates(each(*[([0.6, 0.4], at % 2) for at in range(100)]), Cost(wrong=10, check=1)).questions[0].cuts[0]
    assert (hopeless.status, hopeless.reason) == ("unreachable", "checking everything is cheapest")


def test_failures_and_unlabelled_rows_stand_beside_the_gate() -> None:
    rows = [*drawn(60, 1), outcome(None, 0, TEAM, row=99), outcome([0.5, 0.3, 0.2], None, TEAM, row=100)]
    gate = gates(rows, ReviewBudget(0.5)).questions[0]
    assert (gate.count, gate.failed, gate.unlabelled) == (60, 1, 1)
    assert gate.answers == ("a", "b", "c")


@pytest.mark.parametrize(
    "build", [lambda: TargetAccuracy(0), lambda: ReviewBudget(1), lambda: Cost(-1, 1), lambda: Cost(0, 0)]
)
def test_a_rule_that_means_nothing_is_refused(build: object) -> None:
    with pytest.raises(InputError):
        build()  # type: ignore[operator]


@steady
@given(TOPS)
def test_the_curve_has_one_point_a_probability_and_the_area_of_its_definition(rows: list[tuple[int, bool]]) -> None:
    curve = risk_coverage(each(*[([p / 60, 1 - p / 60], int(not right)) for p, right in rows], question=PAIR))
    risks = [1 - sum(above(rows, p / 60)) / len(above(rows, p / 60)) for p, _ in rows]
    assert curve.area == pytest.approx(np.mean(risks))
    assert [point.threshold for point in curve.points] == sorted({p / 60 for p, _ in rows}, reverse=True)
    assert curve.points[-1].coverage == pytest.approx(1)
