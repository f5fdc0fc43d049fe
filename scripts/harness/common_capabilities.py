"""Capabilities of nearly every framework: micro-benchmarks, and one class with all common
capabilities.

Standard library and numpy; Python 3.7 to 3.13.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Sequence

from harness.adapter import (
    AllReduce,
    Capability,
    Collectives,
    Numerics,
    Rounding,
    Unsupported,
)
from harness.batch_input import Checkpointing
from harness.communication import ALL_REDUCE, CollectiveOperation, MatmulCollective, Overlapped
from harness.operations import ForwardBackward, Layer, Operation
from harness.primitives import Primitives


class SingleOperations(Capability):
    """The framework runs single operations as its users call them: eagerly, or compiled alone where
    it has nothing else. :meth:`synchronize` waits for the last one.

    All methods of micro-benchmarks are called without :meth:`build`. They take float32 numpy arrays
    and copy them to the device in the matmuls' dtype of the case's precision. They raise
    :class:`harness.adapter.Unsupported` for what the framework cannot compute there."""

    LACKING: ClassVar[str] = "runs no single operations"

    @abstractmethod
    def primitives(self) -> Primitives:
        """Return the framework's primitives, after :meth:`start`."""

    def operation(self, name: str, arrays: Sequence[Any]) -> Operation:
        """Prepare MATMUL, ADD, MULTIPLY, EXP, SCALE or TRIAD of ``arrays``."""
        return self.primitives().operation(name, arrays)

    def matmul_in(self, dtype: str, arrays: Sequence[Any]) -> Operation:
        """Prepare the matmul of two arrays in ``float64`` or ``int8``, in which no model here
        trains."""
        return self.primitives().matmul_in(dtype, arrays)

    def layer_matmul(self, left: Any, right: Any) -> Operation:
        """Prepare the matmul of two matrices, by the function that the framework has for its
        layers."""
        return self.primitives().layer_matmul(left, right)


class MicroBenchmarks(SingleOperations, Collectives):
    """The framework runs single layers as its models here call them, and the collectives that its
    users call: alone, after a matmul, and next to computation.

    Methods for several ranks are called in all of them."""

    LACKING: ClassVar[str] = "runs no single layers, and no collective but its gradient all-reduce"

    def forward_backward(self, layer: Layer, arrays: Sequence[Any]) -> ForwardBackward:
        """Prepare forward and backward kernels of ``layer``.

        ``arrays``: operands of the layer's shapes (images and kernel, or query, key and value),
        then the gradient of the result. The framework's layout is made here, outside the kernels.
        Attention has no dropout and no padding mask."""
        return self.primitives().forward_backward(layer, arrays)

    def collective(self, operation: str, array: Any, dtype: str) -> CollectiveOperation:
        """Prepare a collective on this rank's one-dimensional ``array``, as ``dtype``.

        Reductions are sums; rank 0 is the root of BROADCAST and REDUCE. REDUCE_SCATTER and
        ALL_TO_ALL split the array into a part for each rank. SEND_RECEIVE sends it to the next rank
        and receives the previous rank's array."""
        return self._primitives_with(operation).collective(operation, array, dtype)

    def prepare_all_reduce(self, array: Any) -> AllReduce:
        made = self.collective(ALL_REDUCE, array, "float32")
        return AllReduce(made.run, made.result)

    def sharded_matmul(self, left: Any, right: Any, operation: str) -> MatmulCollective:
        """Prepare the matmul of this rank's ``left`` (m, k) and ``right`` (k, n).

        ``operation``: ALL_REDUCE, where the whole product is the sum of the parts, or ALL_GATHER,
        where the parts of all ranks are joined to (m, ranks x n)."""
        return self._primitives_with(operation).sharded_matmul(left, right, operation)

    def overlapped(self, name: str, arrays: Sequence[Any], count: int, message: Any) -> Overlapped:
        """Prepare ``count`` consecutive runs of MATMUL or MULTIPLY of two ``arrays``, and an
        all-reduce of ``message``, a one-dimensional float32 array.

        They run at the same time by the means by which the framework's training communicates
        gradients during the backward pass."""
        return self.primitives().overlapped(name, arrays, count, message)

    def _primitives_with(self, operation: str) -> Primitives:
        """Return the primitives. Raises Unsupported where they lack the collective."""
        primitives = self.primitives()
        if operation not in primitives.COLLECTIVES:
            raise self.no_collective(operation, primitives.LACKING)
        return primitives

    def no_collective(self, operation: str, reason: str) -> Unsupported:
        """Return the error for a missing collective, with the framework's ``reason``."""
        accelerator = self.rank_context.accelerator
        device = "a CPU" if accelerator == "cpu" else accelerator
        return Unsupported(f"{self.case.framework} has no {operation} on {device}: {reason}")


class CommonCapabilities(MicroBenchmarks, Rounding, Numerics, Checkpointing):
    """Several devices, micro-benchmarks, comparison with the reference, and checkpoints."""

    def matmul_result(self, left: Any, right: Any) -> Any:
        return self.primitives().matmul_result(left, right)
