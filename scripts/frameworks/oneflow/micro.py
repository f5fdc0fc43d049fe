"""Primitives of the micro-benchmarks: single operations, called eagerly, convolutions as the models
call them, and the collectives of oneflow.comm."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Sequence, Tuple

import oneflow
from harness import operations
from harness.operations import ConvolutionShape, functions
from harness.primitives import CHANNELS_FIRST, CHANNELS_LAST, Function, InPlace, LayerFunction
from oneflow import Tensor
from oneflow.nn import functional as F

from .devices import channels_last


class Primitives(InPlace):
    FUNCTIONS = functions(oneflow.matmul, oneflow.add, oneflow.mul, oneflow.exp)

    def tensor(self, array: Any, dtype: str = "") -> Tensor:
        kind = getattr(oneflow, dtype) if dtype else self.dtype
        return oneflow.tensor(array, dtype=kind, device=self.device)

    def to_numpy(self, tensor: Tensor) -> Any:
        return tensor.float().numpy()

    def convolution(self, shape: ConvolutionShape) -> LayerFunction:
        last = channels_last()
        options: Dict[str, Any] = {
            "stride": shape.stride, "padding": list(shape.padding), "groups": shape.groups,
            "channel_pos": "channels_last" if last else "channels_first",
        }  # fmt: skip
        return LayerFunction(
            lambda x, weight: F.conv2d(x, weight, **options),
            CHANNELS_LAST if last else CHANNELS_FIRST,
        )

    def pullback(
        self, function: Function, operands: Sequence[Tensor], upstream: Tensor
    ) -> Tuple[Function, Sequence[Any]]:
        watched = [operand.detach().requires_grad_() for operand in operands]
        kept = function(*watched)
        return lambda: oneflow.autograd.grad(kept, watched, upstream, retain_graph=True), ()

    def communicating(
        self, operation: str, held: Tensor, received: Tensor
    ) -> Tuple[Callable[[], Any], List[Tensor]]:
        comm, rank, ranks = oneflow.comm, self.rank_context.rank, self.rank_context.world_size
        if operation == operations.ALL_TO_ALL:
            outgoing, incoming = list(held.chunk(ranks)), list(received.chunk(ranks))
            return lambda: comm.all_to_all(incoming, outgoing), incoming
        runs: Dict[str, Callable[[], Any]] = {
            operations.ALL_REDUCE: lambda: comm.all_reduce(held),
            operations.REDUCE: lambda: comm.reduce(held, 0),
            operations.BROADCAST: lambda: comm.broadcast(held, 0),
            operations.ALL_GATHER: lambda: comm.all_gather_into_tensor(received, held),
            operations.REDUCE_SCATTER: lambda: comm.reduce_scatter_tensor(received, held),
            operations.SEND_RECEIVE: self.in_turns(
                lambda: comm.send(held, (rank + 1) % ranks),
                lambda: comm.recv((rank - 1) % ranks, out=received),
            ),
        }
        return runs[operation], [received]

    def columns(self, part: Tensor) -> Callable[[Tensor], Tensor]:
        (rows, columns), ranks = part.shape, self.rank_context.world_size
        parts = oneflow.zeros(ranks * rows, columns, dtype=part.dtype, device=self.device)

        def gather(part: Tensor) -> Tensor:
            oneflow.comm.all_gather_into_tensor(parts, part)
            return oneflow.cat(parts.chunk(ranks), 1)

        return gather

    def start_all_reduce(self, held: Tensor) -> Callable[[], Any]:
        oneflow.comm.all_reduce(held)  # calls return before the work is done
        return lambda: None
