"""Capabilities of nearly every framework: micro-benchmarks by its primitives, and the others in one
class.

Standard library and numpy; Python 3.7 to 3.13.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Sequence

from harness.adapter import (
    AllReduce,
    ChainedMatmul,
    Numerics,
    PeakMatmul,
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
    ShardedMatmuls,
)
from harness.operations import (
    NEITHER,
    ForwardBackward,
    Layer,
    LayerOperations,
    Operation,
    SingleOperations,
    Transposed,
)
from harness.primitives import Primitives


class MicroOperations(SingleOperations, PeakMatmul):
    """Single operations and peak FLOPS, by the framework's primitives."""

    @abstractmethod
    def primitives(self) -> Primitives:
        """Return the framework's primitives, after :meth:`start`."""

    def operation(
        self, name: str, arrays: Sequence[Any], transposed: Transposed = NEITHER
    ) -> Operation:
        return self.primitives().operation(name, arrays, transposed)

    def matmul(self, left: Any, right: Any) -> ChainedMatmul:
        return self.primitives().peak(left, right)


class MicroBenchmarks(Rounding, MicroOperations, LayerOperations, ShardedMatmuls, Overlapping):
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
        _, run, result = self.collective(ALL_REDUCE, array, "float32")
        return AllReduce(run, result)

    def sharded_matmul(self, left: Any, right: Any, operation: str) -> MatmulCollective:
        return self._primitives_with(operation).sharded_matmul(left, right, operation)

    def overlapped(self, name: str, arrays: Sequence[Any], count: int, message: Any) -> Overlapped:
        made = self.primitives().overlapped(name, arrays, count, message)
        return made or super().overlapped(name, arrays, count, message)


class CommonCapabilities(MicroBenchmarks, Numerics, StepBreakdown, Checkpointing):
    """Several devices, micro-benchmarks, step breakdown, comparison with the reference, and
    checkpoints."""
