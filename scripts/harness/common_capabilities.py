"""Capabilities of nearly every framework: micro-benchmarks by its primitives, and the others in one
class.

Standard library and numpy; Python 3.7 to 3.13.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Sequence

from harness.adapter import (
    AllReduce,
    Numerics,
    Rounding,
    StepBreakdown,
)
from harness.batch_input import Checkpointing
from harness.communication import (
    ALL_REDUCE,
    CollectiveOperation,
    MatmulCollective,
    Overlapped,
    Overlapping,
)
from harness.operations import (
    ForwardBackward,
    Layer,
    LayerOperations,
    Operation,
    SingleOperations,
)
from harness.primitives import Primitives


class MicroOperations(SingleOperations):
    """Single operations, by the framework's primitives."""

    @abstractmethod
    def primitives(self) -> Primitives:
        """Return the framework's primitives, after :meth:`start`."""

    def operation(self, name: str, arrays: Sequence[Any]) -> Operation:
        return self.primitives().operation(name, arrays)

    def layer_matmul(self, left: Any, right: Any) -> Operation:
        return self.primitives().layer_matmul(left, right)


class MicroBenchmarks(Rounding, MicroOperations, LayerOperations, Overlapping):
    """All micro-benchmarks of a framework, by its primitives."""

    def forward_backward(self, layer: Layer, arrays: Sequence[Any]) -> ForwardBackward:
        return self.primitives().forward_backward(layer, arrays)

    def matmul_result(self, left: Any, right: Any) -> Any:
        return self.primitives().matmul_result(left, right)

    def _primitives_with(self, operation: str) -> Primitives:
        """Return the primitives. Raises Unsupported where they lack the collective."""
        primitives = self.primitives()
        if operation not in primitives.COLLECTIVES:
            raise self.no_collective(operation, primitives.LACKING)
        return primitives

    def collective(self, operation: str, array: Any, dtype: str) -> CollectiveOperation:
        return self._primitives_with(operation).collective(operation, array, dtype)

    def prepare_all_reduce(self, array: Any) -> AllReduce:
        made = self.collective(ALL_REDUCE, array, "float32")
        return AllReduce(made.run, made.result)

    def sharded_matmul(self, left: Any, right: Any, operation: str) -> MatmulCollective:
        return self._primitives_with(operation).sharded_matmul(left, right, operation)

    def overlapped(self, name: str, arrays: Sequence[Any], count: int, message: Any) -> Overlapped:
        return self.primitives().overlapped(name, arrays, count, message)


class CommonCapabilities(MicroBenchmarks, Numerics, StepBreakdown, Checkpointing):
    """Several devices, micro-benchmarks, step breakdown, comparison with the reference, and
    checkpoints."""
