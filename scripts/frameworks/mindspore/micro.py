"""Primitives of the micro-benchmarks: single operations, called eagerly, and the collectives of
MindSpore's own runtime on CPUs."""

from __future__ import annotations

import functools
from typing import Any, Sequence

import numpy as np
from harness import operations
from harness.adapter import Unsupported
from harness.operations import ConvolutionShape, ForwardBackward, Layer, MatmulCollective, functions
from harness.primitives import CHANNELS_FIRST, Function, Functional, LayerFunction
from mindspore import Tensor, ops


class Primitives(Functional):
    COLLECTIVES = (operations.ALL_REDUCE, operations.ALL_GATHER, operations.BROADCAST)
    LACKING = "MindSpore says Unsupported op on CPU"

    def tensor(self, array: Any, dtype: str = "") -> Tensor:
        return Tensor(array)

    def to_numpy(self, tensor: Tensor) -> Any:
        return tensor.asnumpy()

    def function(self, name: str) -> Function:
        of_matrices, of_batches = ops.MatMul(), ops.BatchMatMul()

        def matmul(a: Tensor, b: Tensor) -> Tensor:
            return of_matrices(a, b) if a.ndim == 2 else of_batches(a, b)

        return functions(matmul, ops.add, ops.mul, ops.exp)[name]

    def convolution(self, shape: ConvolutionShape) -> LayerFunction:
        return LayerFunction(ops.conv2d, CHANNELS_FIRST)  # stride 1, no padding

    def forward_backward(self, layer: Layer, arrays: Sequence[Any]) -> ForwardBackward:
        raise Unsupported(
            "MindSpore's value_and_grad runs a forward pass in each backward pass, which cannot be "
            "timed alone"
        )

    def exchange(self, operation: str, value: Tensor, axis: int = 0) -> Tensor:
        communicate = _communication(operation)
        return communicate((value,))[0] if operation == operations.BROADCAST else communicate(value)

    def sharded_matmul(self, left: Any, right: Any, operation: str) -> MatmulCollective:
        made = super().sharded_matmul(left, right, operation)

        def result() -> Any:
            # an all-gather concatenates the parts of all ranks along the first axis
            ranks = self.rank_context.world_size if operation == operations.ALL_GATHER else 1
            return np.concatenate(np.split(made.result(), ranks), axis=1)

        return made._replace(result=result)


@functools.lru_cache(maxsize=None)
def _communication(operation: str) -> Any:
    made = {
        operations.ALL_REDUCE: ops.AllReduce,
        operations.ALL_GATHER: ops.AllGather,
        operations.BROADCAST: ops.Broadcast,
    }
    return made[operation](*[0] * (operation == operations.BROADCAST))
