"""Turns the images that come with a state into data URLs that an engine can take, or into what is wrong with each.

Every server of the protocol reads PNG and JPEG; nobody fetches an address, and clef does not either.
"""

import base64
import binascii
import re
from typing import Any

from clef.errors import InputError, Problem

MAX_IMAGES = 8
"""Images a request may have: the limit of llama.cpp."""
MAX_IMAGE_BYTES = 4_000_000
"""Bytes one image may have."""
SIGNATURES = {"png": b"\x89PNG\r\n\x1a\n", "jpeg": b"\xff\xd8\xff"}
"""How a file of each type that is read begins."""
_URL = re.compile(r"data:image/([\w.+-]+);base64,", re.IGNORECASE)


def read_images(images: Any, where: str = "images") -> tuple[str, ...]:
    """The data URLs in a list, in its order; none for None. Raises InputError with every problem."""
    if images is None:
        return ()
    if not isinstance(images, list):
        raise InputError.of([Problem("expected a list of images", "not_a_list", column=where)])
    problems = []
    if len(images) > MAX_IMAGES:
        message = f"{len(images)} images; at most {MAX_IMAGES} are possible"
        problems.append(Problem(message, "too_many_images", column=where))
    for position, image in enumerate(images):
        said = _wrong_with(image)
        if said:
            hint = "give a PNG or JPEG as data:image/png;base64,… or data:image/jpeg;base64,…"
            problems.append(Problem(said, "image", column=f"{where}[{position}]", hint=hint))
    if problems:
        raise InputError.of(problems, "the request")
    return tuple(images)


def _wrong_with(image: Any) -> str | None:
    if not isinstance(image, str):
        return "expected text"
    found = _URL.match(image)
    if found is None:
        return "an address is not fetched" if image.startswith("http") else "not a data URL of an image"
    kind = found[1].lower().replace("jpg", "jpeg")
    if kind not in SIGNATURES:
        return f"{kind.upper()} is not read"
    encoded = image[found.end() :]
    if len(encoded) * 3 // 4 > MAX_IMAGE_BYTES + 2:
        return f"{len(encoded) * 3 / 4e6:.1f} MB; an image may have {MAX_IMAGE_BYTES / 1e6:g} MB"
    try:
        content = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        return "its base64 is damaged"
    return None if content.startswith(SIGNATURES[kind]) else f"it is called a {kind.upper()} and is none"
