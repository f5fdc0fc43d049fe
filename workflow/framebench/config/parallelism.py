"""How the devices of a case share a training step, as ``scripts/harness/parallelism.py`` says."""

from __future__ import annotations

import math
import re
from functools import cache
from typing import NamedTuple

#: Each device has the whole model, and samples of its own; what a suite need not name.
DATA = "data"
#: Whose devices have samples of their own; those of the others are a replica of the model together.
_OF_SAMPLES = (DATA, "fsdp")
TENSOR = "tensor"
NAMES = (*_OF_SAMPLES, TENSOR, "pipeline", "interleaved")
ALLOWED = f"{', '.join(NAMES)}, or a product with the size of each group, such as fsdp2xtensor2"
_PART = rf"(?:{'|'.join(NAMES)})"
#: Of what a suite may say.
PATTERN = rf"^(?:{_PART}|{_PART}[1-9][0-9]{{0,5}}(?:x{_PART}[1-9][0-9]{{0,5}})*)$"


def names_of(parallelism: str) -> list[str]:
    """Of its groups."""
    return re.findall(_PART, parallelism)


class Sizes(NamedTuple):
    """Of the groups of a parallelism: all devices, and those of them that have samples of their
    own."""

    devices: int
    replicas: int


def size_of(name: str, parallelism: str, devices: int) -> int:
    """Devices of a group of this name; 1 where there is none."""
    counts = dict(re.findall(rf"({_PART})([0-9]*)", parallelism))
    return int(counts[name] or devices) if name in counts else 1


@cache
def sizes(parallelism: str, devices: int) -> Sizes:
    """Of a name all ``devices`` are one group; a product says its own number."""
    parts = re.findall(rf"({_PART})([0-9]*)", parallelism)
    counts = [(name, int(count or devices)) for name, count in parts]
    of_samples = [count for name, count in counts if name in _OF_SAMPLES]
    return Sizes(math.prod(count for _, count in counts), math.prod(of_samples))


def smallest(parallelism: str) -> str:
    """The same with groups of two devices each: what proves it for groups of any size."""
    return re.sub(r"[0-9]+", "2", parallelism)
