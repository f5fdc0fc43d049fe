"""Colour number of each framework, the same in every report."""

from __future__ import annotations

import zlib

#: Number of colours.
COUNT = 9
#: Colours of the built-in frameworks.
_OWN = {
    "jax": 0,
    "mxnet": 1,
    "oneflow": 2,
    "paddle": 3,
    "pytorch": 4,
    "tensorflow": 5,
    "tensorflow1": 6,
    "megengine": 7,
    "mindspore": 8,
}


def number(framework: str) -> int:
    """Return the colour number of a framework, from 0 to COUNT - 1.

    Other frameworks get one by a checksum of the name, so that two may share a colour."""
    return _OWN.get(framework, zlib.crc32(framework.encode()) % COUNT)
