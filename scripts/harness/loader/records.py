"""Images in record files: TensorFlow's TFRecord, and MXNet's RecordIO with its index.

This module lists records with labels and returns their bytes; frameworks' loaders read them by
themselves. A record is named FILE/NUMBER, as if its file were a folder; numbers are from 0.
Standard library and numpy; Python 3.7 to 3.13.

TFRecord: length (8 bytes), masked CRC-32C of it, an example in protocol buffers, masked CRC-32C of
that (tensorflow/core/lib/io/record_writer.h). RecordIO: 0xced7230a, length and part, content in
words of four bytes, which begins with MXNet's header of 24 bytes (dmlc/recordio.h,
mxnet/recordio.py).
"""

from __future__ import annotations

import functools
import mmap
import os
import struct
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from core.checksums import masked_crc32c

from harness.loader import examples

#: Features of an example in a TFRecord: bytes of a JPEG file, and the label from 0.
IMAGE, LABEL = "image/encoded", "image/class/label"
_MAGIC = 0xCED7230A
_BEHIND = "stands behind a record that cannot be read"


class Records(NamedTuple):
    """Records of a file: ``labels`` by number, and ``bad``: reason for each record that is left
    out, by number."""

    labels: Dict[int, int]
    bad: List[Tuple[int, str]]


# ---- TFRecord -----------------------------------------------------------------------------------


def tfrecord(file: str, checks_all: bool) -> Records:
    """List the records of a file. ``checks_all``: also check the checksum of each content.

    TensorFlow reads nothing after a bad record of a file, so the rest is bad as well."""
    check = check_content if checks_all else None
    return looked_at(file, frames_of(file), check, lambda *span: _example(*span)[0])


def looked_at(
    file: str,
    framed: Tuple[List[examples.Span], str],
    check: Optional[Callable[[Any, int, int], None]],
    look: Callable[[Any, int, int], int],
) -> Records:
    """Return the records of a file with their labels.

    ``framed``: offset and length of each, and why there are no more. ``check``: raises ValueError
    for a record after which nothing can be read. ``look``: returns the label from the whole
    content, offset and length, or raises ValueError."""
    frames, end = framed
    scanned = Records({}, [])
    with open(file, "rb") as stream:
        if not frames:
            return scanned._replace(bad=[(0, end or "the file holds no record")])
        with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
            for number, (offset, length) in enumerate(frames):
                try:
                    if check:
                        check(content, offset, length)
                except ValueError as error:
                    scanned.bad.append((number, str(error)))
                    scanned.bad.extend((n, _BEHIND) for n in range(number + 1, len(frames)))
                    break
                try:
                    scanned.labels[number] = look(content, offset, length)
                except ValueError as error:
                    scanned.bad.append((number, str(error)))
    if end:
        scanned.bad.append((len(frames), end))
    return scanned


@functools.lru_cache(maxsize=None)
def frames_of(file: str) -> Tuple[List[Tuple[int, int]], str]:
    """Return offset and length of each record's content, and why there are no more; "" at the
    end."""
    return framed(file, 12, 4, _checked_length)


def _checked_length(head: bytes) -> int:
    length, checksum = struct.unpack("<QI", head)
    if masked_crc32c(head[:8]) != checksum:
        raise ValueError("its length has a wrong checksum, and nothing behind it can be read")
    return int(length)


def framed(
    file: str, before: int, behind: int, length_of: Callable[[bytes], int]
) -> Tuple[List[examples.Span], str]:
    """Return offset and length of each record's content, and why there are no more; "" at the end.

    ``before`` and ``behind``: bytes around the content. ``length_of``: parses the bytes before it,
    and raises ValueError for an invalid length."""
    spans: List[examples.Span] = []
    offset, size = 0, os.path.getsize(file)
    with open(file, "rb") as stream:
        while offset < size:
            stream.seek(offset)
            head = stream.read(before)
            if len(head) < before:
                return spans, "the file is truncated within the head of the record"
            try:
                length = length_of(head)
            except ValueError as error:
                return spans, str(error)
            end = offset + before + length + behind
            if end > size:
                return spans, "the file is truncated within the record"
            spans.append((offset + before, length))
            offset = end
    return spans, ""


def check_content(content: Any, offset: int, length: int) -> None:
    (checksum,) = struct.unpack("<I", content[offset + length : offset + length + 4])
    if masked_crc32c(content[offset : offset + length]) != checksum:
        raise ValueError("its content has a wrong checksum")


def tfrecord_content(file: str, number: int) -> bytes:
    """Return a record's content after checking its checksum. Raises ValueError for a missing or bad
    one, and OSError."""
    content = read(file, frames_of(file), number, 4)
    length = len(content) - 4
    check_content(content, 0, length)
    return content[:length]


def read(file: str, frames: Tuple[List[Tuple[int, int]], str], number: int, behind: int) -> bytes:
    """Return a record's content and ``behind`` bytes after it. Raises ValueError for a missing one,
    and OSError.

    ``frames``: result of :func:`framed`."""
    spans, end = frames
    if number >= len(spans):
        raise ValueError(end or "there is no such record")
    offset, length = spans[number]
    with open(file, "rb") as stream:
        stream.seek(offset)
        content = stream.read(length + behind)
    if len(content) < length + behind:
        raise ValueError("the file is truncated within the record")
    return content


def tfrecord_image(file: str, number: int) -> bytes:
    """Return the JPEG file of a record. Raises as :func:`tfrecord_content`."""
    content = tfrecord_content(file, number)
    _, start, behind = _example(content, 0, len(content))
    return content[start:behind]


def _example(content: Any, start: int, length: int) -> Tuple[int, int, int]:
    """Return the label of an example, and begin and end of its image. Raises ValueError."""
    spans: Dict[str, examples.Span] = {}
    for span in examples.parts(content, (start, start + length), 1):
        spans.update(examples.features(content, span))
    image = _first(content, spans.get(IMAGE), 1)
    numbers = _first(content, spans.get(LABEL), 3, lists=True)
    if image is None or numbers is None:
        raise ValueError(f"the record has no {IMAGE if image is None else LABEL}")
    labels = [value for number, _, value in examples.fields(content, *numbers) if number == 1]
    packed = list(examples.parts(content, numbers, 1))
    if packed:
        labels = [examples.varint(content, packed[0][0], packed[0][1])[0]]
    if len(labels) != 1 or not isinstance(labels[0], int) or labels[0] >= 2**31:
        raise ValueError(f"{LABEL} is no label")
    return labels[0], image[0], image[1]


def _first(
    content: Any, feature: Optional[Tuple[int, int]], number: int, lists: bool = False
) -> Optional[Tuple[int, int]]:
    """Return the span of the list with this ``number`` of a feature or, unless ``lists``, of its
    first value."""
    for span in examples.parts(content, feature, number) if feature else ():
        if lists:
            return span
        return next(examples.parts(content, span, 1), None)
    return None


# ---- RecordIO -----------------------------------------------------------------------------------


def recordio(file: str) -> Records:
    """List the records of a ``.rec`` by its index. Raises OSError without one."""
    scanned, size = Records({}, []), os.path.getsize(file)
    with open(file, "rb") as stream:
        for number, offset in enumerate(_offsets(file)):
            try:
                stream.seek(offset)
                length = _length(stream.read(8))[1]
                if offset + 8 + length > size:
                    raise ValueError("the file is truncated within the record")
                label = _head(stream.read(24))[0]
                if not 0 <= label < 2**24 or label != int(label):
                    raise ValueError(f"{label} is no label")
                scanned.labels[number] = int(label)
            except ValueError as error:
                scanned.bad.append((number, str(error)))
    return scanned


@functools.lru_cache(maxsize=None)
def _offsets(file: str) -> List[int]:
    with open(os.path.splitext(file)[0] + ".idx", encoding="ascii") as stream:
        return [int(line.split("\t")[1]) for line in stream]


def recordio_image(file: str, number: int) -> bytes:
    """Return the JPEG file of a record. Raises ValueError for a missing or bad one, and OSError."""
    offsets = _offsets(file)
    if number >= len(offsets):
        raise ValueError("there is no such record")
    with open(file, "rb") as stream:
        stream.seek(offsets[number])
        part, content = _piece(stream)
        while part in (1, 2):  # it had the magic number in it, and was cut there
            part, more = _piece(stream)
            content += struct.pack("<I", _MAGIC) + more
    return content[_head(content)[1] :]


def _length(head: bytes) -> Tuple[int, int]:
    """Return a record's part and bytes. Parts: 0 of a whole record, 1 to 3 of a first, middle and
    last piece."""
    if len(head) < 8:
        raise ValueError("the file is truncated before the record")
    magic, word = struct.unpack("<II", head)
    if magic != _MAGIC:
        raise ValueError("where the index has a record there is none")
    return word >> 29, word & (1 << 29) - 1


def _piece(stream: Any) -> Tuple[int, bytes]:
    part, length = _length(stream.read(8))
    content = stream.read(length + -length % 4)
    if len(content) < length:
        raise ValueError("the file is truncated within the record")
    return part, content[:length]


def _head(content: bytes) -> Tuple[float, int]:
    """Return the label, and where the image begins."""
    if len(content) < 24:
        raise ValueError("the record has no head of MXNet")
    several, label = struct.unpack("<If", content[:8])
    if several:
        raise ValueError(f"the record has {several} labels, not one")
    return label, 24
