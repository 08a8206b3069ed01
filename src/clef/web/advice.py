"""Turns questions into advice on their wording. It never keeps anyone from asking."""

import re
from collections.abc import Iterator, Sequence
from itertools import combinations

from clef.decisions.questions import Choice, Noul, Option, Question, Score, as_text

MANY_OPTIONS = 10
CATCH_ALL = re.compile(
    r"\b(other|none|neither|unknown|unclear|nothing|else|n/?a|not sure|anything|mixed|neutral|no \w+)\b", re.IGNORECASE
)
"""What says, in an option or in its description, that nothing is left over."""
ASKS = "is|are|was|were|do|does|did|has|have|can|should|will|how|what|which|who|when|where|why"
TWO_AT_ONCE = re.compile(rf"\?.*\S.*\?|\b(?:and|or),? (?:{ASKS})\b", re.IGNORECASE | re.DOTALL)
DENIES = re.compile(r"\b(?:not|never|no longer|\w+n't)\b", re.IGNORECASE)
YES_NO = ({"yes", "no"}, {"true", "false"}, {"y", "n"})


def advice(questions: Sequence[Question], places: Sequence[int] | None = None) -> list[tuple[int, str]]:
    """What could be said better, each with the place of its question; `places` where they are not all there are."""
    seen: dict[str, int] = {}
    found: list[tuple[int, str]] = []
    for place, question in zip(places or range(len(questions)), questions, strict=True):
        text = as_text(question.instructions or "")
        found += [(place, line) for line in _of(question, text)]
        key = f"{question.type} {_plain(text)}"
        if text and key in seen:
            found.append((place, f"Asks the same as question {seen[key] + 1}."))
        seen.setdefault(key, place)
    return found


def _of(question: Question, text: str) -> Iterator[str]:
    if TWO_AT_ONCE.search(text):
        yield "These look like two questions in one. Asked apart, each gets an answer of its own."
    match question:
        case Choice():
            yield from _of_options(question.options)
        case Noul() if DENIES.search(text):
            yield "A yes to a question with “not” is easily misread. Ask what is, rather than what is not."
        case Score() if all(as_text(level).strip().isdigit() for level in question.levels):
            yield "Levels that are only numbers mean little to the model. Say in words what each one is."


def _of_options(options: Sequence[Option]) -> Iterator[str]:
    names = [option.name for option in options]
    if {name.strip().casefold() for name in names} in YES_NO:
        yield "Only yes and no: a yes/no question answers this with one probability."
        return
    if len(names) > MANY_OPTIONS:
        yield f"{len(names)} options are many. Two questions, from coarse to fine, are often answered better."
    if len(names) > 2 and not any(CATCH_ALL.search(f"{one.name} {as_text(one.description or '')}") for one in options):
        yield "One of these is chosen even if none fits. An option such as “none of these” would catch that."
    if len(names) <= 50:
        for one, other in combinations(options, 2):
            if _overlap(one, other):
                yield f"“{one.name}” and “{other.name}” overlap. Describe what sets them apart."
                return


def _overlap(one: Option, other: Option) -> bool:
    """Whether all words of one name are in the other's and nothing tells them apart."""
    if one.description and other.description:
        return False
    words, others = set(_plain(one.name).split()), set(_plain(other.name).split())
    negations = {"not", "no", "non", "un"}
    return bool(words and others) and (words <= others or others <= words) and not (words ^ others) & negations


def _plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))
