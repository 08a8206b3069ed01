"""Turns a request into the length of its prompt in tokens, by the model's tokenizer and what its template adds.

The template is measured, not known: a few small decisions differ in one thing each, and the server says how many
tokens they took. What it adds is the same for every question of a type, option and level, so the sum holds for long
requests to well within 2 %; only merges across the seams of a template are missed. Noted per model type: clef reads
all questions in one prompt, the others each in a prompt of its own, and there the longest one counts.
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from clef.decisions.examples import Request
from clef.decisions.questions import Choice, Json, Noul, Option, Question, Score
from clef.decisions.wire import NEUTRAL_NOUL, normalised

Took = Callable[[Request], Awaitable[int]]
"""The tokens that the server says a decision took."""
Tokenize = Callable[[list[str]], Awaitable[int]]
"""The tokens of texts, each on its own."""

STYLES: tuple[Mapping[str, Any], ...] = tuple(
    {"separators": separators, "ensure_ascii": ascii_only}
    for separators in ((", ", ": "), (",", ":"))
    for ascii_only in (False, True)
)
"""Ways in which a template may print JSON."""
SAMPLE: Mapping[str, Json] = {"a": 1, "b": [True, "é", {"c": 2}]}


@dataclass(frozen=True, slots=True)
class Template:
    """What a model's template adds to the texts of a request, in tokens."""

    choice: int
    score: int
    noul: int
    """A question alone, with all that stands around it; its options, levels and sides aside."""
    option: int
    level: int
    description: int
    true: int
    false: int
    """A meaning that is given; what the template says where none is given is subtracted."""
    shared: int
    """What is there once however many questions there are."""
    is_joint: bool
    """Whether all questions of a request are in one prompt."""
    style: Mapping[str, Any]

    def question(self, question: Question) -> int:
        """What is added around one question's texts, all that stands around it included."""
        match question:
            case Choice():
                described = sum(option.description is not None for option in question.options)
                return self.choice + len(question.options) * self.option + described * self.description
            case Score():
                return self.score + len(question.levels) * self.level
            case Noul():
                sides = (question.true is not None) * self.true + (question.false is not None) * self.false
                return self.noul + sides


async def measure(took: Took, tokenize: Tokenize) -> Template:
    """Measure a model's template by ten small decisions. Raises what they raise."""

    async def added(question: Question, *others: Question, state: Json = "s") -> int:
        texts = [text for each in (question, *others) for text in texts_of(each, STYLES[0])]
        state_text = [state] if isinstance(state, str) else []
        return await took(Request(state, (question, *others))) - await tokenize([*state_text, *texts])

    two, three = Choice("q", ["a", "b"]), Choice("q", ["a", "b", "c"])
    choice = await added(two)
    option = await added(three) - choice
    noul = await added(Noul("q"))
    true = await added(Noul("q", true="t")) - noul
    score = await added(Score("q", ["a", "b"]))
    level = await added(Score("q", ["a", "b", "c"])) - score
    once, twice = await took(Request("s", (two,))), await took(Request("s", (two, two)))
    is_joint = twice < 2 * once
    return Template(
        choice=choice - 2 * option,
        score=score - 2 * level,
        noul=noul,
        option=option,
        level=level,
        description=await added(Choice("q", [Option("a", "d"), Option("b")])) - choice,
        true=true,
        false=await added(Noul("q", true="t", false="f")) - noul - true,
        shared=2 * choice - await added(two, two) if is_joint else 0,
        is_joint=is_joint,
        style=await _style(await added(two, state=SAMPLE) - choice, tokenize),
    )


async def _style(tokens: int, tokenize: Tokenize) -> Mapping[str, Any]:
    """The way of printing JSON that comes closest to the tokens that a sample took."""
    distances = [abs(await tokenize([print_text(SAMPLE, style)]) - tokens) for style in STYLES]
    return STYLES[distances.index(min(distances))]


async def prompt_tokens(request: Request, template: Template, tokenize: Tokenize) -> int:
    """Tokens of the longest prompt that the request makes."""
    state = await tokenize([print_text(request.state, template.style)])
    each = [
        template.question(question) + await tokenize(list(texts_of(question, template.style)))
        for question in request.questions
    ]
    if template.is_joint:
        return state + sum(each) - (len(each) - 1) * template.shared
    return state + max(each)


def texts_of(question: Question, style: Mapping[str, Any]) -> list[str]:
    """Every text of a question that the model reads, in the prompt's order."""
    texts: list[Json] = [question.instructions or NEUTRAL_NOUL]
    match question:
        case Choice():
            for option in question.options:
                texts += [option.name] if option.description is None else [option.name, option.description]
        case Score():
            texts += question.levels
        case Noul():
            texts += [side for side in (question.true, question.false) if side is not None]
    return [print_text(text, style) for text in texts]


def print_text(value: Json, style: Mapping[str, Any]) -> str:
    """A value as the template prints it: strings as they are, the rest as JSON."""
    value = normalised(value)
    return value if isinstance(value, str) else json.dumps(value, **style)
