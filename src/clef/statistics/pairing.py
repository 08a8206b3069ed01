"""Turns two runs into pairs of outcomes about the same thing: the same state, images, question and answers.

Row numbers and question names play no part, so a table may be sorted or renamed between two runs. Where an input
stands in a run several times, its n-th place is paired with the n-th of the other run. A pair whose two labels differ
measures nothing and is left out, counted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from clef.decisions.examples import Outcome
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

    @property
    def same_rows(self) -> bool:
        """Whether both runs are about the same rows with the same labels."""
        return not (self.only_first or self.only_second or self.relabelled)

    @property
    def note(self) -> str:
        """What of the two runs is compared."""
        if self.same_rows:
            return f"both runs have the same {len(self.first) + self.unlabelled} rows"
        left_out = [
            f"{count} {what}"
            for count, what in (
                (self.only_first, "only in the first run"),
                (self.only_second, "only in the second"),
                (self.relabelled, "labelled differently"),
            )
            if count
        ]
        return f"compared on the {len(self.first)} labelled rows that both runs have; left out: {', '.join(left_out)}"


def pair(first: Sequence[Outcome], second: Sequence[Outcome], *, refuse: bool = False) -> Pairs:
    """The pairs of two runs. Raises InputError where none exist, or, if told to refuse, where the rows differ."""
    places: dict[ContentKey, list[int]] = defaultdict(list)
    for place, key in enumerate(content_keys(second)):
        places[key].append(place)
    taken: dict[ContentKey, int] = defaultdict(int)
    found, relabelled, unlabelled = [], 0, 0
    for place, key in enumerate(content_keys(first)):
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
    )
    if not found:
        raise InputError("the two runs have no labelled row in common", hint="compare runs over the same table")
    if refuse and not pairs.same_rows:
        raise InputError(f"the two runs are about different rows: {pairs.note}", hint="compare what both have instead")
    return pairs
