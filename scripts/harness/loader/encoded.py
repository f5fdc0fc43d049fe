"""Check the bytes of image files without decoding, for decoders that fill up missing data or end
the process.

Standard library; Python 3.7 to 3.13. Sources: ITU T.81 (JPEG), B.1 and B.2; W3C, *Portable Network
Graphics*, 5.2 and 11.2.
"""

from __future__ import annotations

import struct
from typing import Dict, Tuple

_JPEG, _SCAN, _END = b"\xff\xd8", 0xDA, b"\xff\xd9"
_PNG, _PNG_END = b"\x89PNG\r\n\x1a\n", b"IEND\xaeB`\x82"
#: Position of width and height in a PNG file.
_PNG_SIZE = 16


def whole_image(content: bytes) -> bytes:
    """Return the bytes of a JPEG or PNG file that is complete. Raises ValueError for a truncated
    one.

    One image of ImageNet is a PNG file named .JPEG. Data after the end are allowed, as in photos of
    some phones."""
    if content.startswith(_PNG):
        if _PNG_END not in content:
            raise ValueError("the PNG file is truncated: it has no end")
        return content
    if not content.startswith(_JPEG):
        raise ValueError("is not a JPEG file")
    # A thumbnail in the header has an end marker too.
    if content.find(_END, _markers(content).get(_SCAN, len(content))) < 0:
        raise ValueError("the JPEG file is truncated: it has no end marker")
    return content


def size_of(content: bytes) -> Tuple[int, int]:
    """Return height and width in pixels of a JPEG or PNG file. Raises ValueError for a file without
    them, or without a pixel."""
    if content.startswith(_PNG) and len(content) >= _PNG_SIZE + 8:
        width, height = struct.unpack(">II", content[_PNG_SIZE : _PNG_SIZE + 8])
        return int(height), int(width)
    for marker, offset in _markers(content).items():
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):  # SOF, B.2.2
            height, width = struct.unpack(">HH", content[offset + 5 : offset + 9].ljust(4, b"\0"))
            if height and width:
                return int(height), int(width)
    raise ValueError("the JPEG file does not say how large its image is")


def _markers(content: bytes) -> Dict[int, int]:
    """Return the positions of the markers of a JPEG file up to its first scan."""
    places: Dict[int, int] = {}
    offset = 2
    while offset + 4 <= len(content) and content[offset] == 0xFF and _SCAN not in places:
        marker = content[offset + 1]
        places[marker] = offset
        # padding bytes of 0xFF may precede the length of a marker
        length = 2 + int.from_bytes(content[offset + 2 : offset + 4], "big")
        offset += 1 if marker == 0xFF else length
    return places
