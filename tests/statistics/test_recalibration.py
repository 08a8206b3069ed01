"""Recalibration: curves as scikit-learn fits them, what they may never change, and scores from unseen states."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from clef.decisions.answers import Answer
from clef.errors import InputError
from clef.statistics.calibration import log_losses
from clef.statistics.columns import as_columns
from clef.statistics.curves import Beta, Curve, Steps, Temperature, fit_beta, fit_steps, fit_temperature, read_curve
from clef.statistics.intervals import Estimate
from clef.statistics.methods import METHODS
from clef.statistics.recalibration import (
    Recalibrator,
    change_of,
    cross_validated,
    fit,
    recalibrate,
    recalibrations,
)
from tests.statistics.making import ANGRY, PAIR, TEAM, URGENT, drawn, each, outcome, steady

CURVES: list[Curve] = [
    Temperature(0.3),
    Temperature(7.0),
    Steps((0.35, 0.5, 0.9), (0.05, 0.4, 0.99)),
    Beta(0.0, 3.0, -2.0),
    Beta(2.0, 0.5, 4.0),
]


def value(estimate: Estimate) -> float:
    assert estimate.value is not None
    assert estimate.interval is not None
    assert estimate.interval.low <= estimate.value <= estimate.interval.high
    return estimate.value


def wide(estimate: Estimate) -> float:
    assert estimate.interval is not None
    return estimate.interval.high - estimate.interval.low


WEIGHTS = st.lists(st.integers(0, 20), min_size=4, max_size=4).filter(any)


@steady
@given(st.sampled_from(CURVES), WEIGHTS, WEIGHTS)
def test_no_curve_changes_what_is_said_or_which_is_surer(curve: Curve, one: list[int], other: list[int]) -> None:
    before = [np.array(weights) / sum(weights) for weights in (one, other)]
    map = Recalibrator("beta", curve)
    answers = [Answer("score", URGENT.answers, tuple(p.tolist())) for p in before]
    after = [map.apply(answer) for answer in answers]
    for old, new in zip(answers, after, strict=True):
        assert new.top == old.top
        assert new.tie == old.tie
        assert sum(new.probabilities) == pytest.approx(1)
        assert min(new.probabilities) >= 0
    together = map.transform(as_columns(each(*[(p.tolist(), 0) for p in before], question=URGENT)))
    assert together.flat.tolist() == pytest.approx([p for answer in after for p in answer.probabilities], abs=1e-12)


@steady
@given(st.sampled_from(CURVES), st.lists(st.floats(0.501, 1), min_size=2, max_size=2, unique=True))
def test_the_surer_of_two_stays_the_surer(curve: Curve, tops: list[float]) -> None:
    map = Recalibrator("isotonic", curve)
    low, high = (map.apply(Answer("choice", ("a", "b"), (p, 1 - p))).top_probability for p in sorted(tops))
    assert low <= high
    if tops and abs(tops[0] - tops[1]) > 1e-3:
        assert low < high


@steady
@given(st.lists(st.tuples(st.integers(51, 100), st.booleans()), min_size=3, max_size=60))
def test_isotonic_steps_are_scikit_learns(rows: list[tuple[int, bool]]) -> None:
    judged = as_columns(
        each(*[([p / 100, 1 - p / 100], int(not right)) for p, right in rows if p > 50] or [([1.0, 0.0], 0)])
    )
    steps = fit_steps(judged)
    oracle = IsotonicRegression(out_of_bounds="clip").fit(judged.top, judged.correct)
    margin = 1 / (len(judged.row) + 2)
    expected = np.clip(oracle.predict(judged.top), margin, 1 - margin)
    assert np.interp(judged.top, steps.at, steps.values) == pytest.approx(expected, abs=1e-9)


def test_the_beta_curve_is_a_logistic_regression_on_two_logarithms() -> None:
    judged = as_columns(drawn(3000, 3, PAIR, sharpness=2)).judged
    found = fit_beta(judged)
    assert found is not None
    terms = np.stack([np.log(judged.top), -np.log1p(-judged.top)], axis=1)
    oracle = LogisticRegression(C=np.inf, max_iter=1000, tol=1e-9).fit(terms, judged.correct)
    expected = expit(oracle.decision_function(terms))
    assert (oracle.coef_ >= 0).all()
    assert expit(found.c + terms @ [found.a, found.b]) == pytest.approx(expected, abs=2e-3)


def test_the_temperature_is_the_one_with_the_lowest_loss_and_undoes_the_sharpness() -> None:
    judged = as_columns(drawn(4000, 5, sharpness=2.5)).judged
    found = fit_temperature(judged)
    assert found.temperature == pytest.approx(2.5, rel=0.05)

    def loss(temperature: float) -> float:
        map = Recalibrator("temperature", Temperature(temperature))
        return float(log_losses(map.transform(judged)).mean())

    assert all(loss(found.temperature) <= loss(found.temperature * factor) + 1e-9 for factor in (0.8, 0.95, 1.05, 1.25))


def test_a_model_that_is_too_sure_gains_and_a_calibrated_one_does_not() -> None:
    gained = recalibrate(drawn(1200, 1, sharpness=3))
    assert gained.helps
    assert gained.before is not None
    assert gained.after is not None
    assert value(gained.after.calibration_error) < value(gained.before.calibration_error) / 2
    assert value(gained.after.brier) < value(gained.before.brier)
    assert not any(one.helps for one in recalibrations(drawn(1200, 2)))


def test_scores_come_from_states_the_map_was_not_fitted_on() -> None:
    rng = np.random.default_rng(0)
    rows = []
    for state in range(80):
        p = float(rng.uniform(0.5, 1))
        label = int(rng.random() < 0.5)  # the probability says nothing, so nothing can be learnt but this
        rows += [outcome([p, 1 - p], label, state=f"s{state}", row=state * 10 + copy + 2) for copy in range(10)]
    found = recalibrate(rows, "isotonic")
    assert found.map is not None
    assert found.after is not None
    fitted_on_all = log_losses(found.map.transform(as_columns(rows).judged)).mean()
    assert fitted_on_all < 0.68  # ten copies of a state let the steps learn the labels by heart
    assert value(found.after.log_loss) > 0.69


def test_a_cross_validated_view_shows_no_row_by_a_map_that_knows_its_label() -> None:
    rows = drawn(300, 4, sharpness=3)
    columns = as_columns(rows)
    for place in (0, 137):
        flipped = list(rows)
        old = rows[place].example
        flipped[place] = replace(
            rows[place], example=replace(old, label=(old.label or 0) + 1 - 2 * ((old.label or 0) > 1))
        )
        mine = np.repeat(np.arange(len(rows)) == place, columns.lengths)
        seen, other = (cross_validated(each, "temperature").flat[mine] for each in (rows, flipped))
        assert seen.tolist() == other.tolist()
        assert seen.tolist() != columns.flat[mine].tolist()


def test_a_cross_validated_view_maps_unlabelled_rows_and_leaves_failures() -> None:
    rows = [*drawn(200, 4, sharpness=3), outcome(None, 0, row=900), outcome([0.9, 0.1], None, row=901)]
    view = cross_validated(rows, "temperature")
    map = fit(rows, "temperature")
    assert map is not None
    assert view.answered.tolist()[-2:] == [False, True]
    assert view.flat[-2:].tolist() == pytest.approx(
        list(map.apply(Answer("choice", PAIR.answers, (0.9, 0.1))).probabilities)
    )
    judged = as_columns(rows).judged
    change, own = change_of(judged, view.judged), recalibrate(rows, "temperature").change
    assert own is not None
    for fixed, fitted in ((change.brier, own.brier), (change.log_loss, own.log_loss)):
        assert fixed.value == fitted.value
        assert wide(fitted) > wide(fixed)  # it knows that another table would have made another map
    with pytest.raises(InputError, match="no beta map"):
        cross_validated(rows[:49], "beta")


def test_each_type_has_its_curve_and_a_rare_one_takes_the_pooled() -> None:
    rows = [*drawn(300, 1, sharpness=3, name="x"), *drawn(300, 2, ANGRY, name="y"), *drawn(20, 3, URGENT, name="z")]
    rows = [
        outcome(o.answer.probabilities, o.example.label, o.example.question, row=at, name=o.example.question_name)
        for at, o in enumerate(rows)
        if o.answer
    ]
    found = fit(rows, "temperature by type")
    assert found is not None
    assert set(found.by_type) == {"choice", "noul"}
    assert found.curve("score") == found.pooled
    choice, noul = found.curve("choice"), found.curve("noul")
    assert isinstance(choice, Temperature)
    assert isinstance(noul, Temperature)
    assert choice.temperature > 2
    assert noul.temperature < 1.3


def test_refused_under_fifty_labels_and_where_nothing_can_be_fitted() -> None:
    few = recalibrate(drawn(49, 1))
    assert (few.map, few.after) == (None, None)
    assert few.reason == "49 labels on different states; at least 50 are needed"
    right = recalibrate(each(*[([0.6, 0.4], 0)] * 80), "beta")
    assert right.reason == "answers are all right or all wrong: nothing to fit"
    assert recalibrate(drawn(50, 1)).map is not None


@pytest.mark.parametrize("method", METHODS)
def test_a_map_comes_back_from_json_as_it_was(method: str) -> None:
    found = fit(drawn(200, 8, TEAM), method)  # type: ignore[arg-type]  # one of METHODS
    assert found is not None
    assert Recalibrator.from_dict(json.loads(json.dumps(found.to_dict(), allow_nan=False))) == found


@pytest.mark.parametrize(
    "raw",
    [
        {},
        {"version": 2, "method": "beta", "pooled": {"curve": "beta", "a": 1, "b": 1, "c": 0}},
        {"version": 1, "method": "magic", "pooled": {"curve": "beta", "a": 1, "b": 1, "c": 0}},
        {"version": 1, "method": "beta", "pooled": {"curve": "beta", "a": -1, "b": 1, "c": 0}},
        {"version": 1, "method": "temperature", "pooled": {"curve": "temperature", "temperature": 0}},
        {"version": 1, "method": "temperature", "pooled": {"curve": "temperature", "temperature": "nan"}},
        {"version": 1, "method": "isotonic", "pooled": {"curve": "steps", "at": [0.5, 0.4], "values": [0, 1]}},
        {"version": 1, "method": "isotonic", "pooled": {"curve": "steps", "at": [0.5], "values": [0, 1]}},
        {"version": 1, "method": "beta", "pooled": {"curve": "other"}},
        {"version": 1, "method": "beta", "pooled": {"curve": "temperature", "temperature": 1}, "by_type": {"x": {}}},
    ],
)
def test_what_is_no_map_is_refused(raw: dict[str, object]) -> None:
    with pytest.raises(InputError):
        Recalibrator.from_dict(raw)


def test_failures_stay_failures() -> None:
    map = Recalibrator("temperature", Temperature(2.0))
    rows = [outcome(None, 0), outcome([0.9, 0.1], 0)]
    failed, answered = map.apply_to(rows)
    assert failed is rows[0]
    assert answered.answer is not None
    assert answered.answer.probabilities == pytest.approx((0.75, 0.25))
    assert read_curve(Temperature(2.0).to_dict()) == Temperature(2.0)
