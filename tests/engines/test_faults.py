"""Every fault that jevcompat's mock can have, met by our client: what a person reads, and that no number is wrong.

Three ends are right. REFUSED: it is told, in the words below. BAD REPLY: what came is no answer, and is none.
TOLERATED: what is wrong is nothing we read, and the answer is the one of the server without a fault.
"""

import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass

import pytest
from jevcompat.mock import FAULTS, MockConfig, make_server

from clef.decisions.examples import Example, Request, Shape
from clef.decisions.questions import Choice, Noul, Option, Question, Score
from clef.engines.upstream import UpstreamEngine
from clef.errors import BadReply, Barred, ClefError, Rejected
from clef.runs.execute import outcomes

pytestmark = pytest.mark.anyio
KEY = "key-of-a-test"
STATE = [{"role": "user", "content": "카페 is closed, refund me"}]
OPTIONS = (Option("Billing", "money"), Option("카페"), Option("Café", {"about": "coffee"}))
ASKED: tuple[Question, ...] = (
    Choice("Which team?", OPTIONS),
    Noul(None, true="the customer shouts"),
    Score({"ask": "How urgent?"}, ["later", "soon", "today", "now", "yesterday", "long ago"]),
)
TOGETHER = Request(STATE, ASKED)


@dataclass(frozen=True)
class Meeting:
    """How one fault ends, for ASKED in one request."""

    kind: type[ClefError] | None = None
    """None: it is tolerated."""
    said: str = ""
    hint: str = ""
    why: str = ""
    """Why it is right to tolerate it."""
    request: Request = TOGETHER
    model: str = "jev-latest"
    key: str | None = None
    """Key that the server wants; ours is KEY."""


def tolerated(why: str, **given: object) -> Meeting:
    return Meeting(why=why, **given)  # type: ignore[arg-type]


SET_KEY, SET_MODEL = "CLEF_UPSTREAM_KEY", "CLEF_UPSTREAM_MODEL"
NOT_SENT = "clef sends nothing that it could go wrong with"
NOT_READ = "clef does not read it"
MANY = Request("s", (Choice("?", [f"option {n}" for n in range(65)]),))
MEETINGS: dict[str, Meeting] = {
    # The address and the key.
    "wrong-route": Meeting(Barred, "no /v1/systemone at this address", "11361"),
    "auth-rejects-header": Meeting(Barred, "not accept the access key: This server takes no key.", SET_KEY),
    "auth-x-api-key": Meeting(Barred, "does not accept the access key", SET_KEY, key=KEY),
    "auth-plain": tolerated("a key is sent", key=KEY),
    "auth-invalid-403-text": Meeting(Barred, "not accept the access key: bad key", SET_KEY, key="another"),
    "reject-jev-latest": Meeting(Barred, "Model not served: jev-latest", SET_MODEL),
    "error-flat": Meeting(Barred, "not have this model: Unknown model: gone", SET_MODEL, model="gone"),
    "models-404": tolerated("the list is only asked for to name models that are there"),
    # What it does not take.
    "reject-array-state": Meeting(Rejected, "state: Input should be a valid string"),
    "string-only-text": Meeting(Rejected, "instructions: Input should be a valid string"),
    "noul-two-sided": Meeting(Rejected, "Both 'true' and 'false' are required"),
    "no-null-description": Meeting(Rejected, "criteria.카페: Input should be a valid string"),
    "cap-64": Meeting(Rejected, "at most 64 items", request=MANY),
    "cap-5-levels": Meeting(Rejected, "at most 5 items"),
    "text-errors": Meeting(Barred, "not have this model: Unknown model: gone", SET_MODEL, model="gone"),
    "validation-400": Meeting(Rejected, "cannot decide this: Input should be", request=Request(7, ASKED)),
    "strict-ids": tolerated("ids upstream are q1, q2, …"),
    "noul-needs-instructions": tolerated("a noul without instructions gets neutral ones"),
    "forbid-extra": tolerated(NOT_SENT),
    "accept-map-score": tolerated(NOT_SENT),
    "accept-boolean": tolerated(NOT_SENT),
    "500-on-unknown-type": tolerated(NOT_SENT),
    # What is no answer.
    "xssi-200": Meeting(BadReply, "something that is not JSON"),
    "nan": Meeting(BadReply, "NaN or Infinity"),
    "first-question-only": Meeting(BadReply, "question 2 has no answer"),
    "boolean-type": Meeting(BadReply, 'question 2 is a noul, the reply answers a "boolean"'),
    "noul-range": Meeting(BadReply, "outside 0 to 1"),
    "choice-key-case": Meeting(BadReply, 'question 1: the reply misses: "Billing"'),
    "choice-sum": Meeting(BadReply, "question 1: the probabilities sum to 1.2"),
    "choice-second": Meeting(BadReply, "but its most probable option is"),
    "legend-1-based": Meeting(BadReply, 'calls "later" level 1, which it is not'),
    "score-keys-1-based": Meeting(BadReply, 'question 3: the reply misses: "0"'),
    "score-sum": Meeting(BadReply, "question 3: the probabilities sum to 0.8"),
    # What changes no number of ours.
    "plain-content-type": tolerated("what is JSON is read as JSON"),
    "nfd-keys": tolerated("names are matched in NFC, and come back as the user wrote them"),
    "no-usage": tolerated("tokens are then unknown"),
    "float-usage": tolerated("tokens are then unknown"),
    "extra-answer": tolerated(NOT_READ),
    "unprefixed-extra": tolerated(NOT_READ),
    "choice-no-confidence": tolerated("confidence is computed from the probabilities, never copied"),
    "confidence-over": tolerated("confidence is computed from the probabilities, never copied"),
    "confidence-margin": tolerated("confidence is computed from the probabilities, never copied"),
    "score-no-legend": tolerated("levels are known by their place"),
    "score-argmax": tolerated("the expected level is computed from the probabilities, never copied"),
    # What a model does with what it should not see: shown below.
    "id-leaks": tolerated("ids upstream are q1, q2, …, whatever the user calls a question"),
    "batch-leaks": tolerated("asked alone, a question has no company"),
    "order-leaks": tolerated("asked alone, a question has no place"),
}  # fmt: skip


@pytest.fixture(scope="module")
def mock() -> Iterator[tuple[str, MockConfig]]:
    """The mock's address and its settings, which a test may change."""
    config = MockConfig()
    server = make_server(config)
    thread = threading.Thread(target=lambda: server.serve_forever(poll_interval=0.01), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}", config
    server.shutdown()
    server.server_close()
    thread.join(10)


@pytest.fixture
async def ask(mock: tuple[str, MockConfig]) -> AsyncIterator["Ask"]:
    address, config = mock
    yield Ask(address, config)
    config.faults, config.key = frozenset(), None


@dataclass
class Ask:
    """Asks the mock, with or without a fault."""

    address: str
    config: MockConfig

    async def __call__(self, fault: str | None, meeting: Meeting, request: Request | None = None) -> list[object]:
        """Names, probabilities, predictions, confidences and scores of the reply."""
        self.config.faults = frozenset({fault} if fault else ())
        self.config.key = meeting.key
        engine = UpstreamEngine(self.address, key=KEY, model=meeting.model, timeout_s=10)
        try:
            reply = await engine.decide(request or meeting.request)
        finally:
            await engine.close()
        return [(one.names, one.probabilities, one.prediction, one.confidence, one.score) for one in reply.answers]


def test_every_fault_of_the_mock_is_met_here() -> None:
    assert set(MEETINGS) == set(FAULTS)
    assert len(FAULTS) == 47


@pytest.mark.parametrize("fault", [fault for fault, meeting in MEETINGS.items() if meeting.kind is not None])
async def test_a_fault_is_told_in_words(ask: "Ask", fault: str) -> None:
    meeting = MEETINGS[fault]
    assert meeting.kind is not None
    with pytest.raises(meeting.kind) as caught:
        await ask(fault, meeting)
    assert type(caught.value) is meeting.kind
    assert meeting.said in caught.value.message
    assert meeting.hint in str(caught.value.hint)
    assert KEY not in caught.value.message


@pytest.mark.parametrize(
    "fault", [fault for fault, meeting in MEETINGS.items() if meeting.kind is None and not fault.endswith("-leaks")]
)
async def test_a_fault_that_is_tolerated_changes_no_number(ask: "Ask", fault: str) -> None:
    assert MEETINGS[fault].why
    assert await ask(fault, MEETINGS[fault]) == await ask(None, MEETINGS[fault])


@pytest.mark.parametrize("fault", ["id-leaks", "batch-leaks", "order-leaks"])
async def test_what_leaks_into_a_model_does_not_reach_an_isolated_question(ask: "Ask", fault: str) -> None:
    ask.config.faults = frozenset({fault})
    engine = UpstreamEngine(ask.address, model="mock")

    async def asked(questions: tuple[Question, ...], name: str, shape: Shape) -> dict[str, object]:
        examples = [Example(STATE, question, question_name=f"{name} {n}") for n, question in enumerate(questions)]
        found = [outcome async for _, outcome in outcomes(examples, engine, 1, shape)]
        return {str(one.example.question): one.answer.probabilities for one in found if one.answer}

    alone = await asked(ASKED, "a name", "isolated")
    assert len(alone) == len(ASKED)
    assert await asked(ASKED[::-1], "another name", "isolated") == alone
    assert await asked(ASKED[:1], "x", "isolated") == {str(ASKED[0]): alone[str(ASKED[0])]}
    assert await asked(ASKED, "a name", "joint") != alone, "the fault is there, and company would let it in"
    await engine.close()
