"""Turns what stands in HF_TOKEN into the token to use, or into what is wrong with it.

A hub answers a bad token with 401 even where none is needed, so its shape is looked at before anything is asked. The
token itself is never part of a message.
"""

import re
from collections.abc import Mapping

from clef.errors import SettingsError

_SHAPE = re.compile(r"hf_[A-Za-z0-9_.-]{8,}")


def child_environment(env: Mapping[str, str]) -> dict[str, str]:
    """The environment for a download: the token tidied, nothing printed or reported by the hub's library.

    Raises SettingsError for a token that cannot be one.
    """
    quiet = {
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_HUB_DISABLE_UPDATE_CHECK": "1",
        "HF_HUB_DISABLE_XET": "1",  # its transfers leave nothing to resume from, and show no bytes on disk
    }
    left = {name: value for name, value in env.items() if name not in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")}
    token = tidy_token(env.get("HF_TOKEN") or env.get("HUGGING_FACE_HUB_TOKEN"))
    return left | quiet | ({"HF_TOKEN": token} if token else {})


def tidy_token(given: str | None) -> str | None:
    """A token without the quotes and line ends it was pasted with. Raises SettingsError where it can be none."""
    token = (given or "").strip().strip("\"'").strip()
    if not token:
        return None
    if not _SHAPE.fullmatch(token):
        raise SettingsError(
            "HF_TOKEN does not look like an access token: those begin with hf_ and have no spaces",
            hint="copy it again, or unset HF_TOKEN: most decision models need none",
        )
    return token
