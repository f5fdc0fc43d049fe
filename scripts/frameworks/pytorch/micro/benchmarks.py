"""Micro-benchmarks of PyTorch: matmuls, single operations and layers, collectives and copies.

Modules of this folder import PyTorch at their top, so methods import them when they need them."""

from __future__ import annotations

from typing import Any, Callable, Sequence

from harness.adapter import AllReduce, ChainedMatmul, Rounding, Unsupported, zeros
from harness.common_capabilities import CommonCapabilities
from harness.communication import CollectiveOperation, MatmulCollective
from harness.operations import NEITHER, ForwardBackward, Layer, Operation, Transposed
from harness.overlapping import Overlapped
from harness.transfers import PairTransfers, Transfers


class MicroBenchmarks(Rounding, CommonCapabilities, Transfers, PairTransfers):
    """Part of the adapter without a model; the part with a model sets these attributes at start."""

    _torch: Any
    _device: Any
    _dtype: Any  # of matmuls
    _in_float8: bool
    _definition: Any

    def matmul_result(self, left: Any, right: Any) -> Any:
        from .. import matmuls

        return self.to_numpy(matmuls.multiply(left, right, self._device))

    def matmul(self, left: Any, right: Any) -> ChainedMatmul:
        self._refuse_float8()
        a, b = (self._torch.from_numpy(x).to(self._device, self._dtype) for x in (left, right))

        def multiply() -> None:
            nonlocal b
            b = a @ b

        return ChainedMatmul(multiply, str(b.dtype).removeprefix("torch."))

    def prepare_all_reduce(self, array: Any) -> AllReduce:
        tensor = self._torch.from_numpy(array).to(self._device)
        all_reduce = self._torch.distributed.all_reduce
        return AllReduce(lambda: all_reduce(tensor), lambda: self.to_numpy(tensor))

    def gradient_all_reduce(self, messages: Sequence[int]) -> Callable[[], Any]:
        from ..parallel import data_parallel

        tensors = [self._torch.from_numpy(zeros(size)).to(self._device) for size in messages]
        return lambda: data_parallel.all_reduce_together(tensors)

    def collective(self, operation: str, array: Any, dtype: str) -> CollectiveOperation:
        from . import collectives

        return collectives.collective(operation, array, dtype, self._device, self.rank_context)

    def overlapped(self, name: str, arrays: Sequence[Any], count: int, message: Any) -> Overlapped:
        from . import overlap

        return overlap.overlapped(name, arrays, count, message, self._device, self._dtype)

    def sharded_matmul(self, left: Any, right: Any, operation: str) -> MatmulCollective:
        from . import collectives

        self._refuse_float8()
        device, ranks = self._device, self.rank_context.world_size
        return collectives.sharded_matmul(left, right, operation, device, self._dtype, ranks)

    def operation(
        self, name: str, arrays: Sequence[Any], transposed: Transposed = NEITHER
    ) -> Operation:
        from . import operations

        self._refuse_float8()
        return operations.operation(name, arrays, transposed, self._device, self._dtype)

    def forward_backward(self, layer: Layer, arrays: Sequence[Any]) -> ForwardBackward:
        from . import kernels

        self._refuse_float8()
        memory_format = self._definition.MEMORY_FORMAT
        return kernels.passes(layer, arrays, self._device, self._dtype, memory_format)

    def transfer(self, direction: str, array: Any, pinned: bool) -> Operation:
        from . import transfers

        return transfers.transfer(direction, array, pinned, self._device)

    def transfer_between(self, sender: int, receiver: int, array: Any) -> Operation:
        from . import transfers

        devices = [self._torch.device("cuda", number) for number in (sender, receiver)]
        return transfers.between(devices[0], devices[1], array, self._device)

    def _refuse_float8(self) -> None:
        """Raise :class:`Unsupported` for float8: operands outside a layer have no scales."""
        if self._in_float8:
            raise Unsupported("PyTorch multiplies in float8 only in the linear layers of a model")
