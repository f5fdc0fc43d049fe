"""Writers of TFRecord, RecordIO (MXNet) and OFRecord (OneFlow) files, without the frameworks.

TFRecord: length (8 bytes), its masked CRC-32C, an example in protocol buffers with the features
``image/class/label`` (from 0), ``image/encoded`` and ``image/format``, its masked CRC-32C
(tensorflow/core/lib/io/record_writer.h). RecordIO: 0xced7230a, piece and length, 24 bytes with the
label, the image, padded to a word of four bytes (dmlc/recordio.h, mxnet/recordio.py); a separate
index has number and offset of each record. OFRecord: length (8 bytes) and a map from names to
features (oneflow/core/record/record.proto).
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from core.checksums import masked_crc32c

from ...files.whole_files import write_whole
from .folders import SPLITS

TFRECORD, RECORDIO = "tfrecord", "recordio"
#: OFRecord of images; ``ofrecord`` has tokens (:mod:`.sequences`).
OFRECORD = "ofrecord_images"
FORMATS = (TFRECORD, RECORDIO, OFRECORD)
#: Images per TFRecord file. TensorFlow's guide recommends files of at least 100 MB, and several per
#: reader.
_EACH = 256
_MAGIC = struct.pack("<I", 0xCED7230A)


def parts(form: str, names: Iterable[str]) -> dict[str, list[str]]:
    """Return the record files of images with these ``names`` (``SPLIT/..``), with the names in
    each."""
    results: dict[str, list[str]] = {}
    for split in SPLITS:
        own = [name for name in names if name.startswith(f"{split}/")]
        if form == RECORDIO:
            results[f"{split}.rec"] = own
            continue
        count = -(-len(own) // _EACH)
        for number in range(count):
            file = f"{split}-{number:05d}-of-{count:05d}.tfrecord"
            if form == OFRECORD:
                file = f"{split}/part-{number:05d}"
            results[file] = own[number * _EACH : (number + 1) * _EACH]
    return results


def files(form: str, names: Iterable[str]) -> list[str]:
    """Return all files to write for images with these ``names``."""
    results = list(parts(form, names))
    if form == RECORDIO:
        results += [f"{split}.idx" for split in SPLITS]
    return results


@contextmanager
def writing(form: str, target: Path) -> Iterator[Callable[[int, bytes], None]]:
    """Yield a function that adds a record of a label and a JPEG file.
    The record file is complete or not there. Raises OSError."""
    offsets: list[int] = []
    target.parent.mkdir(parents=True, exist_ok=True)
    hidden = target.with_name(f".{target.name}")
    with open(hidden, "wb") as file:

        def add(label: int, image: bytes) -> None:
            offsets.append(file.tell())
            if form == TFRECORD:
                write_framed(file, example(label, image))
            elif form == OFRECORD:
                write_plain(file, oneflow_image(label, image))
            else:
                head = struct.pack("<IfQQ", 0, label, len(offsets) - 1, 0)
                _write_pieces(file, head + image)

        yield add
        file.flush()
        os.fsync(file.fileno())
    if form == RECORDIO:
        lines = (f"{number}\t{offset}\n" for number, offset in enumerate(offsets))
        write_whole(target.with_suffix(".idx"), "".join(lines))
    os.replace(hidden, target)


# ---- TFRecord -----------------------------------------------------------------------------------


def example(label: int, image: bytes) -> bytes:
    """Return a ``tf.train.Example`` of a JPEG file and its label, in protocol buffers."""
    features = {
        "image/class/label": field(3, _packed([label])),
        "image/encoded": field(1, field(1, image)),
        "image/format": field(1, field(1, b"JPEG")),
    }
    return field(1, named(features))


def of_numbers(numbers: Mapping[str, Sequence[int]]) -> bytes:
    """Return a ``tf.train.Example`` of lists of integers by name."""
    return field(1, named({name: field(3, _packed(number)) for name, number in numbers.items()}))


def oneflow_image(label: int, image: bytes) -> bytes:
    """Return an ``OFRecord`` of a JPEG file and its label, as in OneFlow's ImageNet."""
    parts = {"class/label": field(4, _packed([label])), "encoded": field(1, field(1, image))}
    return named(parts)


def of_oneflow(numbers: Mapping[str, Sequence[int]]) -> bytes:
    """Return OneFlow's ``OFRecord`` of 32-bit integers by name.
    Format: oneflow/core/record/record.proto."""
    return named({name: field(4, _packed(number)) for name, number in numbers.items()})


def named(features: Mapping[str, bytes]) -> bytes:
    """Return a map from names to features, in protocol buffers."""
    entries = (field(1, name.encode()) + field(2, feature) for name, feature in features.items())
    return b"".join(field(1, entry) for entry in entries)


def _packed(numbers: Sequence[int]) -> bytes:
    return field(1, b"".join(map(varint, numbers)))


def field(number: int, content: bytes) -> bytes:
    """Return a field of protocol buffers that holds bytes."""
    return varint(number << 3 | 2) + varint(len(content)) + content


def varint(value: int) -> bytes:
    """Return a number as protocol buffers write it: in base 128, least significant digit first."""
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])


def write_framed(file: BinaryIO, content: bytes) -> None:
    """Write a record in the framing of TFRecord."""
    length = struct.pack("<Q", len(content))
    file.write(length + checksum(length) + content + checksum(content))


def write_plain(file: BinaryIO, content: bytes) -> None:
    """Write a record in the framing of OFRecord."""
    file.write(struct.pack("<Q", len(content)) + content)


def checksum(content: bytes) -> bytes:
    """Return the masked CRC-32C of the content in four bytes, little-endian."""
    return struct.pack("<I", masked_crc32c(content))


# ---- RecordIO -----------------------------------------------------------------------------------


def _write_pieces(file: BinaryIO, content: bytes) -> None:
    """Write a record, cut wherever a word equals the magic number, which is left out.
    A reader that looks for the start of a record thus finds none inside a record."""
    pieces = _cut(content)
    for number, piece in enumerate(pieces):
        part = 0
        if len(pieces) > 1:
            part = 1 if number == 0 else 3 if number == len(pieces) - 1 else 2
        file.write(_MAGIC + struct.pack("<I", part << 29 | len(piece)))
        file.write(piece + bytes(-len(piece) % 4))


def _cut(content: bytes) -> Sequence[bytes]:
    found: list[bytes] = []
    first, offset = 0, content.find(_MAGIC)
    while offset >= 0:
        if offset % 4 == 0:
            found.append(content[first:offset])
            first = offset + 4
        offset = content.find(_MAGIC, offset + (4 if offset % 4 == 0 else 1))
    return [*found, content[first:]]
