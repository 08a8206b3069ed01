"""Turns what a server sent back into what can be read of it, with no access key in it."""

import json
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from typing import Any

import orjson

from clef.errors import BadReply, Refused

SHORTEST_HIDDEN = 6
"""A shorter key is no secret, and replacing it would spoil words."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """One reply to one HTTP request."""

    address: str
    """Root of the server, as it is shown."""
    status: int
    content: bytes
    headers: Mapping[str, str]
    """Any mapping that does not care about case."""

    @property
    def text(self) -> str:
        """The body as text."""
        return self.content.decode("utf-8", "replace")

    @property
    def wait_s(self) -> int | None:
        """Seconds until another try, as `retry-after-ms` or `Retry-After` give them; None where they give none."""
        given = self.headers.get("retry-after-ms")
        if given is not None and _is_number(given):
            return max(0, math.ceil(float(given) / 1000))
        given = self.headers.get("Retry-After", "").strip()
        if _is_number(given):
            return max(0, math.ceil(float(given)))
        try:
            return max(0, math.ceil(parsedate_to_datetime(given).timestamp() - time.time()))
        except (ValueError, OverflowError):
            return None

    def without(self, key: str | None) -> "Exchange":
        """The same with an access key made unreadable, should the server have repeated it."""
        if key is None or len(key) < SHORTEST_HIDDEN:
            return self
        content = self.content
        for form in {key.encode(), json.dumps(key)[1:-1].encode()}:
            if form in content:
                content = content.replace(form, b"(key)")
        return self if content is self.content else replace(self, content=content)

    def check_not_moved(self) -> None:
        """Raise Refused for a redirect: to follow one would take the key and the state to somebody else."""
        if 300 <= self.status < 400:
            where = self.headers.get("Location", "").split("?")[0][:200]
            hint = "set CLEF_UPSTREAM to where the server is; a login page there wants a browser, not a program"
            raise Refused(f"{self.address} sends requests on to {where or 'somewhere else'}", hint=hint)

    def json(self) -> Any:
        """The body read as JSON, whatever its content type says. Raises BadReply where it is none."""
        try:
            return orjson.loads(self.content)
        except orjson.JSONDecodeError as error:
            hint = "is this a System One server?"
            said = " ".join(self.content[:60].decode("utf-8", "replace").split())
            if not said:
                raise BadReply(f"{self.address} answers with nothing at all", hint=hint) from error
            if said[:1] == "<":
                raise BadReply(f'{self.address} answers with a web page: "{said}"', hint=hint) from error
            if _has_no_numbers(self.content):
                raise BadReply(f"{self.address} answers with NaN or Infinity, which are no probabilities") from error
            raise BadReply(f'{self.address} answers something that is not JSON: "{said}"', hint=hint) from error


def _is_number(text: str) -> bool:
    return text.replace(".", "", 1).isdecimal() and len(text) < 16


def _has_no_numbers(content: bytes) -> bool:
    """Whether it would be JSON but for NaN and Infinity."""
    try:
        json.loads(content)
    except (ValueError, RecursionError):
        return False
    return True
