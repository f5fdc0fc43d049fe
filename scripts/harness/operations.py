"""Operations, layers, copies and collectives of micro-benchmarks, without a model. Collectives run
alone, after a matmul, and at the same time as computation."""

from __future__ import annotations

from typing import Any, Callable, Dict, NamedTuple, Optional, Tuple, Union

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
#: Copies between the host and its device, and within the device.
HOST_TO_DEVICE = "host_to_device"
DEVICE_TO_HOST = "device_to_host"
DEVICE_TO_DEVICE = "device_to_device"
DIRECTIONS = (HOST_TO_DEVICE, DEVICE_TO_HOST, DEVICE_TO_DEVICE)
#: Collectives.
ALL_REDUCE = "all_reduce"
ALL_GATHER = "all_gather"
REDUCE_SCATTER = "reduce_scatter"
BROADCAST = "broadcast"
REDUCE = "reduce"
ALL_TO_ALL = "all_to_all"
SEND_RECEIVE = "send_receive"
ALL_COLLECTIVES = (
    ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, BROADCAST, REDUCE, ALL_TO_ALL, SEND_RECEIVE,
)  # fmt: skip


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

    Weights are the softmax of query times key, divided by the root of ``size``. ``causal``: each
    token attends to itself and earlier tokens only. If there are fewer key-value heads than query
    heads, consecutive query heads share one."""

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


class CollectiveOperation(NamedTuple):
    """Collective over all ranks.

    ``reset`` restores this rank's own array, ``run`` enqueues the collective, and ``result``
    returns this rank's array for numpy. An all-reduce or a reduce may overwrite the array,
    so repeated runs add up sums. ``start``, if ``run`` waits for the collective, begins it and
    returns a function that waits."""

    reset: Callable[[], Any]
    run: Callable[[], Any]
    result: Callable[[], Any]
    start: Optional[Callable[[], Callable[[], Any]]] = None


class MatmulCollective(NamedTuple):
    """A matmul that all ranks share, and the collective on its parts.

    ``matmul`` enqueues this rank's part, ``collective`` the collective on the latest part, and
    ``both`` one after the other. ``synchronize()`` waits for all work that these functions
    enqueued. ``result`` returns the whole product for numpy; ``dtype`` is the part's. A collective
    may overwrite the part, so repeated runs without a matmul in between add up sums."""

    matmul: Callable[[], Any]
    collective: Callable[[], Any]
    both: Callable[[], Any]
    result: Callable[[], Any]
    dtype: str


class Overlapped(NamedTuple):
    """Computation, all-reduce, and both together, each ready to be enqueued.

    ``compute`` enqueues all computations, ``communicate`` the all-reduce, and ``both`` all of it:
    it starts the all-reduce before it waits for a computation. ``synchronize()`` waits for all work
    that these functions enqueued. ``reset`` restores this rank's own message. ``computed`` and
    ``reduced`` return the last result and the reduced message for numpy; ``dtype`` is the
    computation's."""

    compute: Callable[[], Any]
    communicate: Callable[[], Any]
    both: Callable[[], Any]
    reset: Callable[[], Any]
    computed: Callable[[], Any]
    reduced: Callable[[], Any]
    dtype: str


def side_by_side(operation: Operation, reduced: CollectiveOperation, count: int) -> Overlapped:
    """Return an overlap that starts an all-reduce, runs ``count`` operations, and then waits for
    the all-reduce, as data-parallel training does with its buckets."""

    def compute() -> None:
        for _ in range(count):
            operation.run()

    def both() -> None:
        wait = (reduced.start or reduced.run)()
        compute()
        if reduced.start:
            wait()

    return Overlapped(
        compute, reduced.run, both, reduced.reset,
        operation.result, reduced.result, operation.dtype,
    )  # fmt: skip
