"""One way to ask for a gate, and gates on recalibrated probabilities that know no label they are judged by."""

import numpy as np
import pytest

from clef.errors import InputError
from clef.statistics.columns import as_columns
from clef.statistics.gates import Cut, Gates
from clef.statistics.guarantee import GuaranteedGates
from clef.statistics.methods import METHODS
from clef.statistics.policy import decide
from clef.statistics.wanted import Wanted
from tests.statistics.making import PAIR, drawn


@pytest.mark.parametrize(
    ("wanted", "kind"),
    [
        (Wanted(accuracy=0.9), Gates),
        (Wanted(review=0.2), Gates),
        (Wanted(wrong=10, check=1), Gates),
        (Wanted(risk=0.1), GuaranteedGates),
        (Wanted(accuracy=0.9, pooled=True), Gates),
    ],
)
def test_each_way_gives_gates_and_their_policy(wanted: Wanted, kind: type) -> None:
    found = wanted.measure(drawn(400, 1, name="q"), model="m")
    assert isinstance(found.gates, kind)
    assert found.policy.model == "m"
    assert found.policy.recalibration is None
    assert bool(found.policy.pooled) == wanted.pooled
    assert bool(found.policy.questions) != wanted.pooled


@pytest.mark.parametrize(
    "wanted",
    [
        Wanted(),
        Wanted(accuracy=0.9, review=0.1),
        Wanted(wrong=1),
        Wanted(accuracy=2),
        Wanted(accuracy=0.9, recalibrate="magic"),  # type: ignore[arg-type]  # what a request may say
        Wanted(risk=0.1, recalibrate="beta"),
    ],
)
def test_what_makes_no_sense_is_refused(wanted: Wanted) -> None:
    with pytest.raises(InputError):
        wanted.measure(drawn(60, 1))


@pytest.mark.parametrize("method", METHODS)
def test_a_recalibrated_policy_acts_on_the_share_its_gate_reports(method: str) -> None:
    rows = drawn(400, 5, sharpness=2, name="q")
    found = Wanted(accuracy=0.85, recalibrate=method).measure(rows)  # type: ignore[arg-type]  # one of METHODS
    assert isinstance(found.gates, Gates)
    assert found.policy.recalibration is not None
    (cut,) = found.gates.questions[0].cuts
    acted = sum(row.answer is not None and decide(found.policy, "q", row.answer) == "act" for row in rows)
    assert acted == round((cut.coverage.value or 0) * cut.count) > 0


def test_a_recalibrated_gate_is_as_honest_as_a_raw_one() -> None:
    """Over tables of a model that is too sure: what the gate says it gets right, less what is right of unseen rows."""
    unseen = drawn(20_000, 999, sharpness=2, name="q")
    gaps = []
    for seed in range(12):
        found = Wanted(accuracy=0.85, recalibrate="isotonic").measure(drawn(300, seed, sharpness=2, name="q"))
        assert isinstance(found.gates, Gates)
        (cut,) = found.gates.questions[0].cuts
        if cut.threshold is None or cut.accuracy.value is None:
            continue
        assert found.policy.recalibration is not None
        seen = found.policy.recalibration.transform(as_columns(unseen))
        inside = seen.top >= cut.threshold
        gaps.append(cut.accuracy.value - float(seen.correct[inside].mean()))
    assert len(gaps) > 8
    assert abs(float(np.mean(gaps))) < 0.025


def test_a_rising_map_moves_the_threshold_and_nothing_that_is_said_of_the_gate() -> None:
    rows = drawn(300, 5, PAIR, sharpness=2, name="q")
    (raw,), (mapped,) = (
        found.gates.questions[0].cuts
        for found in (Wanted(accuracy=0.85, recalibrate=by).measure(rows) for by in ("none", "isotonic"))
    )
    assert isinstance(raw, Cut)
    assert isinstance(mapped, Cut)
    assert raw.threshold != mapped.threshold
    assert mapped.coverage.value == pytest.approx(raw.coverage.value, abs=0.005)
    assert mapped.accuracy.value == pytest.approx(raw.accuracy.value, abs=0.005)
