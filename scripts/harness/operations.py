"""Operations, layers and copies of micro-benchmarks: one at a time, without a model.

Standard library and numpy; Python 3.7 to 3.13.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Callable, ClassVar, Dict, NamedTuple, Tuple, Union

from harness.adapter import Capability

#: Matmul of matrices, or batches of them: (.., m, k) by (.., k, n).
MATMUL = "matmul"
#: Elementwise sum and product of two arrays.
ADD, MULTIPLY = "add", "multiply"
#: Exponential of each element.
EXP = "exp"
#: STREAM's scale and triad: SCALAR times each element; SCALAR times the second array plus the
#: first.
SCALE, TRIAD = "scale", "triad"
#: Factor in scale and triad: the same as STREAM's, and exact in every precision.
SCALAR = 3.0


class Operation(NamedTuple):
    """Operation on the device that does not change its operands.

    ``run`` enqueues the operation once more; each run starts after the previous one is complete.
    ``result`` returns the last result for numpy, of ``dtype``."""

    run: Callable[[], Any]
    result: Callable[[], Any]
    dtype: str


def functions(
    matmul: Callable[..., Any],
    add: Callable[..., Any],
    multiply: Callable[..., Any],
    exp: Callable[..., Any],
) -> Dict[str, Callable[..., Any]]:
    """Return a framework's function for each operation; scale and triad are composed of the
    others."""
    return {
        MATMUL: matmul,
        ADD: add,
        MULTIPLY: multiply,
        EXP: exp,
        SCALE: lambda c: c * SCALAR,
        TRIAD: lambda b, c: add(b, c * SCALAR),
    }


class MatmulShape(NamedTuple):
    """Shape of a matmul: (m, k) by (k, n), ``batch`` times.

    Field names are the parameters of a point of the benchmark."""

    batch: int
    m: int
    k: int
    n: int

    @property
    def operations(self) -> int:
        """Floating-point operations: a multiplication and an addition for each term."""
        return 2 * self.batch * self.m * self.k * self.n

    def __str__(self) -> str:
        """Return the shape as suites write it."""
        return "x".join(map(str, self[1:] if self.batch == 1 else self))


class ConvolutionShape(NamedTuple):
    """Convolution without a bias.

    Images are (batch, height, width, channels), the kernel is (rows, columns, channels / groups,
    filters); rows and columns are padded with zeros on both sides."""

    batch: int
    height: int
    width: int
    channels: int
    filters: int
    kernel: Tuple[int, int]
    stride: int
    padding: Tuple[int, int]
    groups: int

    @property
    def images_shape(self) -> Tuple[int, ...]:
        return self.batch, self.height, self.width, self.channels

    @property
    def kernel_shape(self) -> Tuple[int, ...]:
        return (*self.kernel, self.channels // self.groups, self.filters)

    @property
    def result_shape(self) -> Tuple[int, ...]:
        extents = (self.height, self.width)
        places = [
            (extent + 2 * padding - size) // self.stride + 1
            for extent, padding, size in zip(extents, self.padding, self.kernel)
        ]
        return (self.batch, *places, self.filters)


class AttentionShape(NamedTuple):
    """Attention of queries (batch, heads, sequence, size) to keys and values (batch,
    key_value_heads, sequence, size).

    Weights are the softmax of their products over the root of ``size``. ``causal``: each token
    attends to itself and earlier tokens only. Consecutive query heads share a key-value head where
    there are more of them."""

    batch: int
    heads: int
    key_value_heads: int
    sequence: int
    size: int
    causal: bool

    @property
    def query_shape(self) -> Tuple[int, ...]:
        return self.batch, self.heads, self.sequence, self.size

    @property
    def key_shape(self) -> Tuple[int, ...]:
        return self.batch, self.key_value_heads, self.sequence, self.size


class ForwardBackward(NamedTuple):
    """Forward and backward kernels of a layer.

    ``backward`` computes the gradients of the operands from the result's gradient; its ``result``
    is their list, in order. The forward pass before it has run once and is not part of it."""

    forward: Operation
    backward: Operation


Layer = Union[ConvolutionShape, AttentionShape]


#: Copies between the host and its device, and within the device.
HOST_TO_DEVICE = "host_to_device"
DEVICE_TO_HOST = "device_to_host"
DEVICE_TO_DEVICE = "device_to_device"
DIRECTIONS = (HOST_TO_DEVICE, DEVICE_TO_HOST, DEVICE_TO_DEVICE)


class Transfers(Capability):
    """The framework copies arrays to the device and back as its users do."""

    LACKING: ClassVar[str] = "offers no plain copies of arrays here"

    @abstractmethod
    def transfer(self, direction: str, array: Any, pinned: bool) -> Operation:
        """Prepare a copy of a one-dimensional float32 numpy ``array`` in one of DIRECTIONS.

        Repeated copies have the same target. ``pinned``: whether the host's memory is locked.
        ``result`` returns the copy as a numpy array. Not called where the device is the host."""


class PairTransfers(Capability):
    """One process copies arrays between any two devices of its node."""

    LACKING: ClassVar[str] = "cannot copy between two devices here"

    @abstractmethod
    def transfer_between(self, sender: int, receiver: int, array: Any) -> Operation:
        """Prepare a copy of a one-dimensional float32 numpy ``array`` between two devices of this
        node, given by local rank.

        Repeated copies have the same target. ``result`` returns the copy as a numpy array.
        :meth:`synchronize` waits for it. Not called where the devices are the host."""
