"""Put a decision model to work on your own machine: ask, measure, trust, serve.

>>> import clef
>>> answer = clef.decide("I was charged twice", clef.Choice("Which team?", ["billing", "technical"]), engine="builtin")
>>> answer.prediction in ("billing", "technical")
True
"""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from clef.decisions.answers import Answer
    from clef.decisions.questions import Choice, Noul, Option, Score
    from clef.errors import ClefError, EngineError, InputError
    from clef.reports.run import Run, load_run
    from clef.session import AsyncEngine, Decision, Engine, decide, evaluate, read_questions

__all__ = [
    "Answer",
    "AsyncEngine",
    "Choice",
    "ClefError",
    "Decision",
    "Engine",
    "EngineError",
    "InputError",
    "Noul",
    "Option",
    "Run",
    "Score",
    "__version__",
    "decide",
    "evaluate",
    "load_run",
    "read_questions",
]

# Names are imported at their first use, so that the command line starts without what it does not need.
_HOMES = {
    "clef.decisions.answers": ("Answer",),
    "clef.decisions.questions": ("Choice", "Noul", "Option", "Score"),
    "clef.errors": ("ClefError", "EngineError", "InputError"),
    "clef.reports.run": ("Run", "load_run"),
    "clef.session": ("AsyncEngine", "Decision", "Engine", "decide", "evaluate", "read_questions"),
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(home), name)
    raise AttributeError(f"module 'clef' has no attribute {name!r}")
