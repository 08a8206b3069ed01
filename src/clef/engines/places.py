"""Turns CLEF_UPSTREAM into the place where decisions are asked, and a Request into the body that is read there.

written                                            asked
http://HOST:PORT, …/v1, …/api/v1                   …/v1/systemone
…/v1/systemone, …/v2/systemone                     as it is
https://openrouter.ai                              https://openrouter.ai/api/v1/systemone
https://api.cloudflare.com/…/ai/run/@cf/…/MODEL    as it is: Workers AI has the model in its path

llama.cpp, SGLang, vLLM, Ollama, laya-serve, LM Studio and Lemonade read one body, so nobody asks which of them it is.
Hosted ones differ in their model's name, in how images come, and in that they have nothing but decisions to ask.
"""

import re
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit

from clef.decisions.examples import Request
from clef.decisions.wire import encode
from clef.errors import Rejected

ImageWay = Literal["images", "parts", "assets"]
_SYSTEMONE = re.compile(r"(/v\d+)?/systemone$")
_VERSION = re.compile(r"/v\d+$")
_ASSET = re.compile(r"data:image/(png|jpe?g);base64,(.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Place:
    """Where and how one server is asked."""

    root: str
    """What is shown, and what /health and /props are below; without a key."""
    decisions: str
    """Where decisions are posted."""
    is_hosted: bool = False
    """Whether it is a service that has no /health to ask."""
    model: str | None = None
    """Model that is asked for where none is set."""
    image_way: ImageWay = "images"
    """How images go: a list beside the state, parts of the state, or assets that the state names."""

    @property
    def models(self) -> str | None:
        """Where the names of its models are listed."""
        return self.decisions.removesuffix("systemone") + "models" if self.decisions.endswith("/systemone") else None


def place_of(address: str) -> Place:
    """The place that an address means."""
    address = address.rstrip("/")
    host = urlsplit(address).hostname
    if "/ai/run/" in address:
        return Place(address, address, is_hosted=True, model=address.rsplit("/", 1)[1])
    if host == "openrouter.ai":
        return Place(address, "https://openrouter.ai/api/v1/systemone", is_hosted=True, image_way="parts")
    if _SYSTEMONE.search(address):
        root, decisions = _SYSTEMONE.sub("", address), address
    elif _VERSION.search(address):
        root, decisions = _VERSION.sub("", address), f"{address}/systemone"
    else:
        root, decisions = address, f"{address}/v1/systemone"
    if host == "api.typesafe.ai":
        return Place(root, decisions, is_hosted=True, model="jev-latest", image_way="assets")
    return Place(root, decisions)


def body_for(place: Place, request: Request, model: str | None) -> tuple[dict[str, Any], dict[str, str]]:
    """The body for a request at a place, and the headers it needs besides. Raises Rejected for images that cannot
    go there."""
    body = encode(request)
    if model or place.model:
        body["model"] = model or place.model
    if not request.images or place.image_way == "images":
        return body, {}
    del body["images"]
    if place.image_way == "parts":
        text = {"type": "text", "text": body["state"]} if isinstance(body["state"], str) else body["state"]
        state = text if isinstance(text, list) else [text]
        body["state"] = [*state, *({"type": "image_url", "image_url": {"url": url}} for url in request.images)]
        return body, {}
    body["assets"] = {f"image-{n}": _asset(url) for n, url in enumerate(request.images, 1)}
    body["state"] = {"state": body["state"], "images": list(body["assets"])}
    return body, {"TypeSafe-Danger-Zone-Images": "true"}


def _asset(url: str) -> dict[str, str]:
    found = _ASSET.fullmatch(url)
    if not found:
        raise Rejected("the engine cannot read these images: it takes data URLs of PNG and JPEG only")
    return {"type": "image", "format": "jpeg" if found[1] == "jpg" else found[1], "data_base64": found[2]}
