"""Turns everything that can go wrong into one tree, with a code, a status and a hint.

    ClefError
    ├── InputError          what was given cannot be used; carries every Problem at once
    │   ├── TooLarge        more bytes or rows than a limit allows
    │   │   └── TooLong     more tokens than the engine reads in one pass
    │   ├── NotFound        no such run, page or file
    │   └── Taken           something else has this name
    ├── SettingsError       a CLEF_* value or an option cannot be used
    ├── StoreError          the database cannot be read or written
    └── EngineError         whoever should answer did not
        ├── Unavailable     not there, or not ready yet: worth another try
        │   └── Overloaded  there, with too much to do
        ├── TimedOut        there, but no answer in time
        ├── Refused         it answered no: it failed, or cannot do this
        │   ├── Barred      it says no whatever is asked: wrong key, not a decision model, no such address
    │   └── Rejected    it answered that this input cannot be decided: too many options for its model
        ├── BadReply        it answered something that is no distribution over what was asked
        └── Crashed         the child we run died while answering

An error that a user can fix is a ClefError and is shown without a traceback, by one renderer a surface;
anything else is a bug and keeps its traceback.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Fault = Literal["input", "upstream", "clef"]
MOST_TOLD = 20
"""Problems that a traceback ends with; `problems` has them all."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong in what was given, and where."""

    message: str
    """What is wrong, with the values in quotes."""
    code: str = "invalid"
    """A stable name for this kind of problem."""
    row: int | None = None
    """Spreadsheet row: the header is row 1, or the first row where there is no header."""
    line: int | None = None
    """Text line, counted from 1; None where the source has no lines."""
    column: str | None = None
    """Column name, or the path of a field such as `questions[0].answers[1]`."""
    hint: str | None = None
    """What to do about it."""

    def to_dict(self) -> dict[str, object]:
        """The problem as JSON; `row`, `line`, `column` and `hint` are null where they say nothing."""
        return {
            "row": self.row,
            "line": self.line,
            "column": self.column,
            "code": self.code,
            "message": self.message,
            "hint": self.hint,
        }

    def __str__(self) -> str:
        where = []
        if self.row is not None:
            where.append(f"row {self.row}")
        if self.line is not None and self.line != self.row:
            where.append(f"line {self.line}")
        if self.column:
            where.append(self.column)
        text = f"{', '.join(where)}: {self.message}" if where else self.message
        return f"{text} ({self.hint})" if self.hint else text


class ClefError(Exception):
    """Anything a user, not a programmer, can do something about."""

    code: str = "error"
    """A stable name for this kind of error."""
    status: int = 500
    """HTTP status it is answered with."""
    fault: Fault = "clef"
    """Whose it is: the input's, the upstream engine's, or clef's own."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        """As a traceback ends: what is wrong, and what to do about it."""
        return f"{self.message} ({self.hint})" if self.hint and self.hint not in self.message else self.message

    def to_dict(self) -> dict[str, object]:
        """The error as the JSON that every endpoint answers with, under the key `error`."""
        return {"code": self.code, "message": self.message, "hint": self.hint, "fault": self.fault}


class InputError(ClefError):
    """What was given cannot be used; `problems` lists everything that is wrong with it."""

    code = "invalid_input"
    status = 400
    fault: Fault = "input"

    def __init__(self, message: str, problems: Sequence[Problem] = (), *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.problems = tuple(problems)

    @classmethod
    def of(cls, problems: Sequence[Problem], what: str = "the input") -> "InputError":
        """One error for a list of problems, its message counting them."""
        if len(problems) == 1:
            return cls(str(problems[0]), problems, hint=problems[0].hint)
        return cls(f"{len(problems)} problems in {what}", problems)

    def __str__(self) -> str:
        """As a traceback ends: every problem on a line of its own, or the first of very many."""
        if len(self.problems) < 2:
            return super().__str__()
        told = [f"- {problem}" for problem in self.problems[:MOST_TOLD]]
        rest = len(self.problems) - len(told)
        return "\n".join([f"{self.message}:", *told, *([f"- and {rest} more"] if rest else [])])

    def to_dict(self) -> dict[str, object]:
        """As `ClefError.to_dict`, with every problem."""
        return super().to_dict() | {"problems": [problem.to_dict() for problem in self.problems]}


class TooLarge(InputError):
    """More than a limit allows; the message has the limit."""

    code = "too_large"
    status = 413


class TooLong(TooLarge):
    """A prompt longer than the engine can read in one pass. Permanent: the same input fails again."""

    code = "too_long"

    def __init__(self, tokens: int | None, limit: int | None, *, hint: str | None = None) -> None:
        counted = "" if tokens is None or limit is None else f": {tokens} of {limit} tokens"
        way_out = "shorten the state, or start the engine with a larger context (CLEF_CONTEXT)"
        super().__init__("too long" + counted, hint=hint or way_out)
        self.tokens = tokens
        self.limit = limit

    def to_dict(self) -> dict[str, object]:
        """As `InputError.to_dict`, with both token counts."""
        return super().to_dict() | {"tokens": self.tokens, "limit": self.limit}


class NotFound(InputError):
    """Nothing is there under this name."""

    code = "not_found"
    status = 404


class Taken(InputError):
    """Something else is kept under this name."""

    code = "taken"
    status = 409


class SettingsError(ClefError):
    """A setting cannot be used; the message names it as the user wrote it."""

    code = "settings"
    status = 500
    fault: Fault = "input"


class StoreError(ClefError):
    """The database cannot be read or written. What was written before stays."""

    code = "store"
    status = 507


class EngineError(ClefError):
    """Whoever should answer did not."""

    code = "engine"
    status = 502
    fault: Fault = "upstream"
    transient: bool = False
    """Whether the same request may succeed later."""


class Unavailable(EngineError):
    """The engine cannot be reached or is not ready; `retry_after_s` is when to try again: what the engine asked for,
    else a guess."""

    code = "engine_unavailable"
    status = 503
    transient = True

    def __init__(
        self, message: str, *, hint: str | None = None, phase: str = "off", retry_after_s: int | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.phase = phase
        self.retry_after_s = 2 if retry_after_s is None else retry_after_s
        self.is_asked_for = retry_after_s is not None

    def to_dict(self) -> dict[str, object]:
        """As `ClefError.to_dict`, with the engine's phase."""
        return super().to_dict() | {"phase": self.phase}


class Overloaded(Unavailable):
    """More is asked than can be answered now; the status is the protocol's for it."""

    code = "overloaded"
    status = 529


class TimedOut(EngineError):
    """The engine took longer than `CLEF_UPSTREAM_TIMEOUT`."""

    code = "engine_timeout"
    status = 504


class Refused(EngineError):
    """The engine answered, and the answer is no. The same request will be refused again."""

    code = "engine_refused"


class Barred(Refused):
    """The engine says no to whatever is asked until a setting is changed: its key, its model or its address."""


class Rejected(Refused):
    """The engine works, and says that this input is not one it can decide."""

    code = "engine_rejected"
    status = 400
    fault: Fault = "input"


class BadReply(EngineError):
    """The reply is no probability distribution over what was asked, so it is never counted as an answer."""

    code = "bad_reply"


class Crashed(EngineError):
    """The llama.cpp child died while it held this request."""

    code = "engine_crashed"
    status = 503
    transient = True
    retry_after_s = 2
