"""How the devices of a run share the work of a training step.

A ``parallelism`` is a name, of which all devices are then one group, or a product of names with the
size of each group, whose product is the number of devices: ``fsdp2xtensor2`` on four.

- ``data``: each device has the whole model and samples of its own; gradients are averaged.
- ``fsdp``: samples of its own too, but only a part of parameters, gradients and optimizer state.
- ``tensor``: the devices of a group compute the same samples, each a part of every layer.
- ``pipeline``: the same samples, each device some of the layers; micro-batches go
  through them in the order 1F1B.
- ``interleaved``: the same with several groups of layers in each device: interleaved 1F1B.

Devices that compute the same samples are a replica of the model.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Dict, NamedTuple

DATA, FSDP, TENSOR = "data", "fsdp", "tensor"
PIPELINE, INTERLEAVED = "pipeline", "interleaved"
#: From the outermost to the innermost: ranks of a tensor group follow each other.
NAMES = (PIPELINE, INTERLEAVED, DATA, FSDP, TENSOR)

_LISTED = (DATA, FSDP, TENSOR, PIPELINE, INTERLEAVED)
ALLOWED = f"{', '.join(_LISTED)}, or a product with the size of each group, such as fsdp2xtensor2"
_NAME = f"(?:{'|'.join(_LISTED)})"
#: Regular expression of a parallelism, for schemas; it does not exclude a name that stands twice.
PATTERN = rf"^(?:{_NAME}|{_NAME}[1-9][0-9]{{0,5}}(?:x{_NAME}[1-9][0-9]{{0,5}})*)$"
_GROUP = re.compile(rf"({_NAME})([0-9]*)")


class Layout(NamedTuple):
    """The size of each group; 1 where the devices do not share the work in that way."""

    pipeline: int = 1
    interleaved: int = 1
    data: int = 1
    fsdp: int = 1
    tensor: int = 1

    @property
    def stages(self) -> int:
        """Devices that each have some of the layers, interleaved or not."""
        return self.pipeline * self.interleaved

    @property
    def replicas(self) -> int:
        """Groups of devices that have samples of their own."""
        return self.data * self.fsdp

    @property
    def devices(self) -> int:
        """Devices of all groups together."""
        return self.stages * self.replicas * self.tensor

    def replica(self, rank: int) -> int:
        """Return the number of the replica that ``rank`` is a part of."""
        return rank // self.tensor % self.replicas


def _sizes(text: str) -> Dict[str, int]:
    """Return the size of each group by name, 0 for a name without a size. Raises ValueError for
    anything but a parallelism."""
    groups = _GROUP.findall(text)
    if not re.match(PATTERN, text) or len({name for name, _ in groups}) < len(groups):
        raise ValueError(f"must be {ALLOWED}, not {text!r}")
    return {name: int(size or 0) for name, size in groups}


def form_of(text: str) -> str:
    """Return the names without sizes, as a framework declares them: ``fsdpxtensor``. Raises
    ValueError for anything but a parallelism."""
    names = _sizes(text)
    return "x".join(name for name in NAMES if name in names)


def checked(text: str) -> str:
    """Return ``text``. Raises ValueError for anything but a parallelism."""
    _sizes(text)
    return text


@lru_cache(maxsize=None)
def layout_of(text: str, devices: int) -> Layout:
    """Return the sizes of the groups; a single name makes one group of all ``devices``, a product
    states its own number of devices. Raises ValueError for anything but a parallelism."""
    return Layout(**{name: size or devices for name, size in _sizes(text).items()})


def mismatch(text: str, devices: int) -> str:
    """Return why a run of so many ``devices`` cannot have this parallelism, "" if it can."""
    needed = layout_of(text, devices).devices
    return "" if needed == devices else f"{text} is of {needed} devices, not of {devices}"


def smallest(text: str) -> str:
    """Return the same parallelism with two devices in each group: verifying it verifies groups of
    any size."""
    return re.sub(r"[0-9]+", "2", text)
