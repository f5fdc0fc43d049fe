"""CRC-32C (Castagnoli) of record files and checkpoints, with numpy."""

from __future__ import annotations

import functools
from typing import Any

#: Block size in bytes.
_BLOCK = 1024


def masked_crc32c(content: bytes) -> int:
    """Return the masked CRC-32C of at least four bytes, as TFRecord stores it with its data
    (tensorflow/core/lib/hash/crc32c.h). Raises ValueError for fewer."""
    checksum = crc32c(content)
    return ((checksum >> 15 | checksum << 17) + 0xA282EAD8) & 0xFFFFFFFF


def crc32c(content: bytes) -> int:
    """Return the CRC-32C of at least four bytes, combined from blocks. Raises ValueError for
    fewer."""
    import numpy as np

    if len(content) < 4:
        raise ValueError(f"has {len(content)} bytes; allowed: at least 4")
    table, blocks = _table(), -(-len(content) // _BLOCK)
    levels = np.zeros(blocks * _BLOCK, np.uint8)
    begin = len(levels) - len(content)
    levels[begin:] = np.frombuffer(content, np.uint8)
    levels[begin : begin + 4] ^= np.uint8(255)
    each = table[np.arange(_BLOCK), levels.reshape(blocks, _BLOCK)]
    state, carried = 0, table[:4].tolist()
    for part in np.bitwise_xor.reduce(each, axis=1).tolist():
        for index in range(4):
            part ^= carried[index][state >> 8 * index & 255]
        state = part
    return int(state ^ 0xFFFFFFFF)


@functools.lru_cache(maxsize=None)
def _table() -> Any:
    """Return uint32 (_BLOCK, 256): checksum of each byte at each position of a block of zeros."""
    import numpy as np

    first = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        first = np.where(first & np.uint32(1), np.uint32(0x82F63B78), 0) ^ (first >> np.uint32(1))
    rows = [first.astype(np.uint32)]
    for _ in range(_BLOCK - 1):
        last = rows[-1]
        rows.append((last >> np.uint32(8)) ^ rows[0][last & np.uint32(255)])
    return np.stack(rows[::-1])
