"""Turns the access keys of the settings into who a request comes from, and wrong keys into a wait.

A key is compared by its digest, with all of them, in constant time. A session is a signed note in a cookie: it holds
the key's name and its end, so it lives through a restart and dies with its key. Only distinct wrong keys count towards
the wait, so a program with one stale key in it does not lock out its neighbours.
"""

import hashlib
import hmac
import ipaddress
import os
import secrets
import stat
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from clef.errors import ClefError, SettingsError

LOCAL = "local"
"""Name of the token by which programs of this person on this machine find a running clef."""
MADE = "made"
"""Name of the key that clef makes where it is reachable from elsewhere and none is set."""
SESSION_S = 30 * 24 * 3600
WRONG_KEYS = 10
"""Distinct wrong keys an address may try within WINDOW_S."""
WINDOW_S = 60.0
ADDRESSES = 4096
"""Addresses whose wrong keys are remembered; beyond them the oldest is forgotten."""
SIGNED_OUT = 10_000
"""Ended sessions that are remembered until they would have ended by themselves."""


class Unauthorized(ClefError):
    """No key came with the request, or one that clef does not know."""

    code = "unauthorized"
    status = 401
    fault = "input"


class Throttled(ClefError):
    """Too many wrong keys from one address."""

    code = "too_many_wrong_keys"
    status = 429
    fault = "input"

    def __init__(self, message: str, retry_after_s: int) -> None:
        super().__init__(message, hint=f"wait {retry_after_s} s")
        self.retry_after_s = retry_after_s


@dataclass(slots=True)
class _Tries:
    until: float
    wrong: set[bytes] = field(default_factory=set)


class Throttle:
    """Counts distinct wrong keys an address; memory is bounded whoever comes."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._tries: OrderedDict[str, _Tries] = OrderedDict()

    def check(self, address: str) -> None:
        """Raise Throttled while the address has to wait."""
        tries = self._tries.get(_network(address))
        if tries is None or len(tries.wrong) < WRONG_KEYS:
            return
        left = tries.until - self._clock()
        if left > 0:
            raise Throttled("too many wrong keys from this address", max(1, round(left)))
        del self._tries[_network(address)]

    def count(self, address: str, digest: bytes) -> None:
        """Take note of a wrong key."""
        network, now = _network(address), self._clock()
        tries = self._tries.get(network)
        if tries is None or tries.until <= now:
            tries = self._tries[network] = _Tries(now + WINDOW_S)
            self._tries.move_to_end(network)
            if len(self._tries) > ADDRESSES:
                self._tries.popitem(last=False)
        if len(tries.wrong) < WRONG_KEYS:
            tries.wrong.add(digest[:8])


class Keys:
    """The access keys, by name. Empty means that none is asked for."""

    def __init__(self, named: Mapping[str, str], clock: Callable[[], float] = time.time) -> None:
        self._digests = {name: _digest(key) for name, key in named.items()}
        self._throttle = Throttle()
        self._clock = clock
        self._signed_out: OrderedDict[str, None] = OrderedDict()
        together = _digest("".join(digest.hex() for digest in self._digests.values()))
        self.cookie = f"clef-{together.hex()[:8]}"
        """Name of the session cookie; cookies know no ports, so it differs from that of another clef here."""

    def __bool__(self) -> bool:
        return bool(self._digests)

    def name_of(self, key: str, address: str) -> str:
        """Whose key it is. Raises Unauthorized for a wrong one, Throttled after too many from this address."""
        self._throttle.check(address)
        digest, found = _digest(key), None
        for name, known in self._digests.items():
            if hmac.compare_digest(digest, known):
                found = name
        if found is None:
            self._throttle.count(address, digest)
            raise Unauthorized("this key is not one that clef knows", hint="see CLEF_API_KEY where clef was started")
        return found

    def session(self, name: str) -> str:
        """A new session of a key, as the value of the cookie."""
        note = f"{name}.{int(self._clock()) + SESSION_S}.{secrets.token_hex(8)}"
        return f"{note}.{self._sign(name, note)}"

    def session_name(self, value: str) -> str | None:
        """Whose session a cookie holds; None where it has ended, or was never one."""
        note, _, signature = value.rpartition(".")
        name, _, rest = note.partition(".")
        if name not in self._digests or not hmac.compare_digest(self._sign(name, note).encode(), signature.encode()):
            return None
        return name if value not in self._signed_out and int(rest.partition(".")[0]) > self._clock() else None

    def end(self, value: str) -> None:
        """End a session."""
        if self.session_name(value) is not None:
            self._signed_out[value] = None
            if len(self._signed_out) > SIGNED_OUT:
                self._signed_out.popitem(last=False)

    def _sign(self, name: str, note: str) -> str:
        return hmac.new(self._digests[name], note.encode(), hashlib.sha256).hexdigest()


def kept_key(folder: Path) -> str:
    """The key that clef made for this data folder, made now where there is none; for the user's eyes only (0600).

    Raises SettingsError where others may read the file.
    """
    path = folder / "access.key"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if path.exists():
            if os.name == "posix" and stat.S_IMODE(path.stat().st_mode) & 0o077:
                hint = f"chmod 600 {path}, or delete it, and a new one is made"
                raise SettingsError(f"others on this machine may read the access key in {path}", hint=hint)
            return path.read_text().strip()
        key = secrets.token_urlsafe(24)
        with os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file:
            file.write(key + "\n")
    except OSError as error:
        hint = "set CLEF_API_KEY, or CLEF_DATA_DIR to a folder that can be written"
        raise SettingsError(f"the access key cannot be kept in {path}: {error.strerror}", hint=hint) from error
    return key


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "replace")).digest()


def _network(address: str) -> str:
    """What counts as one address: of IPv6 its /64, which is what one customer gets."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    if found.version == 6:
        return str(ipaddress.ip_network((found, 64), strict=False).network_address)
    return str(found)
