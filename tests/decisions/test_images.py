"""What makes a text an image that an engine can take."""

import base64
from typing import Any

import pytest

from clef.decisions.images import MAX_IMAGE_BYTES, read_images
from clef.errors import InputError

PNG = b"\x89PNG\r\n\x1a\n"


def url(content: bytes, kind: str = "png") -> str:
    return f"data:image/{kind};base64,{base64.b64encode(content).decode()}"


def test_images_stay_in_their_order() -> None:
    given = [
        url(PNG + b"1"),
        url(b"\xff\xd8\xff1", "jpeg"),
        url(b"\xff\xd8\xff2", "jpg"),
        url(PNG + bytes(MAX_IMAGE_BYTES - 8)),
    ]
    assert read_images(given) == tuple(given)
    assert read_images(None) == ()


@pytest.mark.parametrize(
    ("image", "said"),
    [
        (7, "expected text"),
        ("https://example.org/a.png", "not fetched"),
        ("a.png", "not a data URL"),
        (url(b"RIFF", "webp"), "WEBP is not read"),
        ("data:image/png;base64,iVBOR*", "damaged"),
        (url(b"\xff\xd8\xff", "png"), "called a PNG and is none"),
        (url(PNG + bytes(MAX_IMAGE_BYTES)), "4.0 MB; an image may have 4 MB"),
    ],
)
def test_what_is_no_image_is_named_with_its_place(image: Any, said: str) -> None:
    with pytest.raises(InputError) as caught:
        read_images([url(PNG), image])
    (problem,) = caught.value.problems
    assert said in problem.message
    assert problem.column == "images[1]"


def test_too_many_are_refused_whatever_they_are() -> None:
    with pytest.raises(InputError, match="9 images; at most 8"):
        read_images([url(PNG)] * 9)
    with pytest.raises(InputError, match="a list of images"):
        read_images("x")
