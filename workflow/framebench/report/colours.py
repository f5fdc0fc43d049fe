"""The colour of each framework: the same in every report, whichever frameworks are in it."""

from __future__ import annotations

import zlib

#: How many colours there are.
COUNT = 8
#: Of the frameworks that ship; the last colour is nobody's.
_OWN = {
    "jax": 0,
    "mxnet": 1,
    "oneflow": 2,
    "paddle": 3,
    "pytorch": 4,
    "tensorflow": 5,
    "tensorflow1": 6,
}


def number(framework: str) -> int:
    """From 0 to COUNT - 1. One that does not ship has that of a digest of its name, which another
    may have too."""
    return _OWN.get(framework, zlib.crc32(framework.encode()) % COUNT)
