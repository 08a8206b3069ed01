"""Turns two runs into pairs of outcomes about the same thing: the same state, images, question and answers.

Row numbers and question names play no part, so a table may be sorted or renamed between two runs. Where an input
stands in a run several times, its n-th place is paired with the n-th of the other run. A pair whose two labels differ
measures nothing and is left out, counted.

Two wordings of one question are the same thing asked in two ways, which is what a person who compares them wants to
know about. So a question that only one run has is taken for another wording of one that only the other run has, where
both allow the same answers in the same order and no third question might be meant; the note says so.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from clef.decisions.questions import Question, Score
from clef.errors import InputError
from clef.statistics.halves import Asked, Half, Runs, as_half

if TYPE_CHECKING:
    from clef.statistics.columns import Ints


@dataclass(frozen=True, slots=True)
class Pairs:
    """Places of the outcomes that belong together, in the order of the first run."""

    first: Ints = field(compare=False)
    second: Ints = field(compare=False)
    only_first: int
    """Outcomes of the first run without a partner."""
    only_second: int
    relabelled: int
    """Pairs left out since their labels differ."""
    unlabelled: int
    """Pairs left out since they have no label."""
    reworded: int = 0
    """Questions that the second run words differently."""

    @property
    def same_rows(self) -> bool:
        """Whether both runs are about the same rows with the same labels, however the question is worded."""
        return not (self.only_first or self.only_second or self.relabelled)

    @property
    def note(self) -> str:
        """What of the two runs is compared."""
        worded = f"; {self.reworded} question{'s' * (self.reworded > 1)} worded differently" if self.reworded else ""
        if self.same_rows:
            return f"both runs have the same {len(self.first) + self.unlabelled} rows{worded}"
        left_out = [
            f"{count} {what}"
            for count, what in (
                (self.only_first, "only in the first run"),
                (self.only_second, "only in the second"),
                (self.relabelled, "labelled differently"),
            )
            if count
        ]
        compared = f"compared on the {len(self.first)} labelled rows that both runs have"
        return f"{compared}; left out: {', '.join(left_out)}{worded}"


def pair(first: Runs, second: Runs, *, refuse: bool = False) -> Pairs:
    """The pairs of two runs. Raises InputError where none exist, or, if told to refuse, where the rows differ."""
    import numpy as np

    one, other = as_half(first), as_half(second)
    wordings = _wordings(one.questions, other.questions)
    here, there = _matched(one, other, wordings)
    ours, theirs = one.columns.label[here], other.columns.label[there]
    unlabelled, same = (ours < 0) & (theirs < 0), (ours == theirs) & (ours >= 0)
    pairs = Pairs(
        here[same],
        there[same],
        len(one.key) - len(here),
        len(other.key) - len(here),
        int(np.sum(~same & ~unlabelled)),
        int(unlabelled.sum()),
        len(wordings),
    )
    if not len(pairs.first):
        raise InputError("the two runs have no labelled row in common", hint="compare runs over the same table")
    if refuse and not pairs.same_rows:
        raise InputError(f"the two runs are about different rows: {pairs.note}", hint="compare what both have instead")
    return pairs


def _matched(one: Half, other: Half, wordings: dict[str, str]) -> tuple[Ints, Ints]:
    """Places of the rows that ask the same, in the order of the first run; the n-th of one with the n-th of the other.

    All rows are sorted by what they ask, those of the first run before those of the second: a million take a second.
    """
    import numpy as np

    places = {key: place for place, key in enumerate(one.questions)}
    renamed = [places.setdefault(wordings.get(key, key), len(places)) for key in other.questions]
    asked = np.concatenate([one.key, np.array(renamed, dtype=np.int64)[other.key]])
    state, mine = np.concatenate([one.state, other.state]), len(one.key)
    order = np.lexsort((asked, state[:, 1], state[:, 0]))
    if not len(order):
        return order, order
    changes = (np.diff(state[order], axis=0) != 0).any(axis=1) | (np.diff(asked[order]) != 0)
    begins = np.flatnonzero(np.concatenate([[True], changes]))
    group = np.cumsum(np.concatenate([[0], changes]))
    of_mine = order < mine
    counts = np.add.reduceat(of_mine, begins, dtype=np.int64)
    partner = np.arange(len(order)) + counts[group]  # the n-th of theirs stands so many places after the n-th of ours
    inside = of_mine & (partner < np.append(begins[1:], len(order))[group])
    here, there = order[inside], order[partner[inside]] - mine
    by_first = np.argsort(here)
    return here[by_first], there[by_first]


def _wordings(ours: dict[str, Asked], theirs: dict[str, Asked]) -> dict[str, str]:
    """For each question of theirs that is another wording of one of ours: their key to our key."""
    found: dict[str, str] = {}
    for named in (True, False):
        here = _kinds({key: ours[key] for key in ours.keys() - theirs.keys() - set(found.values())}, named)
        there = _kinds({key: theirs[key] for key in theirs.keys() - ours.keys() - found.keys()}, named)
        found |= {
            there[kind][0]: here[kind][0] for kind in here.keys() & there if len(here[kind]) == len(there[kind]) == 1
        }
    return found


def _kinds(questions: dict[str, Asked], named: bool) -> dict[tuple[object, str], list[str]]:
    """Keys of questions by what two wordings of a question share, the name too where `named`."""
    kinds: dict[tuple[object, str], list[str]] = defaultdict(list)
    for key, asked in questions.items():
        kinds[_allowed(asked.question), asked.name if named else ""].append(key)
    return kinds


def _allowed(question: Question) -> tuple[str, tuple[str, ...] | int]:
    """What two wordings of a question have in common. The levels of a score are words too, so only their number."""
    return question.type, len(question.levels) if isinstance(question, Score) else question.answers
