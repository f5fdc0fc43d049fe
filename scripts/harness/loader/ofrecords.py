"""Images in OneFlow's OFRecord: list of records with labels, and the bytes of an image.

OFRecord is a sequence of length (8 bytes, little-endian) and content, without a checksum. The
content is a map from names to features (oneflow/core/record/record.proto). A record is FILE/NUMBER,
as in :mod:`harness.loader.records`. Standard library; Python 3.7 to 3.13.
"""

from __future__ import annotations

import functools
import os
import re
import struct
from typing import Any, Dict, List, Tuple

from harness.loader import encoded, examples, records

#: Features of a record as in OneFlow's ImageNet: bytes of a JPEG file, and the label from 0.
IMAGE, LABEL = "encoded", "class/label"
#: Prefix of file names.
PART = "part-"


@functools.lru_cache(maxsize=None)
def frames_of(file: str) -> Tuple[List[examples.Span], str]:
    """Return offset and length of each record's content, and why there are no more; "" at the
    end."""
    return records.framed(file, 8, 0, lambda head: int(struct.unpack("<Q", head)[0]))


def content(file: str, number: int) -> bytes:
    """Return the content of a record. Raises ValueError for a missing one, and OSError."""
    return records.read(file, frames_of(file), number, 0)


def image(file: str, number: int) -> bytes:
    """Return the image of a record. Raises as :func:`content`."""
    record = content(file, number)
    _, begin, end = _parsed(record, (0, len(record)))
    return record[begin:end]


def listed(file: str) -> records.Records:
    """Return label and defects of each record.

    All records of a truncated file are left out, because OneFlow ends the process there."""

    def look(whole: Any, offset: int, length: int) -> int:
        label, begin, end = _parsed(whole, (offset, offset + length))
        check(bytes(whole[begin:end]))
        return label

    framed = frames_of(file)
    scanned = records.looked_at(file, framed, None, look)
    if not framed[1] or not scanned.labels:
        return scanned
    behind = "stands in a file that is truncated, which OneFlow does not read"
    bad = [*scanned.bad, *((number, behind) for number in scanned.labels)]
    return records.Records({}, sorted(bad, key=lambda entry: entry[1] == behind))


def check(content: bytes) -> None:
    """Raise ValueError for a JPEG file that OneFlow's decoder must not get.

    OneFlow 0.9.0 fills up a truncated image, ends the process at an invalid one, changes the values
    of grey images, and writes beyond its memory for CMYK."""
    components = encoded.components(encoded.whole_jpeg(content))
    if components != 3:
        raise ValueError(
            f"the JPEG file has {components} components; OneFlow's decoder reads three"
        )


def _parsed(whole: Any, place: examples.Span) -> Tuple[int, int, int]:
    """Return label, and begin and end of the image. Raises ValueError."""
    entries: Dict[str, examples.Span] = dict(examples.features(whole, place))
    images = [
        span for part in _lists(whole, entries, IMAGE, 1) for span in examples.parts(whole, part, 1)
    ]
    labels = [
        number
        for kind in (4, 5)  # of 32 bits, of 64
        for part in _lists(whole, entries, LABEL, kind)
        for number in examples.numbers(whole, part).tolist()
    ]
    if len(images) != 1:
        raise ValueError(f"the record has no {IMAGE}")
    if len(labels) != 1 or not 0 <= labels[0] < 2**31:
        raise ValueError(f"{LABEL} is no label" if labels else f"the record has no {LABEL}")
    return labels[0], images[0][0], images[0][1]


def _lists(
    whole: Any, entries: Dict[str, examples.Span], name: str, kind: int
) -> List[examples.Span]:
    return list(examples.parts(whole, entries[name], kind)) if name in entries else []


def is_part(file: str) -> bool:
    """Return whether a file is named as OneFlow names its own."""
    return bool(re.fullmatch(PART + r"\d+", os.path.basename(file))) and os.path.isfile(file)
