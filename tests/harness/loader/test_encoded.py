"""Check that an image file is complete, without a decoder."""

from __future__ import annotations

import pytest
from harness.loader import encoded

from . import images as made

PHOTO = made.jpeg(1, 200, 150)
PNG = made.encoded(made.picture(2, 64, 48), "PNG")


def with_thumbnail(photo: bytes, thumbnail: bytes) -> bytes:
    """Insert a thumbnail in a segment APP1 after the start, where EXIF has it."""
    return photo[:2] + b"\xff\xe1" + (len(thumbnail) + 2).to_bytes(2, "big") + thumbnail + photo[2:]


@pytest.mark.parametrize(
    "content",
    [
        PHOTO,
        PHOTO + b"and more",
        with_thumbnail(PHOTO, made.jpeg(3)),
        made.encoded(made.picture(4, 64, 48), "JPEG", orientation=6),
        PNG,
        PNG + b"and more",
    ],
)
def test_what_is_whole_is_taken(content: bytes) -> None:
    assert encoded.whole_image(content) == content


@pytest.mark.parametrize("part", [0.3, 0.6, 0.99])
def test_the_end_of_a_thumbnail_is_not_that_of_the_photo(part: float) -> None:
    content = with_thumbnail(PHOTO, made.jpeg(3))
    with pytest.raises(ValueError, match="the JPEG file is truncated: it has no end marker"):
        encoded.whole_image(content[: int(part * len(content))])


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "is no JPEG file"),
        (b"GIF89a", "is no JPEG file"),
        (PHOTO[:2], "truncated"),
        (PHOTO[:-2], "truncated"),
        (PNG[:-6], "the PNG file is truncated: it has no end"),
    ],
)
def test_what_is_not_whole_is_refused(content: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        encoded.whole_image(content)
