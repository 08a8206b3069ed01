"""Turns a request into its answers with the questions together, each alone, or both ways side by side.

A model that reads all questions in one prompt may let one sway another; beside its answer alone that is seen.
"""

import asyncio
import time
from typing import Any

from clef.decisions.answers import Answer
from clef.decisions.examples import Reply, Request
from clef.engines.engine import Engine
from clef.web.drafts import How
from clef.web.predict import predict, to_dict

AT_A_TIME = 4
"""Questions that are asked at once when each is asked alone."""


async def ask(request: Request, engine: Engine, how: How) -> dict[str, Any]:
    """What `predict` answers; asked both ways, each result has `alone` with the other answer's probabilities."""
    if how == "together" or len(request.questions) == 1:
        return await predict(request, engine)
    started = time.perf_counter()
    together = await predict(request, engine) if how == "both" else None
    reply = await _alone(request, engine)
    elapsed_ms = round((time.perf_counter() - started) * 1000, 2)
    if together is None:
        return to_dict(request, reply) | {"shape": "isolated", "elapsed_ms": elapsed_ms}
    for result in together["results"]:
        result["alone"] = _beside(result, reply.answers[result["position"]])
    tokens = (together["input_tokens"], reply.input_tokens)
    spent = None if None in tokens else sum(tokens)
    return together | {"shape": "both", "elapsed_ms": elapsed_ms, "input_tokens": spent}


async def _alone(request: Request, engine: Engine) -> Reply:
    """Each question in a request of its own."""
    free = asyncio.Semaphore(AT_A_TIME)

    async def one(asked: Request) -> Reply:
        async with free:
            return await engine.decide(asked)

    tasks = [
        asyncio.create_task(one(Request(request.state, (question,), request.images))) for question in request.questions
    ]
    try:
        replies = await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
    counted = [reply.input_tokens for reply in replies]
    tokens = None if None in counted else sum(filter(None, counted))
    return Reply(tuple(reply.answers[0] for reply in replies), replies[0].model, tokens)


def _beside(result: dict[str, Any], alone: Answer) -> dict[str, Any]:
    """The answer alone, and how far the other questions moved each probability."""
    chances = dict(zip(alone.names, alone.probabilities, strict=True))
    moved = {item["answer"]: item["probability"] - chances[item["answer"]] for item in result["answers"]}
    beside: dict[str, Any] = {"prediction": alone.prediction, "probabilities": chances, "moved": moved}
    beside["differs"] = alone.prediction != result["prediction"] or alone.tie != result["tie"]
    if alone.type == "score":
        beside["score"] = alone.score
    return beside
