"""Megatron's token files: ``NAME.bin`` has the tokens of all documents, and ``NAME.idx`` where each
begins (megatron/core/datasets/indexed_dataset.py).

The index is little-endian: ``MMIDIDX\\0\\0``, version 1 (8 bytes), a code of the tokens' type (1
byte), the number of sequences and of document entries (8 bytes each); then of each sequence its
tokens (int32) and its first byte (int64), and the first sequence of each document with one entry
after the last (int64). Modes of sequences, which may follow, are not read.

Standard library and numpy; Python 3.7 to 3.13.
"""

from __future__ import annotations

import os
import struct
from typing import Any, NamedTuple

from core import bounded

from harness.samples.folder import BadData

MAGIC, VERSION = b"MMIDIDX\0\0", 1
#: Dtypes by code. Codes 6 and 7 are float64 and float32, which are no tokens.
DTYPES = {1: "uint8", 2: "int8", 3: "int16", 4: "int32", 5: "int64", 8: "uint16"}
_HEAD = struct.Struct("<9sQBQQ")


class Indexed(NamedTuple):
    """Content of an index. ``dtype``: of the tokens. ``length``: tokens in all. ``documents``:
    their number."""

    dtype: str
    length: int
    documents: int


def read(index: str, path: str) -> Indexed:
    """Return the content of an ``index``, checked against the tokens at ``path``. Raises
    :class:`BadData` where one of them is unreadable, truncated or inconsistent."""
    import numpy as np

    try:
        with bounded.open_to_read(index) as file:
            content = file.read(_HEAD.size)
            if content[: len(MAGIC)] == MAGIC:  # whatever else it is may be of any size
                content += file.read()
        size = os.path.getsize(path)
    except OSError as error:
        raise BadData(f"{error.filename}: {error.strerror}") from None
    if content[: len(MAGIC)] != MAGIC[: len(content)] or not content:
        raise BadData(f"{index}: begins with {content[:9]!r}, an index of Megatron with {MAGIC!r}")
    if len(content) < _HEAD.size:
        raise BadData(f"{index}: is truncated: {len(content)} bytes, its head has {_HEAD.size}")
    _, version, code, sequences, entries = _HEAD.unpack_from(content)
    if version != VERSION:
        raise BadData(f"{index}: is of version {version}; read is version {VERSION}")
    if code not in DTYPES:
        known = ", ".join(f"{number} ({name})" for number, name in DTYPES.items())
        raise BadData(f"{index}: its tokens have the type {code}; read are {known}")
    needed = _HEAD.size + 12 * sequences + 8 * entries
    if len(content) < needed:
        raise BadData(
            f"{index}: is truncated: {len(content)} bytes, where {sequences} sequences and "
            f"{entries} entries of documents take {needed}"
        )
    offset = _HEAD.size
    lengths = np.frombuffer(content, "<i4", sequences, offset).astype(np.int64)
    pointers = np.frombuffer(content, "<i8", sequences, offset + 4 * sequences)
    documents = np.frombuffer(content, "<i8", entries, offset + 12 * sequences)
    _check(index, lengths, pointers, documents, np.dtype(DTYPES[code]).itemsize)
    length = int(lengths.sum())
    expected = length * np.dtype(DTYPES[code]).itemsize
    if size != expected:
        raise BadData(
            f"{path}: holds {size} bytes, where {index} has {length} tokens of {DTYPES[code]}, "
            f"which are {expected}"
        )
    return Indexed(DTYPES[code], length, max(0, entries - 1))


def _check(index: str, lengths: Any, pointers: Any, documents: Any, each: int) -> None:
    import numpy as np

    if len(lengths) and lengths.min() < 0:
        raise BadData(f"{index}: sequence {int(lengths.argmin())} has {lengths.min()} tokens")
    begins = each * (np.cumsum(lengths) - lengths)
    wrong = np.flatnonzero(begins != pointers)
    if len(wrong):
        first = int(wrong[0])
        raise BadData(
            f"{index}: sequence {first} begins at byte {pointers[first]}, where those before it "
            f"end at {begins[first]}"
        )
    rises = len(documents) > 0 and documents[0] == 0 and bool((np.diff(documents) >= 0).all())
    if not rises or documents[-1] != len(lengths):
        raise BadData(
            f"{index}: its documents do not go from sequence 0 to behind the last, {len(lengths)}"
        )
