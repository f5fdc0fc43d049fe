"""Primitives of the micro-benchmarks: single operations, called eagerly, layers as the models call
them, and the collectives of paddle.distributed."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Sequence, Tuple

import paddle
import paddle.distributed as dist
import paddle.nn.functional as F
from harness import operations
from harness.operations import AttentionShape, ConvolutionShape, functions
from harness.primitives import (
    CHANNELS_FIRST,
    SEQUENCE_FIRST,
    SHARED,
    Function,
    InPlace,
    LayerFunction,
)
from paddle import Tensor

from .devices import data_format


class Primitives(InPlace):
    FUNCTIONS = functions(paddle.matmul, paddle.add, paddle.multiply, paddle.exp)

    def tensor(self, array: Any, dtype: str = "") -> Tensor:
        return paddle.to_tensor(array).astype(dtype or self.dtype)

    def to_numpy(self, tensor: Tensor) -> Any:
        return tensor.astype("float32").numpy()

    def convolution(self, shape: ConvolutionShape) -> LayerFunction:
        layout = data_format()
        options: Dict[str, Any] = {
            "stride": shape.stride, "padding": list(shape.padding), "groups": shape.groups,
            "data_format": layout,
        }  # fmt: skip
        images = SHARED[0] if layout == "NHWC" else CHANNELS_FIRST[0]
        axes = (images, CHANNELS_FIRST[1])  # kernels are OIHW in both layouts
        return LayerFunction(lambda x, weight: F.conv2d(x, weight, **options), axes)

    def attention(self, shape: AttentionShape) -> LayerFunction:
        sharing = shape.heads // shape.key_value_heads

        def attended(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
            if sharing > 1:  # repeats key heads, one for each query head
                key, value = (paddle.repeat_interleave(heads, sharing, 2) for heads in (key, value))
            return F.scaled_dot_product_attention(query, key, value, is_causal=shape.causal)

        return LayerFunction(attended, SEQUENCE_FIRST)

    def pullback(
        self, function: Function, operands: Sequence[Tensor], upstream: Tensor
    ) -> Tuple[Function, Sequence[Any]]:
        watched = [operand.detach() for operand in operands]
        for operand in watched:
            operand.stop_gradient = False
        kept = function(*watched)
        return lambda: paddle.grad([kept], watched, [upstream], retain_graph=True), ()

    def assign(self, target: Tensor, source: Tensor) -> None:
        target.copy_(source, True)

    def communicating(
        self, operation: str, held: Tensor, received: Tensor
    ) -> Tuple[Callable[[], Any], List[Tensor]]:
        rank, ranks = self.rank_context.rank, self.rank_context.world_size
        if operation == operations.ALL_GATHER:
            parts: List[Tensor] = []

            def gather() -> None:
                parts.clear()
                dist.all_gather(parts, held)

            return gather, parts
        runs: Dict[str, Callable[[], Any]] = {
            operations.ALL_REDUCE: lambda: dist.all_reduce(held),
            operations.REDUCE: lambda: dist.reduce(held, 0),
            operations.BROADCAST: lambda: dist.broadcast(held, 0),
            operations.REDUCE_SCATTER: lambda: dist.reduce_scatter(received, held),
            operations.ALL_TO_ALL: lambda: dist.alltoall_single(received, held),
            operations.SEND_RECEIVE: self.in_turns(
                lambda: dist.send(held, (rank + 1) % ranks),
                lambda: dist.recv(received, (rank - 1) % ranks),
            ),
        }
        return runs[operation], [received]

    def columns(self, part: Tensor) -> Callable[[Tensor], Tensor]:
        def gather(part: Tensor) -> Tensor:
            parts: List[Tensor] = []
            dist.all_gather(parts, part)
            return paddle.concat(parts, 1)

        return gather

    def start_all_reduce(self, held: Tensor) -> Callable[[], Any]:
        work = dist.all_reduce(held, sync_op=False)
        return lambda: work.wait()
