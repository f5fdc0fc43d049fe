"""What can be told of the bytes of a JPEG file without decoding it, for decoders that fill up what
is missing, or end the process at it. Standard library; Python 3.7 to 3.13."""

from __future__ import annotations

import struct


def check_whole(content: bytes) -> bytes:
    """The bytes of a JPEG file that has its end marker. Raises ValueError for one that has not."""
    if not content.startswith(b"\xff\xd8"):
        raise ValueError("is no JPEG file")
    if content.rstrip(b"\x00")[-2:] != b"\xff\xd9":
        raise ValueError("the JPEG file is truncated: it has no end marker")
    return content


def components(content: bytes) -> int:
    """Of each pixel: 1 of a grey image, 3, 4 of CMYK (ITU T.81, B.2.2: markers SOF). Raises
    ValueError for a JPEG file that does not say so, or has no pixel."""
    place = 2
    while place + 10 <= len(content) and content[place] == 0xFF:
        marker = content[place + 1]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            if 0 in struct.unpack(">HH", content[place + 5 : place + 9]):
                break
            return content[place + 9]
        if marker == 0xFF:  # filled up
            place += 1
        elif 0xD0 <= marker <= 0xD9 or marker == 0x01:  # without a length
            place += 2
        else:
            place += 2 + int(struct.unpack(">H", content[place + 2 : place + 4])[0])
    raise ValueError("the JPEG file does not say how large its image is")
