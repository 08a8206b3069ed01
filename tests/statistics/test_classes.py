"""Precision, recall, F1 and confusion, with scikit-learn as oracle and the rule for absent classes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import confusion_matrix, f1_score, precision_recall_fscore_support

from clef.decisions.questions import Choice
from clef.statistics.classes import NEVER_LABELLED, NEVER_PREDICTED, confusions
from tests.statistics.making import TEAM, each, outcome, steady

NAMES = ["a", "b", "c"]


def says(prediction: int, label: int) -> tuple[list[float], int]:
    return [0.8 if at == prediction else 0.1 for at in range(3)], label


@steady
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=40))
def test_as_scikit_learn_has_it(pairs: list[tuple[int, int]]) -> None:
    found = confusions(each(*(says(p, y) for p, y in pairs), question=TEAM))[0]
    predicted, labels = [NAMES[p] for p, _ in pairs], [NAMES[y] for _, y in pairs]
    occur = [name for name in NAMES if name in predicted + labels]
    assert [one.name for one in found.classes] == occur
    kept = [NAMES.index(name) for name in occur]
    expected = confusion_matrix(labels, predicted, labels=NAMES)[np.ix_(kept, kept)]
    assert [list(row) for row in found.matrix] == expected.tolist()
    precision, recall, f1, support = precision_recall_fscore_support(labels, predicted, labels=occur, zero_division=0)
    assert [one.precision.value or 0 for one in found.classes] == pytest.approx(precision.tolist())
    assert [one.recall.value or 0 for one in found.classes] == pytest.approx(recall.tolist())
    assert [one.f1 for one in found.classes] == pytest.approx(f1.tolist())
    assert [one.recall.count for one in found.classes] == support.tolist()
    labelled = [name for name in NAMES if name in labels]
    assert found.macro_f1 == pytest.approx(
        f1_score(labels, predicted, labels=labelled, average="macro", zero_division=0)
    )


def test_an_absent_class_is_null_with_a_reason_and_not_zero() -> None:
    found = confusions(each(says(0, 1), says(0, 0), question=TEAM))[0].to_dict()
    assert [one["class"] for one in found["classes"]] == ["a", "b"]  # type: ignore[attr-defined]
    never = found["classes"][1]  # type: ignore[index]
    assert never["precision"]["accuracy"] is None
    assert never["reason"] == NEVER_PREDICTED
    other = confusions(each(says(2, 0), question=TEAM))[0].to_dict()["classes"][1]  # type: ignore[index]
    assert (other["recall"]["accuracy"], other["reason"]) == (None, NEVER_LABELLED)


def test_each_question_has_its_own_classes_though_names_are_the_same() -> None:
    rows = [outcome((0.9, 0.1), 0, name="x"), outcome((0.9, 0.1), 1, name="y"), outcome(None, 1, name="y")]
    first, second = confusions(rows)
    assert (first.count, second.count, second.failed) == (1, 1, 1)
    assert first.macro_f1 == 1.0
    assert second.macro_f1 == 0.0


def test_options_in_another_order_are_the_same_classes() -> None:
    turned = Choice("Which one?", ["b", "a"])
    found = confusions([outcome((0.9, 0.1), 0), outcome((0.1, 0.9), 1, turned)])[0]
    assert found.matrix == ((2,),)
