"""Turns examples into the requests to send: isolated or joint, each distinct one once, in the table's order.

isolated: one question a request. joint: the questions of one state in one request, in the order of its first rows.
A request is identified by its content, its shape and the identity of the model, so an answer is used again only
where all three are the same.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import orjson

from clef.decisions.examples import Example, Request, Shape
from clef.decisions.questions import Question
from clef.decisions.wire import encode
from clef.runs.rows import question_text

JOINT_QUESTIONS = 64
"""Questions a joint request has at most: the smallest limit among the servers known."""


@dataclass(slots=True)
class Ask:
    """One request, and the examples it answers."""

    request: Request
    positions: list[list[int]] = field(default_factory=list)
    """For each question of the request, the places of its examples in the run."""

    @property
    def places(self) -> Iterator[int]:
        """The places of all its examples."""
        return (place for places in self.positions for place in places)

    def key(self, identity: str, shape: Shape) -> bytes:
        """What identifies the request: 16 bytes of BLAKE2 over its wire form, the shape and the model."""
        content = orjson.dumps([identity, shape, encode(self.request)], option=orjson.OPT_SORT_KEYS)
        return hashlib.blake2b(content, digest_size=16).digest()


def plan(examples: Iterable[tuple[int, Example]], shape: Shape) -> list[Ask]:
    """The requests for examples, given each with its place in the run."""
    return _isolated(examples) if shape == "isolated" else _joint(examples)


def _isolated(examples: Iterable[tuple[int, Example]]) -> list[Ask]:
    asks: dict[tuple[bytes, str], Ask] = {}
    texts = _Texts()
    for position, example in examples:
        ask = asks.setdefault((state_content(example), texts.of(example.question)), Ask(example.request, [[]]))
        ask.positions[0].append(position)
    return list(asks.values())


def _joint(examples: Iterable[tuple[int, Example]]) -> list[Ask]:
    states: dict[bytes, dict[str, tuple[Example, list[int]]]] = {}
    texts = _Texts()
    for position, example in examples:
        questions = states.setdefault(state_content(example), {})
        _, positions = questions.setdefault(texts.of(example.question), (example, []))
        positions.append(position)
    asks = []
    for questions in states.values():
        for part in _parts(list(questions.values())):
            first = part[0][0]
            request = Request(first.state, tuple(example.question for example, _ in part), first.images)
            asks.append(Ask(request, [positions for _, positions in part]))
    return asks


class _Texts:
    """The text of each question, made once an object: a table has many rows and few questions."""

    def __init__(self) -> None:
        self._texts: dict[int, tuple[Question, str]] = {}

    def of(self, question: Question) -> str:
        """What identifies a question; the object is kept, so that its id is not used again."""
        known = self._texts.get(id(question))
        if known is None:
            known = self._texts[id(question)] = (question, question_text(question))
        return known[1]


def _parts(questions: Sequence[tuple[Example, list[int]]]) -> list[Sequence[tuple[Example, list[int]]]]:
    return [questions[start : start + JOINT_QUESTIONS] for start in range(0, len(questions), JOINT_QUESTIONS)]


def state_content(example: Example) -> bytes:
    """What two examples share whose questions a joint request asks together: 16 bytes."""
    content = orjson.dumps([example.state, list(example.images)], option=orjson.OPT_SORT_KEYS)
    return hashlib.blake2b(content, digest_size=16).digest()
