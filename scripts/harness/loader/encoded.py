"""Check the bytes of image files without decoding, for decoders that fill up missing data or end
the process.

Standard library; Python 3.7 to 3.13. Sources: ITU T.81 (JPEG), B.1 and B.2; W3C, *Portable Network
Graphics*, 5.2 and 11.2.
"""

from __future__ import annotations

import struct
from typing import Iterator, Tuple

_START_OF_SCAN, _END = 0xDA, b"\xff\xd9"
_PNG, _PNG_END = b"\x89PNG\r\n\x1a\n", b"IEND\xaeB`\x82"
#: Position of width and height in a PNG file.
_PNG_SIZE = 16


def whole_jpeg(content: bytes) -> bytes:
    """Return the bytes of a JPEG file that has its end marker. Raises ValueError for a truncated
    file.

    Data after the marker are allowed, as in photos of some phones."""
    if not content.startswith(b"\xff\xd8"):
        raise ValueError("is no JPEG file")
    scan = next((offset for marker, offset in _segments(content) if marker == _START_OF_SCAN), None)
    # A thumbnail in the header has an end marker too.
    if scan is None or content.find(_END, scan) < 0:
        raise ValueError("the JPEG file is truncated: it has no end marker")
    return content


def whole_image(content: bytes) -> bytes:
    """Return the bytes of a JPEG or PNG file that is complete. Raises ValueError for a truncated
    one.

    One image of ImageNet is a PNG file named .JPEG."""
    if not content.startswith(_PNG):
        return whole_jpeg(content)
    if _PNG_END not in content:
        raise ValueError("the PNG file is truncated: it has no end")
    return content


def size_of(content: bytes) -> Tuple[int, int]:
    """Return height and width in pixels of a JPEG or PNG file. Raises ValueError for a file without
    them, or without a pixel."""
    if content.startswith(_PNG) and len(content) >= _PNG_SIZE + 8:
        width, height = struct.unpack(">II", content[_PNG_SIZE : _PNG_SIZE + 8])
        return int(height), int(width)
    for marker, offset in _segments(content):
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):  # SOF, B.2.2
            if offset + 10 > len(content):
                break
            height, width = struct.unpack(">HH", content[offset + 5 : offset + 9])
            if not (height and width):
                break
            return int(height), int(width)
    raise ValueError("the JPEG file does not say how large its image is")


def _segments(content: bytes) -> Iterator[Tuple[int, int]]:
    """Yield markers of a JPEG file up to its first scan, with their positions."""
    offset = 2
    while offset + 4 <= len(content) and content[offset] == 0xFF:
        marker = content[offset + 1]
        if marker == 0xFF:  # filled up
            offset += 1
            continue
        yield marker, offset
        if marker == _START_OF_SCAN:
            return
        if 0xD0 <= marker <= 0xD9 or marker == 0x01:  # without a length
            offset += 2
        else:
            offset += 2 + int(struct.unpack(">H", content[offset + 2 : offset + 4])[0])
