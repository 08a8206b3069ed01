"""The built-in model: answers at once, says what it is, and refuses what it would not read."""

import asyncio

import pytest

from clef.decisions.examples import Request
from clef.decisions.questions import Choice, Noul, Option, Score
from clef.engines import builtin
from clef.engines.builtin import BuiltinEngine
from clef.errors import TooLong

pytestmark = pytest.mark.anyio


async def test_it_answers_all_three_types_in_the_users_order() -> None:
    questions = (
        Choice("Which team?", [Option("technical", "bugs, logins"), Option("billing", "charges, refunds")]),
        Noul("Does the customer want money back?"),
        Score("How urgent?", ["can wait", "this week", "right now"]),
    )
    reply = await BuiltinEngine().decide(Request("I was charged twice, refund me", questions))
    assert [answer.names for answer in reply.answers] == [question.answers for question in questions]
    for answer in reply.answers:
        assert sum(answer.probabilities) == pytest.approx(1)
    assert reply.answers[0].prediction == "billing"
    assert reply.input_tokens


async def test_noul_is_the_probability_of_true_whatever_order_the_model_lists() -> None:
    from sparrow_decider import Decider

    question = {"type": "noul", "instructions": "Is the customer angry?"}
    expected = Decider.load().ask("I am furious", {"q": question})["q"]["noul"]
    reply = await BuiltinEngine().decide(Request("I am furious", (Noul("Is the customer angry?"),)))
    assert reply.answers[0].probabilities[0] == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize(
    "state", ["I was charged twice", "battery: 6%\nzone_a: dirt=34", "Ça va? 日本 \u0000\t", "x" * 5000, ""]
)
async def test_what_is_kept_of_texts_changes_no_bit_of_an_answer(state: str) -> None:
    from sparrow_decider import Decider

    question = {
        "type": "choice",
        "instructions": "Which?",
        "criteria": {"a team": None, "Éte": "in summer", "c": "x=1"},
    }
    expected = tuple(float(p) for p in Decider.load().probs(state, question)[-1])
    choice = Choice("Which?", {"a team": None, "Éte": "in summer", "c": "x=1"})
    engine = BuiltinEngine()
    replies = [await engine.decide(Request(state, (choice,))) for _ in range(2)]
    replies += await asyncio.gather(*(engine.decide(Request(state, (choice,))) for _ in range(4)))
    assert {reply.answers[0].probabilities for reply in replies} == {expected}


async def test_json_states_are_read() -> None:
    reply = await BuiltinEngine().decide(Request({"subject": "refund"}, (Noul("Is it about money?"),)))
    assert 0 <= reply.answers[0].probabilities[0] <= 1


@pytest.mark.parametrize(
    "request_",
    [
        Request("word " * 600, (Noul("True?"),)),
        Request("short", (Noul("word " * 600),)),
        Request("short", (Choice("?", ["a", Option("b", "word " * 600)]),)),
    ],
)
async def test_a_text_it_would_cut_is_refused_with_both_numbers(request_: Request) -> None:
    with pytest.raises(TooLong) as caught:
        await BuiltinEngine().decide(request_)
    assert caught.value.limit == 512
    assert caught.value.tokens is not None
    assert caught.value.tokens >= 600
    assert await BuiltinEngine().count_tokens(request_) == caught.value.tokens


async def test_what_it_says_of_its_weights_is_true_of_them() -> None:
    from sparrow_decider import Decider

    decider = Decider.load()
    facts = await BuiltinEngine().facts()
    assert (facts.model, facts.max_tokens) == (decider.name, decider.static.max_len)


async def test_it_says_what_it_is() -> None:
    facts = await BuiltinEngine().facts()
    assert facts.kind == "builtin"
    assert facts.reachable
    assert "2 MB" in str(facts.message)
    assert "yes/no" in str(facts.message)


async def test_texts_that_come_again_are_read_as_the_first_time() -> None:
    """The tokeniser remembers short texts; what it gives is what the model's own would give, to any length."""
    from sparrow_decider import Decider

    own, ours = Decider.load().static.tok, BuiltinEngine()._decider.static.tok
    for text in ("", "refund me", "Ünïcödé 漢字 x9", "word " * 700, "a" * 300):
        for _ in range(2):
            assert ours.count(text) == len(own.encode(text, len(text) + 1))
            assert [ours.encode(text, most) for most in (0, 1, 2, 512)] == [
                own.encode(text, most) for most in (0, 1, 2, 512)
            ]
            ours.encode(text).clear()


async def test_short_and_long_requests_get_the_same_answer_wherever_they_are_computed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    request = Request("My card was charged twice", (Noul("Is it about money?"), Choice("Team?", ["billing", "other"])))
    here = await BuiltinEngine().decide(request)
    monkeypatch.setattr(builtin, "AT_ONCE", 0)
    assert await BuiltinEngine().decide(request) == here


async def test_many_short_requests_in_a_row_let_others_have_their_turn() -> None:
    engine, turns = BuiltinEngine(), 0
    engine.load()

    async def another() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    other = asyncio.create_task(another())
    for n in range(20):
        await engine.decide(Request(f"message {n}", (Noul("Is it angry?"),)))
    other.cancel()
    assert turns >= 19
