"""Rows whose label is worth a look: ranked, worded as a question about the label, and in no number."""

from clef.decisions.questions import Choice
from clef.statistics.summary import summarise
from clef.statistics.suspects import suspects
from tests.statistics.making import ANGRY, TEAM, each, outcome


def test_the_surest_error_comes_first_and_unsure_ones_not_at_all() -> None:
    rows = each(([0.92, 0.08], 1), ([0.99, 0.01], 1), ([0.89, 0.11], 1), ([0.99, 0.01], 0), ([0.97, 0.03], None))
    found = suspects(rows)
    assert [item.position for item in found.items] == [1, 0]
    assert found.items[0].message == 'check the label: the model says "a" with 0.990'
    assert (found.labelled, found.unlabelled, found.ceiling) == (4, 1, 1.0)


def test_of_two_sure_errors_the_one_that_gives_the_label_less_is_first() -> None:
    rows = each(([0.91, 0.08, 0.01], 1), ([0.91, 0.08, 0.01], 2), question=TEAM)
    assert [item.position for item in suspects(rows).items] == [1, 0]


def test_the_same_input_with_two_labels_is_flagged_in_every_row() -> None:
    rows = [
        outcome((0.99, 0.01), 0, ANGRY, state="s", row=2),
        outcome((0.99, 0.01), 1, ANGRY, state="s", row=3),
        outcome(None, 0, ANGRY, state="s", row=4),
        outcome((0.99, 0.01), 1, ANGRY, state="other", row=5),
        outcome((0.99, 0.01), None, ANGRY, state="s", row=6),
    ]
    found = suspects(rows)
    assert [(item.row, item.others) for item in found.items] == [(3, (2, 4)), (5, ()), (2, (3,)), (4, (3,))]
    assert found.items[0].kinds == ("confident error", "two labels")
    assert found.items[0].message.startswith("check the label: the same input has another label in row 2, 4")
    assert (found.conflicting, found.ceiling) == (3, 3 / 4)


def test_another_question_or_other_options_are_another_input() -> None:
    wider = Choice("Which one?", ["a", "b", "c"])
    rows = [
        outcome((0.6, 0.4), 0, state="s"),
        outcome((0.2, 0.7, 0.1), 1, wider, state="s"),
        outcome((0.9, 0.1), 1, ANGRY, state="s"),
    ]
    assert suspects(rows).conflicting == 0


def test_a_tie_is_no_confident_error() -> None:
    assert suspects(each(([0.5, 0.5], 1)), confident=0.4).items == ()


def test_no_number_changes() -> None:
    rows = each(([0.99, 0.01], 1), ([0.99, 0.01], 0))
    before = summarise(rows)
    suspects(rows)
    assert summarise(rows) == before
    assert suspects([]).to_dict()["reason"] == "no row has a label"


def test_a_stream_of_outcomes_is_enough() -> None:
    rows = [outcome((0.99, 0.01), row % 2, state=f"s{row // 2}", row=row) for row in range(2000)]
    found = suspects(iter(rows))
    assert found == suspects(rows)
    assert (found.conflicting, found.ceiling) == (2000, 0.5)
