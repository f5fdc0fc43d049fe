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
from typing import Dict, NamedTuple

DATA, FSDP, TENSOR = "data", "fsdp", "tensor"
PIPELINE, INTERLEAVED = "pipeline", "interleaved"
#: From the outermost to the innermost: ranks of a tensor group follow each other.
NAMES = (PIPELINE, INTERLEAVED, DATA, FSDP, TENSOR)

_PART = re.compile(r"^([a-z]+?)([1-9][0-9]{0,5})?$")
ALLOWED = (
    f"{DATA}, {FSDP}, {TENSOR}, {PIPELINE}, {INTERLEAVED}, or a product such as fsdp2xtensor2, "
    "which says how many devices each group has"
)


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

    def replica(self, rank: int) -> int:
        """Of which ``rank`` is a part."""
        return rank // self.tensor % self.replicas


def _sizes(text: str) -> Dict[str, int]:
    """By name; 0 of a name without a size. Raises ValueError for what is no parallelism."""
    found: Dict[str, int] = {}
    parts = text.split("x")
    for part in parts:
        match = _PART.match(part)
        name, size = match.groups() if match else ("", None)
        if name not in NAMES or name in found or (size is None and len(parts) > 1):
            raise ValueError(f"must be {ALLOWED}, not {text!r}")
        found[name] = int(size or 0)
    return found


def form_of(text: str) -> str:
    """Its names without sizes, as a framework declares which it has: ``fsdpxtensor``. Raises
    ValueError for what is no parallelism."""
    names = _sizes(text)
    return "x".join(name for name in NAMES if name in names)


def checked(text: str) -> str:
    """``text``. Raises ValueError for what is no parallelism."""
    form_of(text)
    return text


def layout_of(text: str, devices: int) -> Layout:
    """Raises ValueError for what is no parallelism, or one of another number of devices."""
    sizes = {name: size or devices for name, size in _sizes(text).items()}
    layout = Layout(**sizes)
    product = layout.stages * layout.replicas * layout.tensor
    if product != devices:
        raise ValueError(f"{text} is of {product} devices, not of {devices}")
    return layout
