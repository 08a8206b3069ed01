"""Turns a Request into a Reply with the 2 MB model that ships with clef, in this process.

It is there so that everything can be tried at once with nothing to download. It reads only the first 512 tokens of
a text without saying so; here a longer text is refused instead.
"""

import asyncio
from functools import cache
from typing import Any

from clef.decisions.answers import Answer
from clef.decisions.examples import Reply, Request
from clef.decisions.questions import Question, as_text
from clef.decisions.wire import encode
from clef.engines.engine import EngineFacts
from clef.errors import TooLong

ABOUT = "You are trying the 2 MB built-in model. It is for trying things: it guesses on yes/no questions."
HOW_TO_LEAVE = "For real answers run `clef serve --model PATH.gguf`, or set CLEF_UPSTREAM to a decision server."


class BuiltinEngine:
    """sparrow-decider: static word vectors and a small network; about 0.4 ms a question."""

    def load(self) -> None:
        """Read the weights, about 0.2 s, once a process; otherwise the first use does."""
        _load()

    @property
    def _decider(self) -> Any:
        return _load()

    @property
    def max_tokens(self) -> int:
        """Tokens of one text (the state, a question, or an option) that the model reads."""
        return int(self._decider.static.max_len)

    async def facts(self) -> EngineFacts:
        """Always ready."""
        name = str(self._decider.name)
        return EngineFacts("builtin", "ready", name, max_tokens=self.max_tokens, message=ABOUT, hint=HOW_TO_LEAVE)

    async def decide(self, request: Request) -> Reply:
        """Answer in a thread, so that a long text or 255 options never hold up the page."""
        return await asyncio.to_thread(self._decide, request)

    async def count_tokens(self, request: Request) -> int | None:
        """Tokens of the longest text of the request: each text is read by itself."""
        return await asyncio.to_thread(lambda: max(self._counts(encode(request))))

    async def close(self) -> None:
        """Nothing to give back."""

    def _decide(self, request: Request) -> Reply:
        body = encode(request)
        counts = self._counts(body)
        if max(counts) > self.max_tokens:
            hint = "the built-in model reads 512 tokens a text; shorten it, or run a real model"
            raise TooLong(max(counts), self.max_tokens, hint=hint)
        questions = zip(request.questions, body["questions"].values(), strict=True)
        answers = tuple(self._answer(body["state"], question, raw) for question, raw in questions)
        return Reply(answers, str(self._decider.name), sum(counts))

    def _answer(self, state: Any, question: Question, raw: dict[str, Any]) -> Answer:
        """The model's probabilities before its own rounding; it lists a noul as false, true."""
        *_, found = self._decider.probs(state, raw)
        probabilities = [float(p) for p in found]
        if question.type == "noul":
            probabilities.reverse()
        return Answer(question.type, question.answers, tuple(probabilities))

    def _counts(self, body: dict[str, Any]) -> list[int]:
        """Tokens of the state and of each question's instructions and options."""
        texts = [as_text(body["state"])]
        for question in body["questions"].values():
            criteria = question.get("criteria") or {}
            named = criteria.items() if isinstance(criteria, dict) else [("", level) for level in criteria]
            texts.append(as_text(question["instructions"]))
            texts.extend(f"{name} {as_text(text) if text else ''}" for name, text in named)
        return [len(self._decider.static.tok.encode(text, len(text) + 1)) for text in texts]


@cache
def _load() -> Any:
    from sparrow_decider import Decider

    return Decider.load()
