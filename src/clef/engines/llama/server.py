"""Turns a Request into its length in tokens, by asking a llama-server; otherwise any System One server over HTTP."""

from collections.abc import Iterator

import orjson

from clef.decisions.examples import Request
from clef.decisions.questions import Choice, Json, Noul, Question, Score, as_text
from clef.decisions.wire import normalised
from clef.engines.upstream import UpstreamEngine


class LlamaServer(UpstreamEngine):
    """An UpstreamEngine that is known to be llama-server."""

    async def count_tokens(self, request: Request) -> int | None:
        """Tokens of the state's and the questions' own text. What the model's template adds is not in it."""
        texts = [as_text(normalised(text)) for text in texts_of(request)]
        body = orjson.dumps({"content": "\n".join(texts), "parse_special": True})
        status, content = await self._send("POST", "/tokenize", body)
        return len(self._parse(content)["tokens"]) if status == 200 else None


def texts_of(request: Request) -> Iterator[Json]:
    """Every text of a request that the model reads, in the prompt's order."""
    yield request.state
    for question in request.questions:
        if question.instructions is not None:
            yield question.instructions
        yield from _answers(question)


def _answers(question: Question) -> Iterator[Json]:
    match question:
        case Choice():
            for option in question.options:
                yield option.name
                if option.description is not None:
                    yield option.description
        case Score():
            yield from question.levels
        case Noul():
            yield from (side for side in (question.true, question.false) if side is not None)
