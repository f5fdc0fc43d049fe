"""Images in OneFlow's OFRecord: which records there are, their labels, and the bytes of one.

OFRecord: length (8 bytes, little-endian) and content, one behind the other, without a checksum; the
content is a map from names to features (oneflow/core/record/record.proto). A record is
FILE/NUMBER, as of :mod:`harness.loader.records`. Standard library; Python 3.7 to 3.13.
"""

from __future__ import annotations

import functools
import os
import re
import struct
from typing import Any, Dict, List, Tuple

from harness.loader import encoded, examples, records

#: Of a record: the bytes of a JPEG file, and the label, from 0, as OneFlow's ImageNet has them.
IMAGE, LABEL = "encoded", "class/label"
#: How names of files begin.
PART = "part-"


@functools.lru_cache(maxsize=None)
def frames_of(file: str) -> Tuple[List[examples.Span], str]:
    """Offset and length of each record's content, and why there are no more; "" at the end."""
    return records.framed(file, 8, 0, lambda head: int(struct.unpack("<Q", head)[0]))


def content(file: str, number: int) -> bytes:
    """Of a record. Raises ValueError for one that is not there, and OSError."""
    return records.read(file, frames_of(file), number, 0)


def image(file: str, number: int) -> bytes:
    """Of a record. Raises as :func:`content`."""
    found = content(file, number)
    _, begin, end = _parsed(found, (0, len(found)))
    return found[begin:end]


def listed(file: str) -> records.Records:
    """Of each record the label, and whether OneFlow can decode its image. At a file that is
    truncated it ends the process: all of that is left out."""

    def look(whole: Any, offset: int, length: int) -> int:
        label, begin, end = _parsed(whole, (offset, offset + length))
        check(bytes(whole[begin:end]))
        return label

    framed = frames_of(file)
    found = records.looked_at(file, framed, None, look)
    if not framed[1] or not found.labels:
        return found
    behind = "stands in a file that is truncated, which OneFlow does not read"
    bad = [*found.bad, *((number, behind) for number in found.labels)]
    return records.Records({}, sorted(bad, key=lambda one: one[1] == behind))


def check(content: bytes) -> None:
    """Raises ValueError for a JPEG file that is not given to OneFlow's decoder. It fills up one
    that is truncated, ends the process at what is none, gives other levels of a grey image, and
    writes beyond its memory for CMYK (0.9.0)."""
    found = encoded.components(encoded.whole_jpeg(content))
    if found != 3:
        raise ValueError(f"the JPEG file has {found} components; OneFlow's decoder reads three")


def _parsed(whole: Any, place: examples.Span) -> Tuple[int, int, int]:
    """Label, and where the image begins and ends. Raises ValueError."""
    found: Dict[str, examples.Span] = dict(examples.features(whole, place))
    images = [
        one for part in _lists(whole, found, IMAGE, 1) for one in examples.parts(whole, part, 1)
    ]
    labels = [
        number
        for kind in (4, 5)  # of 32 bits, of 64
        for part in _lists(whole, found, LABEL, kind)
        for number in examples.numbers(whole, part).tolist()
    ]
    if len(images) != 1:
        raise ValueError(f"the record has no {IMAGE}")
    if len(labels) != 1 or not 0 <= labels[0] < 2**31:
        raise ValueError(f"{LABEL} is no label" if labels else f"the record has no {LABEL}")
    return labels[0], images[0][0], images[0][1]


def _lists(
    whole: Any, found: Dict[str, examples.Span], name: str, kind: int
) -> List[examples.Span]:
    return list(examples.parts(whole, found[name], kind)) if name in found else []


def is_part(file: str) -> bool:
    """Whether it is a file that is named as OneFlow names its own."""
    return bool(re.fullmatch(PART + r"\d+", os.path.basename(file))) and os.path.isfile(file)
