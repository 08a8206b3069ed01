"""What makes a text an image that an engine can take, and that it is the same wherever images come in."""

from typing import Any

import pytest

from clef.decisions.images import MAX_IMAGE_BYTES, read_images
from clef.decisions.served import WireError, read_served
from clef.errors import InputError
from tests.fakes.pictures import png, url

PNG = png(2, 2)
JPEG = bytes.fromhex("ffd8ffe000104a46494600010100000100010000ffc0000b080002000201011100ffd9")


def test_images_stay_in_their_order() -> None:
    given = [url(PNG), url(JPEG, "image/jpeg"), url(JPEG, "image/jpg"), url(PNG + bytes(MAX_IMAGE_BYTES - len(PNG)))]
    assert read_images(given) == tuple(given)
    assert read_images(None) == ()


@pytest.mark.parametrize(
    ("image", "said"),
    [
        (7, "expected text"),
        ("https://example.org/a.png", "not fetched"),
        ("a.png", "not a data URL"),
        (url(b"RIFF", "image/webp"), "WEBP is not read"),
        ("data:image/png;base64,iVBOR*", "damaged"),
        (url(JPEG), "called a PNG and is none"),
        (url(PNG[:8]), "tells no size"),
        (url(png(60_000, 60_000)), "60000 x 60000 pixels; an image may have 25 million"),
        (url(PNG + bytes(MAX_IMAGE_BYTES)), "16.0 MB; an image may have 16 MB"),
    ],
)
def test_what_is_no_image_is_named_with_its_place_on_every_way_in(image: Any, said: str) -> None:
    with pytest.raises(InputError) as caught:
        read_images([url(PNG), image])
    (problem,) = caught.value.problems
    assert said in problem.message
    assert problem.column == "images[1]"
    body = {"model": "clef", "state": "s", "questions": {"a": {"type": "noul", "instructions": "?"}}}
    part = {"type": "image_url", "image_url": {"url": image}}
    with pytest.raises(WireError) as refused:
        read_served(body | {"state": [{"role": "user", "content": [part]}]})
    (detail,) = refused.value.details
    assert detail["loc"] == ["body", "state", 0, "content", 0]
    assert said.lower() in detail["msg"].lower()


def test_too_many_are_refused_whatever_they_are() -> None:
    with pytest.raises(InputError, match="9 images; at most 8"):
        read_images([url(PNG)] * 9)
    with pytest.raises(InputError, match="a list of images"):
        read_images("x")
