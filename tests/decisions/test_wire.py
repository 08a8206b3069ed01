"""The wire: what goes upstream, what comes back, and every way in which a reply can be no answer."""

import copy
import json
from typing import Any

import pytest

from clef.decisions.examples import Request
from clef.decisions.questions import Choice, Noul, Option, Score
from clef.decisions.wire import decode, encode, read_error
from clef.errors import BadReply, EngineError, Refused, Rejected, TimedOut, TooLong, Unavailable

REQUEST = Request(
    {"ticket": "I was charged twice"},
    (
        Choice("Which team?", [Option("technical", "bugs"), Option("billing")]),
        Noul("Angry?", true="shouts"),
        Score("Urgent?", ["later", "soon", "now"]),
    ),
)
REPLY = {
    "model": "clef.gguf",
    "answers": {
        "q1": {
            "type": "choice",
            "choice": "billing",
            "probabilities": {"billing": 0.7, "technical": 0.3},
            "confidence": 9,
        },
        "q2": {"type": "noul", "noul": 0.25},
        "q3": {
            "type": "score",
            "score": 1.2,
            "legend": {"0": "later", "1": "soon", "2": "now"},
            "probabilities": {"2": 0.4, "0": 0.2, "1": 0.4},
            "confidence": 0.1,
        },
    },
    "usage": {"input_tokens": 12, "output_tokens": 0},
}


def changed(path: str, value: Any) -> dict[str, Any]:
    reply: Any = copy.deepcopy(REPLY)
    *steps, last = path.split("/")
    at = reply
    for step in steps:
        at = at[step]
    if value is ...:
        del at[last]
    else:
        at[last] = value
    return dict(reply)


def test_ids_upstream_are_neutral_and_text_is_as_asked() -> None:
    assert encode(REQUEST) == {
        "state": {"ticket": "I was charged twice"},
        "questions": {
            "q1": {"type": "choice", "instructions": "Which team?", "criteria": {"technical": "bugs", "billing": None}},
            "q2": {"type": "noul", "instructions": "Angry?", "criteria": {"true": "shouts"}},
            "q3": {"type": "score", "instructions": "Urgent?", "criteria": ["later", "soon", "now"]},
        },
    }


def test_text_goes_up_composed_and_comes_back_as_the_user_wrote_it() -> None:
    request = Request("cafe\u0301", (Choice("Ou\u0300?", ["the\u0301", "eau"]),))
    body = encode(request)
    assert body["state"] == "café"
    assert list(body["questions"]["q1"]["criteria"]) == ["thé", "eau"]
    reply = {
        "model": "m",
        "answers": {"q1": {"type": "choice", "choice": "thé", "probabilities": {"eau": 0.1, "thé": 0.9}}},
    }
    assert decode(reply, request).answers[0].prediction == "the\u0301"


def test_a_noul_with_criteria_only_gets_neutral_instructions() -> None:
    instructions = encode(Request("s", (Noul(None, true="it rains"),)))["questions"]["q1"]["instructions"]
    assert isinstance(instructions, str)
    assert "q1" not in instructions
    assert instructions


def test_answers_are_matched_by_name_and_keep_the_users_order() -> None:
    reply = decode(REPLY, REQUEST)
    assert reply.answers[0].names == ("technical", "billing")
    assert reply.answers[0].probabilities == (0.3, 0.7)
    assert reply.answers[0].confidence == pytest.approx(0.4)
    assert reply.answers[1].probabilities == (0.25, 0.75)
    assert reply.answers[2].probabilities == (0.2, 0.4, 0.4)
    assert (reply.model, reply.input_tokens) == ("clef.gguf", 12)


def test_missing_and_unknown_fields_are_no_error() -> None:
    reply = changed("answers/q1/confidence", ...) | {"latency_ms": 3}
    del reply["usage"]
    reply["answers"]["q1"]["stats"] = {}
    assert decode(reply, REQUEST).input_tokens is None


def test_the_envelope_of_workers_ai_is_opened() -> None:
    assert decode({"success": True, "errors": [], "result": REPLY}, REQUEST) == decode(REPLY, REQUEST)


def test_a_server_that_rounds_is_accepted() -> None:
    request = Request("s", (Choice("?", ["a", "b", "c"]),))
    thirds = {"q1": {"type": "choice", "choice": "b", "probabilities": {"a": 0.33, "b": 0.33, "c": 0.33}}}
    assert decode({"answers": thirds}, request).answers[0].tie


def test_a_server_that_rounds_255_options_is_accepted() -> None:
    names = [f"option {n}" for n in range(255)]
    request = Request("s", (Choice("?", names),))
    probabilities = dict.fromkeys(names, 0.0) | {"option 0": 0.4}
    reply = {"answers": {"q1": {"type": "choice", "choice": "option 0", "probabilities": probabilities}}}
    assert decode(reply, request).answers[0].prediction == "option 0"


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("answers", ...),
        ("answers", []),
        ("answers/q2", ...),
        ("answers/q1/type", "score"),
        ("answers/q1/probabilities", ...),
        ("answers/q1/probabilities/billing", ...),
        ("answers/q1/probabilities/billing", float("nan")),
        ("answers/q1/probabilities/billing", float("inf")),
        ("answers/q1/probabilities/billing", None),
        ("answers/q1/probabilities/billing", "0.7"),
        ("answers/q1/probabilities/billing", True),
        ("answers/q1/probabilities/billing", 0.2),
        ("answers/q1/probabilities/billing", 1.7),
        ("answers/q1/probabilities/other", 0.0),
        ("answers/q1/choice", "technical"),
        ("answers/q1/choice", "zzz"),
        ("answers/q2/noul", float("nan")),
        ("answers/q2/noul", None),
        ("answers/q2/noul", -0.2),
        ("answers/q3/probabilities/2", ...),
        ("answers/q3/probabilities/3", 0.0),
        ("answers/q3/probabilities/2", -0.4),
    ],
)
def test_what_is_no_distribution_over_what_was_asked_is_a_bad_reply(path: str, value: Any) -> None:
    with pytest.raises(BadReply):
        decode(changed(path, value), REQUEST)


@pytest.mark.parametrize("body", [None, [], "ok", 3, {}, {"answers": None}])
def test_a_body_that_is_no_reply_is_a_bad_reply(body: Any) -> None:
    with pytest.raises(BadReply):
        decode(body, REQUEST)


@pytest.mark.parametrize(
    ("status", "text", "kind", "said"),
    [
        (
            503,
            '{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}',
            Unavailable,
            "Loading model",
        ),
        (429, '{"detail":{"error_type":"rate","message":"slow down"}}', Unavailable, "slow down"),
        (529, "", Unavailable, "busy"),
        (
            401,
            '{"error":{"code":401,"message":"Invalid API Key","type":"authentication_error"}}',
            Refused,
            "access key",
        ),
        (403, '{"detail":{"error_type":"authentication_error","message":"no"}}', Refused, "access key"),
        (404, '{"error":{"message":"File Not Found","type":"not_found_error"}}', Refused, "no /v1/systemone"),
        (501, '{"error":{"message":"not a decision model","type":"not_supported_error"}}', Refused, "decision model"),
        (
            400,
            '{"error":{"message":"too many options (53)","type":"invalid_request_error"}}',
            Rejected,
            "too many options (53)",
        ),
        (422, '{"detail":[{"loc":["body"],"msg":"field required","type":"missing"}]}', Rejected, "field required"),
        (400, '{"detail":"more than 255 options"}', Rejected, "more than 255 options"),
        (400, '{"success":false,"errors":[{"code":5006,"message":"no questions"}]}', Rejected, "no questions"),
        (500, '{"error":{"message":"scores are not finite"}}', Refused, "not finite"),
        (502, "<html><body><h1>Bad Gateway</h1></body></html>", Refused, "web page"),
        (500, '"down"', Refused, "down"),
        (504, "", TimedOut, "504"),
    ],
)
def test_every_servers_error_becomes_ours(status: int, text: str, kind: type[EngineError], said: str) -> None:
    error = read_error(status, text)
    assert type(error) is kind
    assert said in error.message


@pytest.mark.parametrize(
    ("status", "message", "numbers"),
    [
        (
            500,
            "input (6059 tokens) is too large to process. increase the physical batch size (current batch size: 4096)",
            (6059, 4096),
        ),
        (
            400,
            "request (6033 tokens) exceeds the available context size (1024 tokens), try increasing it",
            (6033, 1024),
        ),
    ],
)
def test_too_long_is_permanent_and_has_both_numbers_whatever_the_status(
    status: int, message: str, numbers: tuple[int, int]
) -> None:
    error = read_error(status, json.dumps({"error": {"code": status, "message": message, "type": "server_error"}}))
    assert isinstance(error, TooLong)
    assert (error.tokens, error.limit) == numbers
    assert f"{numbers[0]} of {numbers[1]}" in error.message


def test_too_long_without_numbers_is_still_permanent() -> None:
    error = read_error(400, '{"detail":{"error_type":"max_tokens_exceeded"}}')
    assert isinstance(error, TooLong)
    assert error.tokens is None
    assert "None" not in error.message
