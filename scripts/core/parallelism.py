"""Parallelism: the distribution of a training step over devices.

A ``parallelism`` is a name, which makes all devices one group, or a product of names with the size
of each group. The product of the sizes is the number of devices: ``fsdp2xtensor2`` for four.

- ``data``: each device has the whole model and its own samples; gradients are averaged.
- ``fsdp``: each device has its own samples, but only a shard of parameters, gradients and optimizer
  state.
- ``tensor``: the devices of a group compute the same samples, each a shard of every layer.
- ``pipeline``: each device computes some of the layers for the same samples; micro-batches pass
  through them in the order 1F1B.

Devices that compute the same samples are a replica of the model.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Dict, NamedTuple

DATA, FSDP, TENSOR = "data", "fsdp", "tensor"
PIPELINE = "pipeline"
#: Names from the outermost to the innermost group: ranks of a tensor group are consecutive.
NAMES = (PIPELINE, DATA, FSDP, TENSOR)

#: Least number of batches (of replicas or micro-steps) that a reference averages over.
FEWEST_PARTS = 2

_LISTED = (DATA, FSDP, TENSOR, PIPELINE)
ALLOWED = f"{', '.join(_LISTED)}, or a product with the size of each group, such as fsdp2xtensor2"
_NAME = f"(?:{'|'.join(_LISTED)})"
#: Regular expression of a parallelism; it does not exclude a repeated name.
PATTERN = rf"^(?:{_NAME}|{_NAME}[1-9][0-9]{{0,5}}(?:x{_NAME}[1-9][0-9]{{0,5}})*)$"
_GROUP = re.compile(rf"({_NAME})([0-9]*)")


class Layout(NamedTuple):
    """Size of each group; 1 for an unused parallelism."""

    pipeline: int = 1
    data: int = 1
    fsdp: int = 1
    tensor: int = 1

    @property
    def replicas(self) -> int:
        """Number of device groups with their own samples."""
        return self.data * self.fsdp

    @property
    def devices(self) -> int:
        """Number of devices in all groups together."""
        return self.pipeline * self.replicas * self.tensor

    def replica(self, rank: int) -> int:
        """Return the index of the replica that ``rank`` belongs to."""
        return rank // self.tensor % self.replicas


def _sizes(text: str) -> Dict[str, int]:
    """Return the size of each group by name, 0 for a name without a size.

    Raises ValueError for anything but a parallelism.
    """
    groups = _GROUP.findall(text)
    if not re.match(PATTERN, text) or len({name for name, _ in groups}) < len(groups):
        raise ValueError(f"must be {ALLOWED}, not {text!r}")
    return {name: int(size or 0) for name, size in groups}


def form_of(text: str) -> str:
    """Return the names without sizes, as a framework declares them: ``fsdpxtensor``.

    Raises ValueError for anything but a parallelism.
    """
    names = _sizes(text)
    return "x".join(name for name in NAMES if name in names)


def checked(text: str) -> str:
    """Return ``text``. Raises ValueError for anything but a parallelism."""
    _sizes(text)
    return text


@lru_cache(maxsize=None)
def layout_of(text: str, devices: int) -> Layout:
    """Return the group sizes of a parallelism; a single name makes one group of all ``devices``.

    A product states its own number of devices. Raises ValueError for anything but a parallelism.
    """
    return Layout(**{name: size or devices for name, size in _sizes(text).items()})


def mismatch(text: str, devices: int) -> str:
    """Return why ``devices`` devices cannot have the parallelism; "" if they can."""
    needed = layout_of(text, devices).devices
    return "" if needed == devices else f"{text} needs {needed} devices, not {devices}"


def smallest(text: str) -> str:
    """Return the parallelism with two devices in each group.

    Its verification covers groups of any size.
    """
    return re.sub(r"[0-9]+", "2", text)
