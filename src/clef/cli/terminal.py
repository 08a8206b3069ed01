"""Turns results and errors into a terminal: colours only where a person looks, JSON where a program reads.

    exit code   meaning
    0           done
    1           a bar was missed, or a gate failed
    2           the input, an option or a setting cannot be used
    3           the engine did not answer
    130         interrupted

Results go to standard output, everything else to standard error.
"""

import json
import os
import sys
from collections.abc import Sequence
from typing import IO, Any

from clef.errors import ClefError, EngineError, InputError, Problem

DONE, MISSED, BAD_INPUT, NO_ENGINE, INTERRUPTED = 0, 1, 2, 3, 130
SHOWN = 20
"""Problems and rows that are shown; `--json` has all of them."""
BAR = 24
"""Characters of a bar that stands for 100 %."""
CODES = {"red": 31, "green": 32, "yellow": 33, "blue": 34, "bold": 1, "dim": 2}


def say(text: str = "", *styles: str, err: bool = False) -> None:
    """Write a line to standard output, or to standard error."""
    stream = sys.stderr if err else sys.stdout
    print(paint(text, *styles, stream=stream), file=stream, flush=err)


def paint(text: str, *styles: str, stream: IO[str] | None = None) -> str:
    """The text in these colours where its stream is a terminal and NO_COLOR is not set."""
    if not styles or not text or not is_coloured(stream or sys.stdout):
        return text
    return f"\x1b[{';'.join(str(CODES[style]) for style in styles)}m{text}\x1b[0m"


def is_coloured(stream: IO[str]) -> bool:
    """Whether colours are wanted there. See https://no-color.org."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def say_json(value: Any) -> None:
    """Write JSON to standard output."""
    print(json.dumps(value, ensure_ascii=False, default=str))


def bar(share: float | None, width: int = BAR) -> str:
    """A bar for a share of 1."""
    full = round((share or 0.0) * width)
    return "█" * full + "·" * (width - full)


def short(value: object, width: int) -> str:
    """The beginning of a text on one line; a JSON state as text."""
    text = " ".join((value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)).split())
    return text if len(text) <= width else f"{text[: width - 1]}…"


def show_problems(problems: Sequence[Problem], rest: str) -> None:
    """The first problems on standard error, and where the `rest` is found."""
    for problem in problems[:SHOWN]:
        say(f"      {problem}", err=True)
    if len(problems) > SHOWN:
        say(f"      … and {len(problems) - SHOWN} more; {rest}", err=True)


def show_error(error: ClefError, *, as_json: bool) -> int:
    """Write an error to standard error; the exit code that belongs to it."""
    if as_json:
        print(json.dumps({"error": error.to_dict()}, ensure_ascii=False), file=sys.stderr)
    else:
        say(f"clef: {error.message}", "red", err=True)
        problems = error.problems if isinstance(error, InputError) and len(error.problems) > 1 else ()
        show_problems(problems, "--json has all of them")
        if error.hint and not problems and error.hint not in error.message:
            say(f"      {error.hint}", err=True)
    return NO_ENGINE if isinstance(error, EngineError) and error.fault != "input" else BAD_INPUT
