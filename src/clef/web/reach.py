"""Turns the settings into who can reach clef: under which host names, from which origins, and with which keys."""

import ipaddress
import socket
from dataclasses import dataclass
from urllib.parse import urlsplit

from clef.settings import Settings
from clef.web.keys import LOCAL, MADE, Keys, kept_key

LOOPBACK_HOSTS = frozenset({"127.0.0.1", "localhost", "::1"})
HERE = "192.0.2.1"
"""An address of no machine (RFC 5737): the way there starts at the address others reach this machine by."""


@dataclass(frozen=True, slots=True)
class Reach:
    """Who can reach clef."""

    names: frozenset[str]
    """Host names it answers to, in small letters; one that starts with a dot stands for all below it."""
    any_address: bool
    """Whether any address is a name it answers to. A page that rebinds its own name has no address for a Host."""
    any_name: bool
    origins: frozenset[str]
    """Origins whose pages may call the API."""
    keys: Keys
    made_key: str | None = None
    """The key that was made because none was set; for the link that is printed."""

    def answers_to(self, host: str) -> bool:
        """Whether a Host header names this clef."""
        try:
            name = (urlsplit(f"//{host}").hostname or "").lower()
        except ValueError:
            return False
        if name in self.names or (self.any_name and name):
            return True
        if any(known.startswith(".") and name.endswith(known) for known in self.names):
            return True
        return self.any_address and _is_address(name)


def reach_of(settings: Settings, local_token: str | None = None) -> Reach:
    """Who can reach a clef with these settings. Beyond this machine only with keys: one is made where none is set.

    `local_token` is a further key, named "local", for the programs of whoever started this clef; it is accepted where
    keys are asked for. Raises SettingsError where a key cannot be kept.
    """
    beyond = not is_loopback(settings.host)
    allowed = [name.lower().removeprefix("*") for name in settings.allowed_hosts]
    named, made = dict(settings.access_keys), None
    if not named and (beyond or set(allowed) - LOOPBACK_HOSTS):
        made = kept_key(settings.data_dir)
        named = {MADE: made}
    if named and local_token:
        named[LOCAL] = local_token
    own = {settings.host.lower(), socket.gethostname().lower(), f"{socket.gethostname().lower()}.local"}
    names = LOOPBACK_HOSTS | set(filter(None, allowed)) | (own if beyond else set())
    return Reach(frozenset(names), beyond, "" in allowed, frozenset(settings.cors_origins), Keys(named), made)


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a server that listens on `host`."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def shown_host(host: str) -> str:
    """The host for a link that others can open: of "every address" the one this machine is reached by."""
    if host not in ("0.0.0.0", "::"):
        return f"[{host}]" if ":" in host else host
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as way:
        try:
            way.connect((HERE, 9))  # sends nothing: it only chooses a way
            return str(way.getsockname()[0])
        except OSError:
            return socket.gethostname()


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
