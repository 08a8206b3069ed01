"""Turns a Request into a Reply, whoever answers: the one seam that everything above the engines sees.

phase       meaning                                     decisions
off         nothing is running                          Unavailable
starting    looking for a server, or starting one       Unavailable, with retry_after_s
loading     the model is being read into memory         Unavailable, with retry_after_s
ready       a real decision has been answered           answered
failed      it will not come up without a change        Unavailable, with the reason
"""

from dataclasses import dataclass
from typing import Literal, Protocol

from clef.decisions.examples import Reply, Request

EngineKind = Literal["builtin", "upstream", "llama"]
Phase = Literal["off", "starting", "loading", "ready", "failed"]


@dataclass(frozen=True, slots=True)
class EngineFacts:
    """What is known about an engine now."""

    kind: EngineKind
    phase: Phase
    model: str | None = None
    """Model name as the engine gives it; None while unknown."""
    address: str | None = None
    """Root address, without any key; None for the built-in model."""
    max_tokens: int | None = None
    """Tokens one request may have; None while unknown."""
    message: str | None = None
    """What a person should know: what this engine is for, or why it is not ready."""
    hint: str | None = None
    """What to do about it."""

    fingerprint: str | None = None
    """What tells these weights from others of the same name, such as a hash of the file; None where there is none."""

    images: bool | None = None
    """Whether images are read; None where only the first one would show it."""

    @property
    def identity(self) -> str:
        """Which model answers: answers of one identity may be used again and compared row by row."""
        return ":".join(filter(None, (self.kind, self.model, self.fingerprint)))

    @property
    def reachable(self) -> bool:
        """Whether a decision asked now would be answered."""
        return self.phase == "ready"


class Engine(Protocol):
    """Anything that can answer."""

    async def facts(self) -> EngineFacts:
        """What is known about the engine now. Never raises, and never waits longer than two seconds."""
        ...

    async def decide(self, request: Request) -> Reply:
        """Answer a request.

        Raises EngineError, its `transient` telling whether another try may help, or TooLong. Safe to call
        concurrently and to cancel.
        """
        ...

    async def count_tokens(self, request: Request) -> int | None:
        """Tokens the request would take, or None where the engine cannot count them."""
        ...


class OwnedEngine(Engine, Protocol):
    """An engine that holds something which must be given back: a connection, a process."""

    async def close(self) -> None:
        """Give everything back. Safe to call twice."""
        ...
