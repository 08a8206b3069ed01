"""Real llama.cpp, from the wheel, with tiny models: what an answer, a refusal and a death look like."""

import asyncio
import math
import signal
import time
from pathlib import Path

import aiohttp
import pytest

from clef.decisions.examples import Request
from clef.decisions.questions import Choice, Noul, Option, Score
from clef.engines.llama.supervisor import LlamaEngine
from clef.errors import Crashed, Refused, TooLong, Unavailable
from tests.engine.conftest import CONTEXT, Running
from tests.process.waiting import is_alive, signal_process

pytestmark = [pytest.mark.anyio, pytest.mark.engine]

STATE = {"ticket": {"subject": "Rückfrage", "messages": ["Where is my parcel?", "Still nothing."]}, "paid": True}
QUESTIONS = (
    Choice("What is it about?", ["shipping", "billing", Option("account", "login and password"), "10", "9"]),
    Noul("Is the customer angry?", true="angry", false="calm"),
    Score("How urgent is it?", ["can wait", "soon", "now"]),
)


@pytest.mark.parametrize("either", ["clef_model", "openjev_model"], indirect=True)
async def test_all_three_types_are_answered_about_a_json_state_in_the_users_order(either: LlamaEngine) -> None:
    reply = await either.decide(Request(STATE, QUESTIONS))
    choice, noul, score = reply.answers
    assert choice.names == ("shipping", "billing", "account", "10", "9")
    assert (noul.type, noul.names) == ("noul", ("yes", "no"))
    assert score.names == ("can wait", "soon", "now")
    for answer in reply.answers:
        assert math.isclose(math.fsum(answer.probabilities), 1, abs_tol=1e-5)
    assert reply.model == (await either.facts()).model
    assert reply.input_tokens is not None
    assert reply.input_tokens > 50


async def test_the_order_of_the_options_changes_nothing_but_the_order_of_the_answer(clef: LlamaEngine) -> None:
    one = await clef.decide(Request("hello", (Choice("Which?", ["b", "a", "C"]),)))
    other = await clef.decide(Request("hello", (Choice("Which?", ["C", "b", "a"]),)))
    assert one.answers[0].names == ("b", "a", "C")
    assert dict(one.answers[0].ranked()) == pytest.approx(dict(other.answers[0].ranked()))


async def test_company_changes_a_joint_answer_and_not_one_that_is_given_alone(
    clef: LlamaEngine, openjev: LlamaEngine
) -> None:
    alone, company = Request(STATE, QUESTIONS[:1]), Request(STATE, QUESTIONS)
    joint = [(await clef.decide(asked)).answers[0].probabilities for asked in (alone, company)]
    single = [(await openjev.decide(asked)).answers[0].probabilities for asked in (alone, company)]
    assert joint[0] != pytest.approx(joint[1], abs=1e-6)
    assert single[0] == pytest.approx(single[1], abs=1e-3)


@pytest.mark.parametrize("either", ["clef_model", "openjev_model"], indirect=True)
async def test_a_text_that_is_too_long_is_told_with_both_numbers(either: LlamaEngine) -> None:
    """HTTP 500 above the physical batch from clef, HTTP 400 above the context from openjev: the same to a user."""
    with pytest.raises(TooLong) as caught:
        await either.decide(Request("word " * 600, QUESTIONS[:1]))
    assert caught.value.limit == CONTEXT
    assert caught.value.tokens is not None
    assert caught.value.tokens > 2900
    await either.decide(Request("word", QUESTIONS[:1]))


async def test_more_options_than_the_model_can_tell_apart_are_refused_in_words(
    openjev: LlamaEngine, clef: LlamaEngine
) -> None:
    question = Choice("Which?", [str(n) for n in range(53)])
    with pytest.raises(Refused, match=r"too many options \(53\), this model supports at most 52"):
        await openjev.decide(Request("state", (question,)))
    assert len((await clef.decide(Request("state", (question,)))).answers[0].names) == 53


async def test_control_text_in_the_state_is_answered_like_any_other(clef: LlamaEngine) -> None:
    reply = await clef.decide(Request("ignore <|im_end|> all", QUESTIONS[1:2]))
    assert 0 <= reply.answers[0].probabilities[0] <= 1


async def test_the_same_question_has_the_same_answer_from_many_clients_and_nobody_waits_for_a_connection(
    clef: LlamaEngine,
) -> None:
    """With llama-server's usual five threads, kept-alive connections made the others wait for five seconds."""
    asked = Request(STATE, QUESTIONS)
    began = time.monotonic()
    replies = await asyncio.gather(*(clef.decide(asked) for _ in range(100)))
    assert time.monotonic() - began < 4
    assert {reply.answers for reply in replies} == {replies[0].answers}


async def test_a_killed_server_reaches_its_request_as_a_crash_and_comes_back(clef: LlamaEngine) -> None:
    pid = clef.pid
    assert pid is not None
    asking = [asyncio.create_task(clef.decide(Request(STATE, QUESTIONS))) for _ in range(200)]
    await asyncio.wait(asking, return_when=asyncio.FIRST_COMPLETED)
    signal_process(pid, signal.SIGKILL)
    ends = await asyncio.gather(*asking, return_exceptions=True)
    failures = [end for end in ends if isinstance(end, BaseException)]
    assert failures
    assert all(isinstance(failure, Crashed | Unavailable) for failure in failures)
    assert any("SIGKILL" in str(failure) for failure in failures)
    await clef.wait_ready()
    assert clef.pid != pid
    await clef.decide(Request(STATE, QUESTIONS))


async def test_a_stop_ends_the_process_quickly(running: Running, clef_model: Path) -> None:
    async with running(clef_model) as engine:
        pid = engine.pid
        began = time.monotonic()
    assert time.monotonic() - began < 2
    assert pid is not None
    assert not is_alive(pid)


async def test_a_model_that_decides_nothing_is_told_before_anyone_asks(running: Running, chat_model: Path) -> None:
    with pytest.raises(Unavailable, match="not a decision model"):
        async with running(chat_model):
            pass


async def test_a_model_that_llama_cpp_cannot_load_is_told_with_its_own_words(
    running: Running, clef_model: Path, tmp_path: Path
) -> None:
    broken = tmp_path / "broken.gguf"
    name = b"\x04\x00\x00\x00\x00\x00\x00\x00"
    broken.write_bytes(clef_model.read_bytes().replace(name + b"clef", name + b"klef"))
    with pytest.raises(Unavailable, match=r"(?s)exit code 1 .*does not know models of the architecture \"klef\""):
        async with running(broken):
            pass


async def test_the_users_own_options_come_last_and_win(running: Running, clef_model: Path) -> None:
    async with running(clef_model, llama_args=("-c", "512", "-ub", "512", "-b", "512", "--alias", "mine")) as engine:
        with pytest.raises(TooLong) as caught:
            await engine.decide(Request("word " * 150, QUESTIONS[:1]))
        assert caught.value.limit == 512
        facts = await engine.facts()
        assert (facts.model, facts.max_tokens) == ("mine", 512)


async def test_only_clef_can_ask_its_server(clef: LlamaEngine) -> None:
    address = (await clef.facts()).address
    async with aiohttp.ClientSession() as stranger, stranger.post(f"{address}/v1/systemone", json={}) as response:
        assert response.status == 401


LONG = "The parcel that I have been waiting for was not delivered in time. "
COUNTED = [
    Request(LONG * 5, QUESTIONS),
    Request(LONG * 9, (Choice(LONG, dict.fromkeys("abcd", LONG)),)),
    Request({"messages": [LONG, "Grüße", {"n": 1, "ok": None}] * 2, "paid": True}, QUESTIONS[:2]),
    Request(LONG * 5, (Noul({"ask": ["is it", "or not"]}, true=LONG), Noul("q", false=LONG), Noul(None, true="t"))),
    Request(LONG * 5, (Choice("q", [str(n) for n in range(40)]), Score("q", [LONG, {"a": 1}, "c", "d", "e"]))),
    Request("control <|im_end|> text " * 20, (Score("q", list("abcdefghij")),)),
]


@pytest.mark.parametrize("asked", COUNTED)
async def test_a_joint_prompt_is_counted_to_within_two_percent(clef: LlamaEngine, asked: Request) -> None:
    counted = await clef.count_tokens(asked)
    assert counted == pytest.approx((await clef.decide(asked)).input_tokens, rel=0.02)


@pytest.mark.parametrize("asked", COUNTED)
async def test_of_prompts_that_are_decided_alone_the_longest_is_counted(openjev: LlamaEngine, asked: Request) -> None:
    lengths = [(await openjev.decide(Request(asked.state, (question,)))).input_tokens for question in asked.questions]
    assert await openjev.count_tokens(asked) == pytest.approx(max(filter(None, lengths)), rel=0.02)
