"""The wire: what goes upstream, what comes back, and every way in which a reply can be no answer."""

import copy
from typing import Any

import pytest

from clef.decisions.examples import Request
from clef.decisions.questions import Choice, Noul, Option, Score
from clef.decisions.wire import decode, encode
from clef.errors import BadReply

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
        ("answers/q3/legend", {"0": "now", "1": "soon", "2": "later"}),
        ("answers/q3/legend", {"1": "later", "2": "soon", "3": "now"}),
    ],
)
def test_what_is_no_distribution_over_what_was_asked_is_a_bad_reply(path: str, value: Any) -> None:
    with pytest.raises(BadReply):
        decode(changed(path, value), REQUEST)


@pytest.mark.parametrize("body", [None, [], "ok", 3, {}, {"answers": None}])
def test_a_body_that_is_no_reply_is_a_bad_reply(body: Any) -> None:
    with pytest.raises(BadReply):
        decode(body, REQUEST)


@pytest.mark.parametrize("legend", [..., {}, {"0": "Later!"}, {"0": {"text": "later"}}, {"zero": "now"}, "none"])
def test_a_legend_that_contradicts_nothing_is_not_looked_at(legend: Any) -> None:
    assert decode(changed("answers/q3/legend", legend), REQUEST).answers[2].probabilities == (0.2, 0.4, 0.4)
