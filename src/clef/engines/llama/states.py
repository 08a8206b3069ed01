"""Turns the states of a llama.cpp of ours into the phases of an engine; the supervisor has the table of moves."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from clef.engines.engine import Phase
from clef.engines.llama.loading import Loading
from clef.engines.llama.startlog import StartFacts

State = Literal["off", "starting", "loading", "ready", "restarting", "failed", "gave up", "stopping", "stopped"]

PHASES: dict[State, Phase] = {
    "off": "off",
    "starting": "starting",
    "loading": "loading",
    "ready": "ready",
    "restarting": "starting",
    "failed": "failed",
    "gave up": "failed",
    "stopping": "off",
    "stopped": "off",
}
ENDED: frozenset[State] = frozenset({"off", "failed", "gave up", "stopped"})
"""States in which nothing runs and nothing will without a start."""


@dataclass(frozen=True, slots=True)
class Details:
    """Everything known about a llama.cpp of ours; has no secret."""

    state: State
    program: str
    """The program and why it is this one; empty before the first start."""
    command_line: str
    """As one would type it."""
    pid: int | None
    starts: int
    """How often it has been started since clef was."""
    version: str | None
    """What the program says to --version; None while unknown."""
    model: str
    """Path of the model it runs, or would."""
    gpu_variables: Mapping[str, str]
    """Variables of clef's environment that decide which GPU it finds."""
    warnings: tuple[str, ...]
    """What a person should know about its options and about where it runs."""
    cause: str | None
    """A stable name for why it failed, such as memory; None where that is unknown or all is well."""
    start: StartFacts
    loading: Loading | None
    """How far it has read its model; None where that is not known, and while it does not load."""
    log: tuple[str, ...]
    """The last lines of its output."""
