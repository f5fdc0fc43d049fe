"""Read TensorFlow checkpoints (``NAME.index`` and ``NAME.data-00000-of-00001``) without TensorFlow,
with the names of Google's BERT and ELECTRA.

The index is a LevelDB table (tensorflow/core/lib/io/format.cc): blocks of sorted names, each
prefix-compressed against the one before, and a footer with the position of the index block. Each
name has a protocol buffer (tensorflow/core/protobuf/tensor_bundle.proto) with dtype, shape, data
file and offset of the array. TensorFlow writes indexes without compression.
"""

from __future__ import annotations

import os
import re
import struct
from typing import Any, Dict, Iterator, NamedTuple, Tuple

from core import bounded
from core.checksums import masked_crc32c
from tasks import TaskError

from harness.learning.stored import Stored
from harness.loader.examples import fields, varint

_INDEX = ".index"
_FOOTER, _MAGIC = 48, 0xDB4775248B80FB57
#: Bytes after a block: its compression, and its checksum.
_TRAILER = 5
#: TensorFlow's numbers of dtypes, as numpy names them; bfloat16 is the upper half of a float32.
_DTYPES = {1: "<f4", 2: "<f8", 19: "<f2", 14: "<u2"}
_BFLOAT16 = 14

#: Last parts of names that differ in Hugging Face's.
_LAST = {"kernel": "weight", "output_weights": "weight", "output_bias": "bias"}
#: Whole names of heads, and Hugging Face's.
_HEADS = {
    "cls/squad/output_weights": "qa_outputs.weight",
    "cls/squad/output_bias": "qa_outputs.bias",
}


class _Entry(NamedTuple):
    dtype: int
    shape: Tuple[int, ...]
    shard: int
    offset: int
    size: int
    checksum: int


def is_checkpoint(path: str) -> bool:
    """Return whether ``path`` is the index of a checkpoint, or its name without a suffix."""
    return path.endswith(_INDEX) or os.path.isfile(path + _INDEX)


def open_checkpoint(path: str) -> Stored:
    """Open a checkpoint. Raises :class:`TaskError` where it is none, and OSError."""
    stem = path[: -len(_INDEX)] if path.endswith(_INDEX) else path
    index = stem + _INDEX
    content = bounded.read_bytes(index)
    try:
        places = dict(_entries(content))
        shards = _shards(content, places.pop(b"", (0, 0)))
        entries = {name.decode("utf-8"): _entry(content, span) for name, span in places.items()}
    except (ValueError, IndexError, struct.error) as error:
        raise TaskError(f"{index}: is no index of a TensorFlow checkpoint: {error}") from None
    files = [f"{stem}.data-{number:05d}-of-{shards:05d}" for number in range(shards)]

    def array(name: str) -> Any:
        return _array(files, name, entries[name])

    return Stored(sorted(entries), array, hugging_face, [index, *files])


def hugging_face(name: str) -> str:
    """Return Hugging Face's name of an array of Google's BERT or ELECTRA."""
    if name in _HEADS:
        return _HEADS[name]
    parts = re.sub(r"/layer_(\d+)/", r"/layer/\1/", name).split("/")
    if parts[-1].endswith("_embeddings"):
        parts.append("weight")
    parts[-1] = _LAST.get(parts[-1], parts[-1])
    return ".".join(parts)


def _entries(content: bytes) -> Iterator[Tuple[bytes, Tuple[int, int]]]:
    """Yield each name, with begin and end of its message."""
    if len(content) < _FOOTER or struct.unpack("<Q", content[-8:])[0] != _MAGIC:
        raise ValueError("its last bytes are not those of one")
    offset = len(content) - _FOOTER
    for _ in range(2):  # where the block about blocks is, which is not used here
        _, offset = varint(content, offset, len(content))
    for _, (begin, end) in _block(content, *_handle(content, offset)):
        yield from _block(content, *_handle(content, begin, end))


def _handle(content: bytes, place: int, end: int = 0) -> Tuple[int, int]:
    """Return begin and size of a block."""
    offset, place = varint(content, place, end or len(content))
    size, _ = varint(content, place, end or len(content))
    return offset, size


def _block(content: bytes, begin: int, size: int) -> Iterator[Tuple[bytes, Tuple[int, int]]]:
    """Yield each key of a block, with begin and end of its value."""
    end = begin + size
    trailer = content[end : end + _TRAILER]
    if len(trailer) < _TRAILER:
        raise ValueError("it is truncated")
    if masked_crc32c(content[begin : end + 1]) != struct.unpack("<I", trailer[1:])[0]:
        raise ValueError("a block has a wrong checksum")
    if trailer[0]:
        raise ValueError("it is compressed, which TensorFlow does not do")
    (restarts,) = struct.unpack("<I", content[end - 4 : end])
    end -= 4 * (restarts + 1)
    key, offset = b"", begin
    while offset < end:
        shared, offset = varint(content, offset, end)
        own, offset = varint(content, offset, end)
        length, offset = varint(content, offset, end)
        key = key[:shared] + content[offset : offset + own]
        offset += own + length
        yield key, (offset - length, offset)


def _shards(content: bytes, header: Tuple[int, int]) -> int:
    """Return the number of data files."""
    said = {number: value for number, _, value in fields(content, *header)}
    if not said.get(1):
        raise ValueError("it does not say how many data files there are")
    if said.get(2):
        raise ValueError("its arrays are big-endian")
    return int(said[1])


def _entry(content: bytes, span: Tuple[int, int]) -> _Entry:
    numbers: Dict[int, int] = {}
    shape: Tuple[int, ...] = ()
    for number, wire, value in fields(content, *span):
        if wire == 0:
            numbers[number] = value
        elif number == 2:
            shape = tuple(_extents(content, value))
        elif number == 6:
            (numbers[6],) = struct.unpack("<I", content[value[0] : value[1]])
    return _Entry(numbers.get(1, 0), shape, *(numbers.get(number, 0) for number in (3, 4, 5, 6)))


def _extents(content: bytes, shape: Tuple[int, int]) -> Iterator[int]:
    for number, _, dimension in fields(content, *shape):
        if number == 2:
            said = {inner: value for inner, _, value in fields(content, *dimension)}
            yield said.get(1, 0)


def _array(files: Any, name: str, entry: _Entry) -> Any:
    """Return an array as float32. Dense kernels of TensorFlow are (in, out)."""
    import numpy as np

    path = files[entry.shard] if entry.shard < len(files) else "?"
    try:
        dtype = _DTYPES[entry.dtype]
        with bounded.open_to_read(path) as file:
            file.seek(entry.offset)
            content = file.read(entry.size)
        array = np.frombuffer(content, dtype).reshape(entry.shape)
        if masked_crc32c(content) != entry.checksum:
            raise ValueError("its content has a wrong checksum")
    except KeyError:
        raise TaskError(f"{path}: {name} has a dtype that no weight has") from None
    except ValueError as error:
        raise TaskError(f"{path}: {name} cannot be read: {error}") from None
    if entry.dtype == _BFLOAT16:
        array = (array.astype(np.uint32) << 16).view(np.float32)
    array = array.astype(np.float32)
    return array.T if name.endswith("/kernel") else array
