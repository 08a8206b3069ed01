"""Turns a Request into a /v1/systemone body, and a reply body into a Reply; `refusals.py` reads the other replies.

Invariants: question ids upstream are always q1, q2, … since Clef reads them as part of its prompt; text goes
upstream NFC-normalised, because llama.cpp's tokenizer expects that form and does not make it; answers are matched
by name and come back in the user's order and spelling; a reply that is no distribution over what was asked is a
BadReply, never an answer.
"""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from clef.decisions.answers import Answer
from clef.decisions.examples import Reply, Request
from clef.decisions.questions import Choice, Json, Noul, Question, Score, nfc
from clef.errors import BadReply

SUM_TOLERANCE = 0.02
"""How far a distribution's sum may be from 1 when the server does not round."""
NEUTRAL_NOUL = "Decide which of the two descriptions fits the state."
"""Instructions of a noul that has only criteria; llama.cpp requires some, and an id would carry meaning."""


def encode(request: Request) -> dict[str, Any]:
    """The body of POST /v1/systemone for this request, without `model`."""
    questions = {f"q{n}": _encode_question(question) for n, question in enumerate(request.questions, 1)}
    body: dict[str, Any] = {"state": normalised(request.state), "questions": questions}
    if request.images:
        body["images"] = list(request.images)
    if request.videos:
        body["videos"] = list(request.videos)
    return body


def _encode_question(question: Question) -> dict[str, Any]:
    instructions = normalised(question.instructions if question.instructions else NEUTRAL_NOUL)
    body: dict[str, Any] = {"type": question.type, "instructions": instructions}
    match question:
        case Choice():
            body["criteria"] = {nfc(option.name): normalised(option.description) for option in question.options}
        case Score():
            body["criteria"] = [normalised(level) for level in question.levels]
        case Noul():
            sides = {"true": question.true, "false": question.false}
            criteria = {side: normalised(text) for side, text in sides.items() if text is not None}
            if criteria:
                body["criteria"] = criteria
    return body


def normalised(value: Json) -> Json:
    """A copy of a JSON value with all its text in NFC, keys included."""
    if isinstance(value, str):
        return nfc(value)
    if value is None:
        return None
    if isinstance(value, Mapping):
        return {nfc(key): normalised(item) for key, item in value.items()}
    if isinstance(value, Sequence):
        return [normalised(item) for item in value]
    return value


def decode(body: Any, request: Request) -> Reply:
    """The answers to `request` in a reply body. Raises BadReply, naming the question and what is wrong with it."""
    if isinstance(body, Mapping) and isinstance(body.get("result"), Mapping) and "answers" not in body:
        body = body["result"]  # Workers AI wraps the reply
    if not isinstance(body, Mapping) or not isinstance(body.get("answers"), Mapping):
        raise BadReply("the reply has no answers", hint="is this a System One server?")
    answers = tuple(
        _decode_answer(body["answers"].get(f"q{n}"), question, n) for n, question in enumerate(request.questions, 1)
    )
    usage = body.get("usage")
    tokens = usage.get("input_tokens") if isinstance(usage, Mapping) else None
    return Reply(answers, str(body.get("model") or ""), tokens if isinstance(tokens, int) else None)


def _decode_answer(raw: Any, question: Question, n: int) -> Answer:
    if not isinstance(raw, Mapping):
        raise BadReply(f"question {n} has no answer in the reply")
    if raw.get("type", question.type) != question.type:
        raise BadReply(f'question {n} is a {question.type}, the reply answers a "{raw["type"]}"')
    if isinstance(question, Noul):
        true = _number(raw.get("noul"), n, "noul")
        return Answer("noul", question.answers, (true, 1 - true))
    if isinstance(question, Choice):
        keys = [nfc(option.name) for option in question.options]
    else:
        keys = [str(level) for level in range(len(question.levels))]
    given = raw.get("probabilities")
    if not isinstance(given, Mapping):
        raise BadReply(f"question {n} has no probabilities in the reply")
    by_name = {nfc(str(name)): value for name, value in given.items()}
    if by_name.keys() != set(keys):
        _refuse_names(keys, by_name, n)
    probabilities = tuple(_number(by_name[key], n, key) for key in keys)
    _check_distribution(probabilities, n)
    if isinstance(question, Choice):
        _check_choice(raw.get("choice"), keys, probabilities, n)
    else:
        _check_legend(raw.get("legend"), question.levels, n)
    return Answer(question.type, question.answers, probabilities)


def _refuse_names(asked: Sequence[str], given: Mapping[str, Any], n: int) -> NoReturn:
    missing = [key for key in asked if key not in given]
    unknown = [name for name in given if name not in asked]
    names = ", ".join(f'"{name}"' for name in (missing or unknown)[:3])
    raise BadReply(f"question {n}: the reply {'misses' if missing else 'has an option nobody asked for'}: {names}")


def _number(value: Any, n: int, name: str) -> float:
    if not isinstance(value, (float, int)) or isinstance(value, bool) or not math.isfinite(value):
        raise BadReply(f'question {n}: the probability of "{name}" is {json.dumps(value, default=str)}, not a number')
    if not -1e-9 <= value <= 1 + 1e-9:
        raise BadReply(f'question {n}: the probability of "{name}" is {value}, outside 0 to 1')
    return min(1.0, max(0.0, float(value)))


def rounding_step(probabilities: Sequence[float]) -> float:
    """The step to which a server rounds: 0.01, 0.001 or 0.0001, or 0 where it does not round."""
    for digits in (2, 3, 4):
        if all(round(p, digits) == p for p in probabilities):
            return 10.0**-digits
    return 0.0


def _check_distribution(probabilities: Sequence[float], n: int) -> None:
    """Half a step may be lost for every rounded value, so servers that round get that much besides."""
    total = math.fsum(probabilities)
    if abs(total - 1) <= SUM_TOLERANCE + 1e-9:
        return
    if abs(total - 1) > len(probabilities) * rounding_step(probabilities) / 2 + 1e-9:
        raise BadReply(f"question {n}: the probabilities sum to {total:.4g}, not to 1")


def _check_choice(choice: Any, keys: Sequence[str], probabilities: Sequence[float], n: int) -> None:
    if choice is None:
        return
    name = nfc(str(choice))
    if name not in keys:
        raise BadReply(f'question {n}: the reply chooses "{name}", which is not among the options')
    top, chosen = max(probabilities), probabilities[keys.index(name)]
    if chosen < top - 1e-6 and chosen < top - rounding_step(probabilities):
        best = keys[probabilities.index(top)]
        raise BadReply(f'question {n}: the reply chooses "{name}", but its most probable option is "{best}"')


def _check_legend(legend: Any, levels: Sequence[Json], n: int) -> None:
    """A legend that puts a level where another was asked makes it unknown which probability is whose."""
    written = {str(n): nfc(level) for n, level in enumerate(levels) if isinstance(level, str)}
    for key, text in legend.items() if isinstance(legend, Mapping) else ():
        if not isinstance(text, str) or not str(key).isdecimal():
            continue
        if nfc(text) in written.values() and nfc(text) != written.get(str(key)):
            raise BadReply(f'question {n}: the legend of the reply calls "{text}" level {key}, which it is not')
