"""Examples, and an engine whose every answer a test decides."""

from collections.abc import Awaitable, Callable

from clef.decisions.answers import Answer
from clef.decisions.examples import Example, Reply, Request
from clef.decisions.questions import Noul
from clef.engines.engine import EngineFacts

QUESTION = Noul("True?")


def examples(count: int) -> list[Example]:
    """`count` examples with the states "row 0", "row 1", …"""
    return [Example(f"row {n}", QUESTION, 0, row=n + 2, question_name="True?") for n in range(count)]


def yes(request: Request) -> Reply:
    """A reply that says yes at 0.9."""
    return Reply((Answer("noul", ("yes", "no"), (0.9, 0.1)),), "fake")


class ScriptedEngine:
    """Answers with a function of the state; remembers every call."""

    def __init__(self, script: Callable[[str], Awaitable[None]] | None = None) -> None:
        self._script = script
        self.calls: list[str] = []
        self.in_flight = 0
        self.most_in_flight = 0

    async def facts(self) -> EngineFacts:
        return EngineFacts("upstream", "ready", "fake")

    async def decide(self, request: Request) -> Reply:
        self.calls.append(str(request.state))
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            if self._script:
                await self._script(str(request.state))
            return yes(request)
        finally:
            self.in_flight -= 1

    async def count_tokens(self, request: Request) -> int | None:
        return None

    async def close(self) -> None:
        pass
