"""Turns the images and videos of a /v1/systemone body into data URLs, each checked before anything decodes it.

Three ways lead in: `images` (data URLs), `image_url` parts of messages in the state, and `assets`, whose bytes are in
the body or in parts beside it. What stands in the text for an image becomes "[image 1]", "[image 2]", …: an opaque
reference, new at each call, would be read by the model. Nothing is fetched and no file is opened.
"""

import base64
import binascii
import io
import re
from collections.abc import Callable, Mapping
from typing import Any

from clef.decisions.images import MAX_IMAGES
from clef.decisions.questions import MAX_DEPTH, too_deep

MAX_VIDEOS = 4
MAX_IMAGE_BYTES = 16 * 2**20
MAX_PIXELS = 25_000_000
KINDS = {b"\x89PNG\r\n\x1a\n": "png", b"\xff\xd8\xff": "jpeg", b"RIFF": "webp", b"GIF8": "gif"}
"""First bytes of the kinds of image that are read."""

AROUND = 5
"""Levels of a body around its texts."""

Loc = tuple[str | int, ...]
Complain = Callable[[Loc, str, str], None]
"""Takes note of a problem: its place, what is wrong, and its kind."""
_DATA_URL = re.compile(r"data:(image|video)/[\w.+-]+;base64,")


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
        self._take_list(body.get("images"), ("images",))
        self._take_videos(body.get("videos"))
        state = self._take_messages(body.get("state"))
        texts = {"state": state, "questions": body.get("questions")}
        names = self._take_assets(body.get("assets"), texts)
        if len(self.images) > MAX_IMAGES:
            self._complain(("images",), f"At most {MAX_IMAGES} images, not {len(self.images)}", "too_long")
        return _renamed(texts, names) if names and not too_deep(texts, MAX_DEPTH + AROUND) else texts

    def _take_list(self, images: Any, at: Loc) -> None:
        if images is None:
            return
        if not isinstance(images, list) or not all(isinstance(image, str) for image in images):
            self._complain(at, "Input should be an array of data URLs", "list_type")
            return
        for position, image in enumerate(images[: MAX_IMAGES + 1]):
            self._take_url(image, (*at, position))

    def _take_videos(self, videos: Any) -> None:
        if videos is None:
            return
        if not isinstance(videos, list) or not all(isinstance(video, str) for video in videos):
            self._complain(("videos",), "Input should be an array of data URLs", "list_type")
            return
        if len(videos) > MAX_VIDEOS:
            self._complain(("videos",), f"At most {MAX_VIDEOS} videos, not {len(videos)}", "too_long")
        for position, video in enumerate(videos):
            found = _DATA_URL.match(video)
            if not found or found[1] != "video":
                self._complain(
                    ("videos", position), "Only data URLs of videos are read: clef fetches nothing", "url_type"
                )
        self.videos = videos

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
        found = _DATA_URL.match(url) if isinstance(url, str) else None
        if not found or found[1] != "image":
            self._complain(at, "Only data URLs of images are read: clef fetches nothing", "url_type")
            return
        self._take_base64(url[found.end() :], at)

    def _take_base64(self, text: str, at: Loc) -> None:
        try:
            content = base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            self._complain(at, "This is not base64", "base64")
            return
        self._take_bytes(content, at)

    def _take_bytes(self, content: bytes, at: Loc) -> None:
        wrong, kind = fault_of(content)
        if wrong:
            self._complain(at, wrong, "image")
        self.images.append(f"data:image/{kind};base64,{base64.b64encode(content).decode()}")

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
                self._take_base64("".join(asset["data_base64"].split()), at)
            names[reference] = _name(len(self.images))
        return names


def fault_of(content: bytes) -> tuple[str | None, str]:
    """Why an image is not taken, or None; and its kind by its first bytes. Reads its header only."""
    import imagesize

    kind = next((kind for start, kind in KINDS.items() if content.startswith(start)), "")
    if not kind:
        return "This is no PNG, JPEG, WebP or GIF", "png"
    if len(content) > MAX_IMAGE_BYTES:
        return f"The image has more than {MAX_IMAGE_BYTES // 2**20} MiB", kind
    try:
        width, height = imagesize.get(io.BytesIO(content))
    except Exception:  # whatever a parser of foreign bytes may raise
        width = height = -1
    if width <= 0 or height <= 0:
        return "The image is damaged: its header tells no size", kind
    if width * height > MAX_PIXELS:
        return f"The image has {width} x {height} pixels; at most {MAX_PIXELS // 1_000_000} million are read", kind
    return None, kind


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
