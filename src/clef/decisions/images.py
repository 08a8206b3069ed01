"""Turns the images and videos that come with a state into data URLs that an engine can take, or into what is wrong.

One check, told in two ways: `read_images` says it as the page, the command line and /api do, a Problem at its column;
`Pictures` as /v1 does, at its `loc`. Every server of the protocol reads PNG and JPEG, so these are taken. Nothing is
fetched, no file is opened, and no more than a header is decoded.

Into /v1 three ways lead: `images` (data URLs), `image_url` parts of messages in the state, and `assets`, whose bytes
are in the body or in parts beside it. What stands in the text for an image becomes "[image 1]", "[image 2]", …: an
opaque reference, new at each call, would be read by the model.
"""

import base64
import binascii
import io
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from clef.decisions.questions import MAX_DEPTH, too_deep
from clef.errors import InputError, Problem

MAX_IMAGES = 8
"""Images a request may have: the limit of llama.cpp."""
MAX_VIDEOS = 4
"""Videos a request may have."""
MAX_IMAGE_BYTES = 16_000_000
"""Bytes one image may have; TypeSafe's own server takes as many."""
MAX_PIXELS = 25_000_000
"""Pixels one image may have, whatever few bytes they are packed in."""
SIGNATURES = {"png": b"\x89PNG\r\n\x1a\n", "jpeg": b"\xff\xd8\xff"}
"""How a file of each kind that is read begins."""
UNREAD = {"WebP": b"RIFF", "GIF": b"GIF8", "BMP": b"BM", "PDF": b"%PDF"}
"""How files begin that are taken for images that are read, so that they can be named."""
HINT = "give a PNG or JPEG"
URL_HINT = f"{HINT} as data:image/png;base64,… or data:image/jpeg;base64,…"
AROUND = 5
"""Levels of a body around its texts."""

Loc = tuple[str | int, ...]
Complain = Callable[[Loc, str, str], None]
"""Takes note of a problem: its place, what is wrong, and its kind."""
_IMAGE_URL = re.compile(r"data:image/([\w.+-]+);base64,", re.IGNORECASE)
_VIDEO_URL = re.compile(r"data:video/[\w.+-]+;base64,", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Fault:
    """Why an image is not taken."""

    message: str
    """Without a capital, as Problems are."""
    code: str = "image"


def url_fault(url: Any) -> Fault | None:
    """Why a data URL is not taken, or None."""
    if not isinstance(url, str):
        return Fault("expected text", "string_type")
    found = _IMAGE_URL.match(url)
    if found is None:
        is_address = url[:4].lower() in ("http", "file")
        return Fault("an address is not fetched" if is_address else "not a data URL of an image", "url_type")
    kind = found[1].lower().replace("jpg", "jpeg")
    if kind not in SIGNATURES:
        return Fault(f"{kind.upper()} is not read")
    content = decoded(url[found.end() :])
    if isinstance(content, Fault):
        return content
    if not content.startswith(SIGNATURES[kind]):
        return Fault(f"it is called a {kind.upper()} and is none")
    return bytes_fault(content)


def decoded(encoded: str) -> bytes | Fault:
    """The bytes in base64; what is too much for an image is not decoded."""
    size = len(encoded) * 3 // 4
    if size > MAX_IMAGE_BYTES + 2:
        return _too_large(size)
    try:
        return base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        return Fault("its base64 is damaged", "base64")


def bytes_fault(content: bytes) -> Fault | None:
    """Why the bytes of an image are not taken, or None. Reads its header only."""
    import imagesize

    if _kind(content) is None:
        known = next((name for name, start in UNREAD.items() if content.startswith(start)), None)
        return Fault(f"{known} is not read" if known else "it is neither a PNG nor a JPEG")
    if len(content) > MAX_IMAGE_BYTES:
        return _too_large(len(content))
    try:
        width, height = imagesize.get(io.BytesIO(content))
    except Exception:  # whatever a parser of foreign bytes may raise
        width = height = -1
    if width <= 0 or height <= 0:
        return Fault("it is damaged: its header tells no size")
    if width * height > MAX_PIXELS:
        return Fault(f"{width} x {height} pixels; an image may have {MAX_PIXELS // 1_000_000} million")
    return None


def as_url(content: bytes) -> str:
    """The data URL of an image."""
    return f"data:image/{_kind(content) or 'png'};base64,{base64.b64encode(content).decode()}"


def read_images(images: Any, where: str = "images") -> tuple[str, ...]:
    """The data URLs in a list, in its order; none for None. Raises InputError with every problem."""
    if images is None:
        return ()
    if not isinstance(images, list):
        raise InputError.of([Problem("expected a list of images", "not_a_list", column=where)])
    problems = count_problems(len(images), where)
    for position, image in enumerate(images):
        if fault := url_fault(image):
            problems.append(Problem(fault.message, "image", column=f"{where}[{position}]", hint=URL_HINT))
    if problems:
        raise InputError.of(problems, "the request")
    return tuple(images)


def count_problems(count: int, where: str) -> list[Problem]:
    """What is wrong with so many images."""
    message = f"{count} images; at most {MAX_IMAGES} are possible"
    return [Problem(message, "too_many_images", column=where)] if count > MAX_IMAGES else []


class Pictures:
    """The images of one body, in order, while it is read."""

    def __init__(self, parts: Mapping[str, bytes], complain: Complain) -> None:
        """`parts` are the bytes that came beside the body, by name."""
        self._parts = parts
        self._complain = complain
        self.images: list[str] = []
        self.videos: list[str] = []

    def take(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The state and the questions of a body with its images taken out of them and named in their place."""
        for position, image in enumerate(self._listed(body.get("images"), "images", MAX_IMAGES)):
            self._take_url(image, ("images", position))
        self._take_videos(body.get("videos"))
        state = self._take_messages(body.get("state"))
        texts = {"state": state, "questions": body.get("questions")}
        names = self._take_assets(body.get("assets"), texts)
        if len(self.images) > MAX_IMAGES:
            self._complain(("images",), f"At most {MAX_IMAGES} images, not {len(self.images)}", "too_long")
        return _renamed(texts, names) if names and not too_deep(texts, MAX_DEPTH + AROUND) else texts

    def _listed(self, given: Any, name: str, most: int) -> list[str]:
        """A list of data URLs, one more than may be at most."""
        if given is None:
            return []
        if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
            self._complain((name,), "Input should be an array of data URLs", "list_type")
            return []
        return given[: most + 1]

    def _take_videos(self, videos: Any) -> None:
        self.videos = self._listed(videos, "videos", MAX_VIDEOS)
        if len(self.videos) > MAX_VIDEOS:
            self._complain(("videos",), f"At most {MAX_VIDEOS} videos, not {len(videos)}", "too_long")
        for position, video in enumerate(self.videos):
            if not _VIDEO_URL.match(video):
                message = "Only data URLs of videos are read: clef fetches nothing"
                self._complain(("videos", position), message, "url_type")

    def _take_messages(self, state: Any) -> Any:
        """The state, the image parts of its messages replaced by what they are called."""
        if not isinstance(state, list):
            return state
        return [self._take_message(message, ("state", n)) for n, message in enumerate(state)]

    def _take_message(self, message: Any, at: Loc) -> Any:
        if not isinstance(message, Mapping) or not isinstance(message.get("content"), list):
            return message
        parts = []
        for n, part in enumerate(message["content"]):
            if isinstance(part, Mapping) and part.get("type") == "image_url":
                given = part.get("image_url")
                url = given.get("url") if isinstance(given, Mapping) else given
                self._take_url(url, (*at, "content", n))
                parts.append({"type": "text", "text": _name(len(self.images))})
            else:
                parts.append(part)
        return {**message, "content": parts}

    def _take_url(self, url: Any, at: Loc) -> None:
        if fault := url_fault(url):
            self._refuse(at, fault, URL_HINT)
        self.images.append(url)

    def _take_bytes(self, content: bytes | Fault, at: Loc) -> None:
        fault = content if isinstance(content, Fault) else bytes_fault(content)
        if fault:
            self._refuse(at, fault, HINT)
        self.images.append("" if isinstance(content, Fault) else as_url(content))

    def _refuse(self, at: Loc, fault: Fault, hint: str) -> None:
        self._complain(at, f"{fault.message[0].upper()}{fault.message[1:]} ({hint})", fault.code)

    def _take_assets(self, assets: Any, texts: Mapping[str, Any]) -> dict[str, str]:
        """What each asset's reference is replaced by."""
        if assets is None:
            return {}
        if not isinstance(assets, Mapping):
            self._complain(("assets",), "Input should be an object", "dict_type")
            return {}
        everything = _strings(texts)
        names: dict[str, str] = {}
        for reference, asset in list(assets.items())[: MAX_IMAGES + 1]:
            at: Loc = ("assets", reference)
            if not reference or not any(reference in text for text in everything):
                self._complain(at, "No text refers to this asset", "unused_asset")
            elif not isinstance(asset, Mapping) or asset.get("type") != "image":
                self._complain(at, "Input should be an object with the type 'image'", "literal_error")
            elif asset.get("part") is not None:
                content = self._parts.get(str(asset["part"]))
                if content is None:
                    self._complain((*at, "part"), "There is no part of this name", "missing")
                else:
                    self._take_bytes(content, at)
            elif not isinstance(asset.get("data_base64"), str):
                self._complain(at, "Give data_base64, or the name of a part", "missing")
            else:
                self._take_bytes(decoded("".join(asset["data_base64"].split())), at)
            names[reference] = _name(len(self.images))
        return names


def _kind(content: bytes) -> str | None:
    return next((kind for kind, start in SIGNATURES.items() if content.startswith(start)), None)


def _too_large(size: int) -> Fault:
    return Fault(f"{size / 1e6:.1f} MB; an image may have {MAX_IMAGE_BYTES / 1e6:g} MB")


def _name(number: int) -> str:
    return f"[image {number}]"


def _strings(value: Any) -> list[str]:
    """Every string in a JSON value, without recursion: it may be nested too deep."""
    found, left = [], [value]
    while left:
        item = left.pop()
        if isinstance(item, str):
            found.append(item)
        elif isinstance(item, Mapping):
            left.extend(item.values())
        elif isinstance(item, list):
            left.extend(item)
    return found


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    """The value, which is not nested deep, with every reference replaced by what its image is called."""
    if isinstance(value, str):
        for reference, name in names.items():
            value = value.replace(reference, name)
        return value
    if isinstance(value, Mapping):
        return {key: _renamed(item, names) for key, item in value.items()}
    if isinstance(value, list):
        return [_renamed(item, names) for item in value]
    return value
