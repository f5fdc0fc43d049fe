"""What a framework brings for the micro-benchmarks: one operation at a time, without a model.

Standard library and numpy; Python 3.7 to 3.13.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Callable, ClassVar, NamedTuple, Sequence, Tuple, Union

from harness.adapter import Capability

#: Matrices, or batches of them: (.., m, k) by (.., k, n).
MATMUL = "matmul"
#: Sum and product of two arrays, element by element.
ADD, MULTIPLY = "add", "multiply"
#: Exponential of each element.
EXP = "exp"
#: STREAM's: SCALAR times each element, and of the second array added to the first.
SCALE, TRIAD = "scale", "triad"
#: Of those; STREAM's own, which no precision rounds.
SCALAR = 3.0
#: Which operands of a product are given transposed.
Transposed = Tuple[bool, bool]
NEITHER: Transposed = (False, False)


class Operation(NamedTuple):
    """An operation on the device whose operands stay as they are. ``run`` enqueues it once more;
    none begins before the one before it is complete. ``result``: what the last gave, for numpy;
    ``dtype``: of that."""

    run: Callable[[], Any]
    result: Callable[[], Any]
    dtype: str


class SingleOperations(Capability):
    """Single operations run as a user of the framework calls them: eagerly, or compiled alone where
    the framework has nothing else."""

    LACKING: ClassVar[str] = "runs no single operations"

    @abstractmethod
    def operation(
        self, name: str, arrays: Sequence[Any], transposed: Transposed = NEITHER
    ) -> Operation:
        """Prepare MATMUL, ADD, MULTIPLY, EXP, SCALE or TRIAD of float32 numpy ``arrays``, copied to
        the device in the dtype that matmuls have under the case's precision. ``transposed`` says
        which operands of MATMUL lie there as (.., k, m) or (.., n, k). :meth:`synchronize` waits
        for the last run. Called without :meth:`build`. Raises
        :class:`harness.adapter.Unsupported` for what the framework cannot compute there."""


class Convolution(NamedTuple):
    """Images (batch, height, width, channels) with a kernel (rows, columns, channels / groups,
    filters), padded with zeros on either side of rows and columns; without a bias."""

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


class Attention(NamedTuple):
    """Queries (batch, heads, sequence, size) attend to keys and values (batch, key_value_heads,
    sequence, size), by the softmax of their products over the root of ``size``; ``causal``: each
    token to itself and those before it alone. As many heads of queries, one behind the other, share
    one of keys and values as there are more of them."""

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
    """``forward``: of an operation; ``backward``: from a gradient of its result to those of its
    operands, whose ``result`` is a list of them, in their order. The forward pass that it belongs
    to was run once and is not part of it."""

    forward: Operation
    backward: Operation


Layer = Union[Convolution, Attention]


class LayerOperations(Capability):
    """Operations of layers, as the framework's models here call them."""

    LACKING: ClassVar[str] = "runs no convolution and no attention alone here"

    @abstractmethod
    def forward_backward(self, layer: Layer, arrays: Sequence[Any]) -> ForwardBackward:
        """Forward and backward pass with float32 ``arrays`` of the shapes above: the operands
        (images and kernel, or query, key and value) and behind them the gradient of the result. The
        framework's own layout and the dtype of the case's precision are made here, not in a pass.
        An attention is without dropout and without a mask of padding. As
        :meth:`SingleOperations.operation` else."""
