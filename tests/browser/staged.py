"""An engine whose every behaviour a test sets: how long it takes, what it fails at, which phase it is in."""

import asyncio
import re
from dataclasses import dataclass

from clef.decisions.answers import Answer
from clef.decisions.examples import Reply, Request
from clef.decisions.questions import as_text
from clef.engines.engine import EngineFacts, Phase
from clef.errors import Refused, Unavailable


@dataclass
class StagedEngine:
    """Answers the first option with 0.9. A state says otherwise: "refuse" fails, "tie" is a tie, "p=0.7" is 0.7.

    A question with "the last" in it gets the last option instead.
    """

    phase: Phase = "ready"
    pause_s: float = 0.0
    asked: int = 0
    images: tuple[str, ...] = ()
    """Of the last request."""

    async def facts(self) -> EngineFacts:
        """A llama.cpp that is what the test says."""
        message = None if self.phase == "ready" else "The model is being read."
        return EngineFacts(
            "llama", self.phase, "stage-9B.gguf", max_tokens=4096, message=message, hint="Wait a little."
        )

    async def decide(self, request: Request) -> Reply:
        """Answer after the pause."""
        self.asked += 1
        self.images = request.images
        await asyncio.sleep(self.pause_s)
        if self.phase != "ready":
            raise Unavailable("the model is still loading", hint="try again in a minute", phase=self.phase)
        if "refuse" in as_text(request.state):
            raise Refused("this text was refused")
        tie = "tie" in as_text(request.state)
        answers = []
        for question in request.questions:
            names = question.answers
            first = 1 / len(names) if tie else self.top_of(as_text(request.state))
            rest = (1 - first) / (len(names) - 1)
            probabilities = (first, *([first if tie else rest] * (len(names) - 1)))
            if "the last" in as_text(question.instructions or ""):
                probabilities = probabilities[::-1]
            answers.append(Answer(question.type, names, probabilities))
        return Reply(tuple(answers), "stage-9B", 42)

    @staticmethod
    def top_of(state: str) -> float:
        """The top probability that a state asks for."""
        said = re.search(r"p=(0\.\d+)", state)
        return float(said[1]) if said else 0.9

    async def count_tokens(self, request: Request) -> int | None:
        """Not counted."""
        return None

    async def close(self) -> None:
        """Nothing to give back."""
