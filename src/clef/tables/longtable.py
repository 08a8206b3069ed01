"""Turns a long table, with one question a row, into its examples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import repeat

from clef.errors import Problem
from clef.tables.columns import Roles
from clef.tables.examples import Examples, bad_answers, bad_states
from clef.tables.options import resemblance
from clef.tables.pictures import bad_images
from clef.tables.resolve import Combination, Resolver, question_key, rare_answers
from clef.tables.table import Grid, Notes, ReadOptions, TableFacts, shown

_RARE_LISTED = 10
"""Answers seen only once that are listed for a question."""
_Key = tuple[str, str, str, str]


def long_examples(
    grid: Grid, roles: Roles, options: ReadOptions, notes: Notes, facts: TableFacts
) -> tuple[Examples, TableFacts]:
    """The examples, and the facts with what was found out about options and labels."""
    keys = _combinations(grid, roles)
    counts = {Combination(*key): count for key, count in Counter(keys).items()}
    headers = roles.named(grid.header)
    resolver = Resolver(counts, headers, options.questions_by_id)
    resolved = {tuple(combination): resolver.resolve(combination) for combination in counts}
    answered = list(map(resolved.__getitem__, keys))
    _tell_derived(resolver, keys, grid, headers, notes)
    bad = bad_answers(grid, answered, resolved.values(), notes)
    bad |= bad_states(grid, roles, notes) | bad_images(grid, roles, notes, options.album)
    kinds = [(resolved[tuple(combination)], count) for combination, count in counts.items()]
    examples = Examples(grid, roles, answered, bad, kinds)
    return examples, replace(
        facts,
        option_separator=resolver.separator if "separated" in resolver.options_from else None,
        options_from=tuple(resolver.options_from),
        score_labels=resolver.score_labels,
        used=len(examples),
    )


def _combinations(grid: Grid, roles: Roles) -> list[_Key]:
    def column(role: str) -> Iterable[str]:
        at = roles.columns.get(role)
        return repeat("", len(grid.rows)) if at is None else grid.columns[at]

    question = repeat(roles.asked, len(grid.rows)) if roles.asked else column("question")
    return list(zip(question, column("options"), column("type"), column("label"), strict=True))


def _tell_derived(
    resolver: Resolver, keys: Sequence[_Key], grid: Grid, headers: Mapping[str, str], notes: Notes
) -> None:
    """Warn of what derived options may hide: an answer seen only once, a question spelt in two ways."""
    groups = resolver.groups
    places = _places(keys, set(groups)) if any(map(rare_answers, groups.values())) else {}
    for question, group in groups.items():
        if len(group.texts) > 1:
            spelt = " and ".join(shown(text, 40) for text in list(group.texts)[:3])
            message = f"{spelt} differ in case or spaces only; their options are taken together"
            notes.warn(Problem(message, "question_spelling", column=headers.get("question")))
        rare = rare_answers(group)
        for name in rare[:_RARE_LISTED]:
            at = places[question, name]
            hint = resemblance(name, [other for other in group.names.values() if other != name])
            message = f"the option {shown(name)} is taken from this row alone: a typo?"
            notes.warn(Problem(message, "rare_option", grid.rows[at], grid.lines[at], headers.get("label"), hint))
        if len(rare) > _RARE_LISTED:
            message = f"{len(rare) - _RARE_LISTED} more answers are there only once"
            notes.warn(Problem(message, "rare_option", column=headers.get("label")))


def _places(keys: Sequence[_Key], questions: set[str]) -> dict[tuple[str, str], int]:
    """The first position of each answer to a question whose options are derived."""
    folded = {text: question_key(text) for text in {key[0] for key in keys}}
    places: dict[tuple[str, str], int] = {}
    for at, (question, options, _, label) in enumerate(keys):
        if not options.strip() and folded[question] in questions:
            places.setdefault((folded[question], label.strip()), at)
    return places
