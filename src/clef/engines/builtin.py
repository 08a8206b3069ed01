"""Turns a Request into a Reply with the 2 MB model that ships with clef, in this process.

It is there so that everything can be tried at once with nothing to download. It reads only the first 512 tokens of
a text without saying so; here a longer text is refused instead.
"""

import asyncio
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any, TypeVar

from clef.decisions.answers import Answer
from clef.decisions.examples import Reply, Request
from clef.decisions.questions import Question, as_text
from clef.decisions.wire import encode
from clef.engines.engine import EngineFacts
from clef.errors import Rejected, TooLong

T = TypeVar("T")
ABOUT = "You are trying the 2 MB built-in model. It is for trying things: it guesses on yes/no questions."
HOW_TO_LEAVE = "For real answers run `clef serve --model PATH.gguf`, or set CLEF_UPSTREAM to a decision server."
HOW_TO_SEE = "Images take a model that reads them, with its projector: `CLEF_IMAGES=1 clef serve --model PATH.gguf`."

NAME = "sparrow-nano-general-v1.1"
"""The weights inside the sparrow-decider wheel; known without reading them, so that the page need not wait."""
MAX_TOKENS = 512
"""Tokens of one text (the state, a question, or an option) that the model reads."""
AT_ONCE = 2000
"""Characters of a request that is answered where it was asked: it takes less than going to a thread and back does."""
KEPT = 4096
"""Short texts whose tokens and vectors are held."""


class BuiltinEngine:
    """sparrow-decider: static word vectors and a small network; about 0.2 ms a question."""

    def load(self) -> None:
        """Read the weights, about 0.2 s, once a process; otherwise the first use does."""
        _load()

    @property
    def _decider(self) -> Any:
        return _load()

    async def facts(self) -> EngineFacts:
        """Always ready."""
        return EngineFacts(
            "builtin", "ready", NAME, max_tokens=MAX_TOKENS, message=ABOUT, hint=HOW_TO_LEAVE, images=False
        )

    async def decide(self, request: Request) -> Reply:
        """Answer a long text or many options in a thread, so that they never hold up the page."""
        if request.images:
            raise Rejected("the built-in model reads no images", hint=HOW_TO_SEE)
        body = encode(request)
        return await _here_or_in_a_thread(body, lambda: self._decide(request, body))

    async def count_tokens(self, request: Request) -> int | None:
        """Tokens of the longest text of the request: each text is read by itself."""
        body = encode(request)
        return await _here_or_in_a_thread(body, lambda: max(self._counts(body)))

    async def close(self) -> None:
        """Nothing to give back."""

    def _decide(self, request: Request, body: dict[str, Any]) -> Reply:
        if request.videos:
            raise Rejected("the built-in model reads text only", hint="run Clef-Flash with CLEF_IMAGES=1 for images")
        counts = self._counts(body)
        if max(counts) > MAX_TOKENS:
            hint = f"the built-in model reads {MAX_TOKENS} tokens a text; shorten it, or run a real model"
            raise TooLong(max(counts), MAX_TOKENS, hint=hint)
        questions = zip(request.questions, body["questions"].values(), strict=True)
        answers = tuple(self._answer(body["state"], question, raw) for question, raw in questions)
        return Reply(answers, NAME, sum(counts))

    def _answer(self, state: Any, question: Question, raw: dict[str, Any]) -> Answer:
        """The model's probabilities before its own rounding; it lists a noul as false, true, and wants two options."""
        if len(question.answers) == 1:
            return Answer(question.type, question.answers, (1.0,))
        *_, found = self._decider.probs(state, raw)
        probabilities = [float(p) for p in found]
        if question.type == "noul":
            probabilities.reverse()
        return Answer(question.type, question.answers, tuple(probabilities))

    def _counts(self, body: dict[str, Any]) -> list[int]:
        """Tokens of the state and of each question's instructions and options."""
        texts: list[str] = []
        for question in body["questions"].values():
            criteria = question.get("criteria") or {}
            named = criteria.items() if isinstance(criteria, dict) else [("", level) for level in criteria]
            texts.append(as_text(question["instructions"]))
            texts.extend(f"{name} {as_text(text) if text else ''}" for name, text in named)
        return [_load().static.tok.count(text) for text in (as_text(body["state"]), *texts)]


async def _here_or_in_a_thread(body: dict[str, Any], work: Callable[[], T]) -> T:
    """Do work on a request where it was asked if it takes well under a millisecond and the weights are read."""
    if len(str(body)) > AT_ONCE or not _load.cache_info().currsize:
        return await asyncio.to_thread(work)
    await asyncio.sleep(0)  # who asks much in a row still lets others have their turn
    return work()


class _Tokens:
    """The model's tokeniser, with the texts that come again: the questions and options of a table are on every row."""

    def __init__(self, tokeniser: Any) -> None:
        self._read: Callable[[str], list[int]] = _kept(lambda text: tokeniser.encode(text, len(text) + 1))

    def encode(self, text: str, max_len: int = MAX_TOKENS) -> list[int]:
        """Ids of the first `max_len` tokens, as the tokeniser's own."""
        return self._read(text)[:max_len]

    def count(self, text: str) -> int:
        """Tokens of the whole text."""
        return len(self._read(text))


def _kept(read: Callable[[str], T]) -> Callable[[str], T]:
    """What is read of a text, remembered for the last short ones. Nobody may change it."""
    once = lru_cache(KEPT)(read)
    return lambda text: once(text) if len(text) <= AT_ONCE else read(text)


@cache
def _load() -> Any:
    from sparrow_decider import Decider

    decider = Decider.load(NAME)
    decider.static.tok = _Tokens(decider.static.tok)
    decider.static._pool = _kept(decider.static._pool)  # its vector of a text
    return decider
