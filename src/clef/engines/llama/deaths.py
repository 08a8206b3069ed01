"""Turns how a llama.cpp ended, and what it said before, into a sentence and a remedy.

Its own words are always shown as well: a translation may be wrong, and a death that is not known here has nothing
else. `retry` says whether the same start may succeed.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from clef.engines.llama.child import Exit

SHOWN_LINES = 6
_STAMP = re.compile(r"^\d+(?:\.\d+){3} ")
_ALARM = re.compile(
    r"^(?:\d+(?:\.\d+){3} )?E |error|fail|abort|assert|cannot|not found|invalid|terminate", re.IGNORECASE
)
_ECHO = re.compile(r"exiting due to|Failed to init server|failed to load model|cleaning up before exit")
"""What llama.cpp repeats at every level on the way out; the line before says more."""


@dataclass(frozen=True, slots=True)
class Death:
    """A cause, in words, with what to do."""

    cause: str
    hint: str
    retry: bool | None = None
    """Whether the same start may succeed; None leaves it to the way it ended."""
    kind: str | None = None
    """A stable name, where something can be offered to do about it."""


LESS_MEMORY = "set a smaller CLEF_CONTEXT, leave out a projector, or use a smaller quantisation, in this order"

_BY_WORDS: tuple[tuple["re.Pattern[str]", Death], ...] = (
    (
        re.compile(r"couldn't bind HTTP server socket"),
        Death("its port was taken in the meantime", "leave --port out to get a free one", retry=True),
    ),
    (
        re.compile(r"unknown model architecture: '?([^'\s]+)"),
        Death(
            'it does not know models of the architecture "{0}"', "use a newer llama.cpp, or another model", retry=False
        ),
    ),
    (
        re.compile(r"not within the file bounds|corrupted or incomplete|invalid magic|failed to read (?:magic|header)"),
        Death("the model file is incomplete or damaged", "download the file again", retry=False),
    ),
    (
        re.compile(
            r"failed to allocate|unable to allocate|out of memory|OutOfDeviceMemory|cudaMalloc failed", re.IGNORECASE
        ),
        Death("it got not enough memory", LESS_MEMORY, retry=False, kind="memory"),
    ),
    (
        re.compile(r"error: invalid argument: (\S+)"),
        Death(
            'it does not know the option "{0}"', "take it out of CLEF_LLAMA_ARGS, or use a newer llama.cpp", retry=False
        ),
    ),
    (
        re.compile(r"invalid device: ([^\s;]+)"),
        Death(
            'it cannot use the device "{0}"',
            "choose another one by CLEF_DEVICE or on the Engine page; auto lets llama.cpp choose",
            retry=False,
        ),
    ),
    (
        re.compile(r'error while handling argument "(\S+)"'),
        Death('it cannot use what is given to the option "{0}"', "correct it in CLEF_LLAMA_ARGS", retry=False),
    ),
    (
        re.compile(r"error while loading shared libraries: ([^:\s]+)"),
        Death("it misses the library {0}", "install it, or add its folder to LD_LIBRARY_PATH", retry=False),
    ),
    (
        re.compile(r"invalid device function|no kernel image is available"),
        Death(
            "it was not built for this GPU",
            "rebuild it for this GPU's target; check HSA_OVERRIDE_GFX_VERSION and the *_VISIBLE_DEVICES variables",
            retry=False,
            kind="gpu target",
        ),
    ),
)
_BY_SIGNAL: dict[str, Death] = {
    "SIGKILL": Death(
        "it was killed from outside, most often because the machine ran out of memory", LESS_MEMORY, kind="memory"
    ),
    "SIGILL": Death(
        "it uses instructions that this processor does not have", "use a llama.cpp built for this machine", retry=False
    ),
}
_WSL_MEMORY = "; WSL gets half of the machine's memory unless .wslconfig says more"
_WSL_GPU = Death(
    "it crashed while it created its GPU context",
    "under WSL that is a mismatch of Windows driver, bridge library and ROCm or CUDA version: update them together",
)


def cause_of(end: Exit, lines: Sequence[str], *, is_wsl: bool) -> Death | None:
    """What is known about such an end; None where nothing is."""
    for pattern, death in _BY_WORDS:
        for line in lines:
            found = pattern.search(line)
            if found:
                return replace(death, cause=death.cause.format(*found.groups()))
    known = _BY_SIGNAL.get(str(end))
    if known is not None and is_wsl and str(end) == "SIGKILL":
        return replace(known, hint=known.hint + _WSL_MEMORY)
    if known is None and str(end) == "SIGSEGV" and is_wsl and _was_creating_context(lines):
        return _WSL_GPU
    return known


def telling(lines: Sequence[str], count: int = SHOWN_LINES, *, is_known: bool = False) -> list[str]:
    """The lines that say most about an end, without their time stamps: its complaints, else its last ones; where the
    cause is known without them, as that of a kill is, only complaints."""
    said = [line for line in lines if _ALARM.search(line) and not _ECHO.search(line)]
    said = said or ([] if is_known else list(lines))
    shown = [_STAMP.sub("", line).strip() for line in said]
    return list(dict.fromkeys(filter(None, shown)))[-count:]


def running_in_wsl(version: Path = Path("/proc/version")) -> bool:
    """Whether this Linux is a guest of Windows."""
    try:
        return "microsoft" in version.read_text().lower()
    except OSError:
        return False


def _was_creating_context(lines: Sequence[str]) -> bool:
    """Whether the tensors were being loaded, or were, and the server was not up."""
    text = "\n".join(lines)
    return ("load_tensors" in text or "llama_context" in text) and "model loaded" not in text
