"""Turns a reply that is no decision into the error its server meant, whichever of the protocol's servers it is.

what it means              error                    so that
too many tokens            TooLong                  the same input is never asked again
an input it cannot decide  Rejected                 one row fails
key, model or address      Barred                   a run stops here, and a person changes a setting
busy, away, loading        Unavailable              it is asked again, after the time it named
nothing left to spend      Unavailable, failed      a run stops here, and goes on when there is
it gave up waiting         TimedOut                 a person knows that the time was not clef's

What a body says goes before its status: llama.cpp answers 500 to a prompt that is too long and always will, and
hosted servers put errors into a 200. No word of a foreign server is longer than EXCERPT in what we raise.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from clef.errors import Barred, EngineError, Refused, Rejected, TimedOut, TooLong, Unavailable

EXCERPT = 200
"""Characters of a foreign error text that are shown."""
LONG_WAIT_S = 300
"""A server that asks for more patience than this is not waited for; a run stops and says so."""
QUOTA_WAIT_S = 3600
"""When to look again after an allowance was used up, where the server does not say."""
SET_MODEL = "set CLEF_UPSTREAM_MODEL to a decision model that the server has"
MODEL_WANTED = re.compile(r"model:? (field )?(is )?required", re.IGNORECASE)
"""How servers say that a request named no model."""
SHORTEN = "shorten the state; the server sets how much it reads"

_COUNTED = (
    r"\((?P<tokens>\d+) tokens\) is too large to process.*?batch size: (?P<limit>\d+)",  # llama.cpp, batch
    r"\((?P<tokens>\d+) tokens\) exceeds the available context size \((?P<limit>\d+) tokens\)",  # llama.cpp, context
    r"\((?P<tokens>\d+) tokens\) is longer than the model's context length \((?P<limit>\d+) tokens\)",  # SGLang
    r"maximum context length is (?P<limit>\d+) tokens\D*?(?P<tokens>\d+)",  # vLLM
)
_TOKENS = [re.compile(pattern, re.DOTALL) for pattern in _COUNTED]
_LONG_KINDS = ("exceed_context_size_error", "max_tokens_exceeded", "tokens_exceeded", "context_length_exceeded")
_LONG = re.compile(
    r"too large to process|context (length|size|window)|too many (input )?tokens|token (limit|budget)"
    r"|(state|prompt|input|schema) (is )?too long|STATE_TRUNCATED",
    re.IGNORECASE,
)
_SPENT = re.compile(r"insufficient[_ ](credits?|quota|balance|funds)|out of credits|daily|allowance", re.IGNORECASE)
_NO_MODEL = re.compile(
    r"unknown model|no such model|model not |no endpoints found|not a valid model|models? .{0,80}?(not found|not served"
    r"|not exist|not available|not loaded|is required)|model:? field required",
    re.IGNORECASE,
)
_UNDECIDING = re.compile(
    r"not a (typed[- ])?decision model|not support (decisions?|system ?one|structured decisions)", re.IGNORECASE
)
_IMAGES = re.compile(r"\bimages?\b|image_url|mmproj|multi-?modal|\bvision\b", re.IGNORECASE)
_FLAGGED = re.compile(r"flagged|moderation", re.IGNORECASE)
_LOADING = re.compile(r"\bload(ing|ed)?\b|starting|warming", re.IGNORECASE)

# Cloudflare's own numbers, which say more than the status beside them.
_KEY_CODES, _SPENT_CODES, _BUSY_CODES, _LONG_CODES = {10000}, {3036, 4006}, {3040}, {5021}
_NO_ROUTE_CODES = {7000, 5007}
_STATUS_OF_CODES = {5006: 400, 5012: 422, 6003: 400} | dict.fromkeys(_KEY_CODES, 401)
_GATEWAY = {502, *range(520, 524), 525, 526, 527, 530}


@dataclass(frozen=True, slots=True)
class _Said:
    """What an error body says."""

    kind: str
    message: str
    codes: frozenset[int] = frozenset()

    @property
    def all(self) -> str:
        return f"{self.kind} {self.message}"

    @property
    def tail(self) -> str:
        return f": {self.message[:EXCERPT]}" if self.message else ""


def read_error(status: int, text: str, *, wait_s: int | None = None, has_key: bool = False) -> EngineError | TooLong:
    """The error that a server meant; `text` is its body, `wait_s` the time it asked us to wait, `has_key` whether it
    was sent an access key."""
    said = _said(text)
    return (
        _too_long(status, said)
        or _unavailable(status, said, wait_s)
        or _refused(status, said, has_key)
        or _rejected(status, said)
    )


def error_within(body: Any, *, has_key: bool = False) -> EngineError | TooLong | None:
    """The error in a body that came with a status of success, or None where there is none."""
    if not isinstance(body, Mapping) or body.get("answers"):
        return None
    failed = body.get("success") is False
    if not failed and not isinstance(body.get("error"), str | Mapping):
        return None
    said = _said(json.dumps(body))
    status = next((code for code in sorted(said.codes) if 400 <= code < 600), None)
    status = status or next((_STATUS_OF_CODES[code] for code in said.codes if code in _STATUS_OF_CODES), 500)
    return read_error(status, json.dumps(body), has_key=has_key)


def _too_long(status: int, said: _Said) -> TooLong | None:
    for pattern in _TOKENS:
        if found := pattern.search(said.message):
            return TooLong(int(found["tokens"]), int(found["limit"]))
    if said.kind == _LONG_KINDS[0] or "too large to process" in said.message:
        return TooLong(None, None)
    is_long = said.kind in _LONG_KINDS or said.codes & _LONG_CODES
    if is_long or status == 413 or (status in (400, 422, 500) and _LONG.search(said.all)):
        return TooLong(None, None, hint=SHORTEN)
    return None


def _unavailable(status: int, said: _Said, wait_s: int | None) -> EngineError | None:
    is_patient = wait_s is None or wait_s <= LONG_WAIT_S
    spent = _SPENT.search(said.all) and status in (403, 429) and (wait_s is None or not is_patient)
    if status == 402 or said.codes & _SPENT_CODES or spent:
        hint = "the server's operator sets the limit; see your account there"
        message = f"the engine's allowance is used up{said.tail}"
        return Unavailable(message, hint=hint, phase="failed", retry_after_s=wait_s or QUOTA_WAIT_S)
    if status == 503 and (said.kind == "unavailable_error" or not said.message or _LOADING.search(said.message)):
        return Unavailable(f"the engine is not ready yet{said.tail}", phase="loading", retry_after_s=wait_s)
    if status in (429, 503, 529) or said.codes & _BUSY_CODES:
        if not is_patient:
            message = f"the engine is busy for {wait_s} seconds more{said.tail}"
            return Unavailable(message, phase="failed", retry_after_s=wait_s)
        return Unavailable(f"the engine is busy{said.tail}", phase="ready", retry_after_s=wait_s)
    if status in _GATEWAY:
        message = f"what stands before the engine cannot reach it (HTTP {status}){said.tail}"
        return Unavailable(message, phase="off", retry_after_s=wait_s)
    if status in (408, 504, 524):
        return TimedOut(f"the engine gave up waiting (HTTP {status}){said.tail}")
    return None


def _refused(status: int, said: _Said, has_key: bool) -> Refused | None:
    if status in (401, 403) or said.kind == "authentication_error" or said.codes & _KEY_CODES:
        if _FLAGGED.search(said.message):
            return Rejected(f"the engine cannot decide this{said.tail}")
        if has_key:
            return Barred(f"the engine does not accept the access key{said.tail}", hint="check CLEF_UPSTREAM_KEY")
        return Barred(f"the engine wants an access key{said.tail}", hint="set CLEF_UPSTREAM_KEY")
    if _UNDECIDING.search(said.message) or (status == 501 and not _IMAGES.search(said.message)):
        hint = "load a decision model such as Clef-Flash, or name one in CLEF_UPSTREAM_MODEL"
        return Barred(f"the engine's model is not a decision model{said.tail}", hint=hint)
    if _NO_MODEL.search(said.message):
        return Barred(f"the engine does not have this model{said.tail}", hint=SET_MODEL)
    if status in (404, 405, 410) or said.codes & _NO_ROUTE_CODES:
        hint = "a llama-server before build 11361 does not have it; or this is another kind of server"
        return Barred(f"no /v1/systemone at this address{said.tail}", hint=hint)
    return None


def _rejected(status: int, said: _Said) -> Refused:
    if status in (400, 415, 422, 501):
        what = "cannot read these images" if _IMAGES.search(said.message) else "cannot decide this"
        return Rejected(f"the engine {what}{said.tail or f' (HTTP {status})'}")
    if status >= 500:
        return Refused(f"the engine failed (HTTP {status}){said.tail}", hint="its own log says more")
    return Refused(f"the engine refuses the request (HTTP {status}){said.tail}")


def _said(text: str) -> _Said:
    """What an error body says, in any of the shapes that servers of this protocol send."""
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        shown = " ".join(text.split())
        return _Said("", f"it answers with a web page, not JSON: {shown[:80]}" if shown[:1] == "<" else shown)
    if not isinstance(body, Mapping):
        return _Said("", str(body) if body is not None else "")
    inner = body.get("error") or body.get("detail") or body.get("errors") or body
    if isinstance(inner, list):
        items = [item if isinstance(item, Mapping) else {"msg": item} for item in inner]
        codes = frozenset(item["code"] for item in items if isinstance(item.get("code"), int))
        return _Said("", "; ".join(_item(item) for item in items), codes)
    if isinstance(inner, Mapping):
        kind = str(inner.get("type") or inner.get("error_type") or inner.get("code") or "")
        code = inner.get("code")
        codes = frozenset([code]) if isinstance(code, int) else frozenset()
        return _Said(kind, str(inner.get("message") or inner.get("error_type") or ""), codes)
    return _Said(str(body.get("error_type") or body.get("type") or ""), str(inner))


def _item(item: Mapping[str, Any]) -> str:
    """One entry of a list of errors, with the field it is about."""
    message = str(item.get("msg", item.get("message", dict(item))))
    loc = item.get("loc")
    path = [str(part) for part in loc if part not in ("body", "questions")] if isinstance(loc, list) else []
    return f"{'.'.join(path)}: {message}" if path else message
