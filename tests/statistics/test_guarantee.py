"""The promised gate: exact tests on fixed thresholds, and no promise where the rows cannot bear one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from clef.errors import InputError
from clef.statistics.guarantee import GRID, _binomial, _sequence, _starts, guaranteed_gates
from tests.statistics.making import ANGRY, PAIR, drawn, each, outcome, steady


def test_a_threshold_is_given_with_its_exact_p_value() -> None:
    cut = guaranteed_gates(drawn(2000, 1, PAIR), risk=0.1, confidence=0.9).questions[0].cuts[0]
    assert cut.threshold in GRID
    assert cut.acted is not None
    assert cut.p is not None
    wrong = cut.acted.count - cut.acted.correct
    assert cut.p == pytest.approx(binom.cdf(wrong, cut.acted.count, 0.1))
    assert cut.p <= cut.level <= 0.1
    assert cut.coverage == cut.acted.count / 2000


def test_the_promise_is_harder_to_give_than_the_target_is_to_reach() -> None:
    found = [
        guaranteed_gates(drawn(3000, 1, PAIR), risk, 0.95).questions[0].cuts[0].coverage or 0 for risk in (0.02, 0.1)
    ]
    assert 0 <= found[0] < found[1] < 1


def test_a_model_no_better_than_the_risk_gets_no_promise() -> None:
    rng = np.random.default_rng(2)
    rows = each(*[([p, 1 - p], int(rng.random() < 0.2)) for p in rng.uniform(0.5, 1, 600)])
    cut = guaranteed_gates(rows, risk=0.1).questions[0].cuts[0]
    assert (cut.status, cut.threshold, cut.acted) == ("unreachable", None, None)


@steady
@given(st.lists(st.tuples(st.integers(1, 300), st.floats(0, 1)), min_size=1, max_size=40), st.sampled_from([0.05, 0.2]))
def test_tests_and_sequences_are_mapies(cells: list[tuple[int, float]], risk: float) -> None:
    methods = pytest.importorskip("mapie.risk_control.methods", reason="mapie is an oracle where it is installed")
    control = pytest.importorskip("mapie.risk_control.fwer_control")
    acted = np.array([count for count, _ in cells])
    wrong = np.floor(acted * np.array([share for _, share in cells]) * 0.3)
    ours = _binomial(wrong, acted, risk)
    shares = np.maximum(wrong - 1e-9, 0) / acted  # it rounds share times rows up: 51.00000000000001 wrong become 52
    theirs = methods.compute_hoeffding_bentkus_p_value(shares, acted, risk, binary=True).ravel()
    assert ours == pytest.approx(theirs, abs=1e-9)
    rejected = control.FWERFixedSequenceTesting(n_starts=1).run(ours, 0.1)
    last = int(rejected[-1]) if len(rejected) else None
    assert _sequence(ours, acted, 0, 0.1) == last


def test_a_sequence_ends_at_its_first_failure_and_starts_where_rows_enough_act() -> None:
    acted = np.array([10, 60, 70, 80, 90])
    p_values = np.array([0.9, 0.05, 0.01, 0.051, 0.0])
    assert _sequence(p_values, acted, 60, 0.05) == 2
    assert _sequence(p_values, acted, 10, 0.05) is None
    assert _sequence(p_values, acted, 90, 0.05) == 4
    assert _sequence(p_values, acted, 91, 0.05) is None


def test_fewest_rows_without_an_error_that_could_ever_succeed() -> None:
    assert _starts(58, 0.05, 0.05) == []
    assert _starts(59, 0.05, 0.05) == [59]  # 0.95^59 = 0.0485
    assert all(0.95 ** starts[0] <= 0.05 / len(starts) for starts in (_starts(n, 0.05, 0.05) for n in (200, 5000)))


def test_copies_of_a_state_count_once_and_both_sides_of_a_noul_share_the_doubt() -> None:
    rows = [outcome([0.99, 0.01], 0, state=f"s{at % 60}", row=at + 2) for at in range(600)]
    assert guaranteed_gates(rows).questions[0].cuts[0].count == 60
    noul = guaranteed_gates(each(*[([0.99, 0.01], 0)] * 80, *[([0.01, 0.99], 1)] * 80, question=ANGRY)).questions[0]
    alone = guaranteed_gates(each(*[([0.99, 0.01], 0)] * 80)).questions[0].cuts[0]
    assert [cut.side for cut in noul.cuts] == ["yes", "no"]
    assert all(cut.threshold is not None for cut in (alone, *noul.cuts))
    assert [cut.level for cut in noul.cuts] == pytest.approx([alone.level / 2] * 2)


def test_ties_are_in_no_promise_and_few_labels_in_none() -> None:
    tied = guaranteed_gates(each(*[([0.5, 0.5], 0)] * 300)).questions[0].cuts[0]
    assert tied.threshold is None
    assert guaranteed_gates(each(*[([0.99, 0.01], 0)] * 49)).questions[0].cuts[0].status == "refused"


@pytest.mark.parametrize(("risk", "confidence"), [(0, 0.9), (1, 0.9), (0.1, 0), (0.1, 1)])
def test_what_cannot_be_promised_is_refused(risk: float, confidence: float) -> None:
    with pytest.raises(InputError):
        guaranteed_gates([], risk, confidence)
