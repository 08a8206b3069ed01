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
from collections.abc import Sequence
from dataclasses import dataclass

from clef.decisions.examples import Outcome
from clef.decisions.questions import Question, Score
from clef.errors import InputError
from clef.statistics.columns import ContentKey, content_keys


@dataclass(frozen=True, slots=True)
class Pairs:
    """Places of the outcomes that belong together, in the order of the first run."""

    first: tuple[int, ...]
    second: tuple[int, ...]
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


def pair(first: Sequence[Outcome], second: Sequence[Outcome], *, refuse: bool = False) -> Pairs:
    """The pairs of two runs. Raises InputError where none exist, or, if told to refuse, where the rows differ."""
    ours, theirs = content_keys(first), content_keys(second)
    wordings = _wordings(_questions(first, ours), _questions(second, theirs))
    places: dict[ContentKey, list[int]] = defaultdict(list)
    for place, (state, question) in enumerate(theirs):
        places[state, wordings.get(question, question)].append(place)
    taken: dict[ContentKey, int] = defaultdict(int)
    found, relabelled, unlabelled = [], 0, 0
    for place, key in enumerate(ours):
        partners, turn = places.get(key, []), taken[key]
        if turn >= len(partners):
            continue
        taken[key] += 1
        here, there = first[place].example.label, second[partners[turn]].example.label
        if here is None and there is None:
            unlabelled += 1
        elif here != there:
            relabelled += 1
        else:
            found.append((place, partners[turn]))
    together = sum(taken.values())
    pairs = Pairs(
        tuple(here for here, _ in found),
        tuple(there for _, there in found),
        len(first) - together,
        len(second) - together,
        relabelled,
        unlabelled,
        len(wordings),
    )
    if not found:
        raise InputError("the two runs have no labelled row in common", hint="compare runs over the same table")
    if refuse and not pairs.same_rows:
        raise InputError(f"the two runs are about different rows: {pairs.note}", hint="compare what both have instead")
    return pairs


def _questions(outcomes: Sequence[Outcome], keys: Sequence[ContentKey]) -> dict[str, tuple[Question, str]]:
    """The questions of a run by their key, each with its name."""
    return {
        key: (outcome.example.question, outcome.example.question_name)
        for (_, key), outcome in zip(keys, outcomes, strict=True)
    }


def _wordings(ours: dict[str, tuple[Question, str]], theirs: dict[str, tuple[Question, str]]) -> dict[str, str]:
    """For each question of theirs that is another wording of one of ours: their key to our key."""
    found: dict[str, str] = {}
    for named in (True, False):
        here = _kinds({key: ours[key] for key in ours.keys() - theirs.keys() - set(found.values())}, named)
        there = _kinds({key: theirs[key] for key in theirs.keys() - ours.keys() - found.keys()}, named)
        found |= {
            there[kind][0]: here[kind][0] for kind in here.keys() & there if len(here[kind]) == len(there[kind]) == 1
        }
    return found


def _kinds(questions: dict[str, tuple[Question, str]], named: bool) -> dict[tuple[object, str], list[str]]:
    """Keys of questions by what two wordings of a question share, the name too where `named`."""
    kinds: dict[tuple[object, str], list[str]] = defaultdict(list)
    for key, (question, name) in questions.items():
        kinds[_allowed(question), name if named else ""].append(key)
    return kinds


def _allowed(question: Question) -> tuple[str, tuple[str, ...] | int]:
    """What two wordings of a question have in common. The levels of a score are words too, so only their number."""
    return question.type, len(question.levels) if isinstance(question, Score) else question.answers
