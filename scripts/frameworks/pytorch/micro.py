"""Primitives of the micro-benchmarks: single operations, called eagerly, layers as the models call
them, collectives of torch.distributed, and copies."""

from __future__ import annotations

import math
from typing import Any, Callable, ClassVar, Dict, List, Sequence, Tuple

import torch
import torch.distributed as dist
import torch.nn.functional as F
from harness import operations
from harness.adapter import RankContext, Unsupported
from harness.operations import (
    DEVICE_TO_HOST,
    HOST_TO_DEVICE,
    AttentionShape,
    ConvolutionShape,
    Operation,
)
from harness.primitives import (
    CHANNELS_FIRST,
    HEADS_FIRST,
    Function,
    InPlace,
    LayerFunction,
    Repeated,
)
from torch import Tensor


class Primitives(InPlace):
    """``memory_format``: memory format of the models' images. ``in_float8``: whether the case's
    precision is float8, which scales operands only in the layers of a model."""

    FUNCTIONS: ClassVar[Dict[str, Function]] = {
        operations.MATMUL: torch.matmul,
        operations.ADD: torch.add,
        operations.MULTIPLY: torch.mul,
        operations.EXP: torch.exp,
        operations.SCALE: lambda c, **out: torch.mul(c, operations.SCALAR, **out),
        operations.TRIAD: lambda b, c, **out: torch.add(b, c, alpha=operations.SCALAR, **out),
    }

    def __init__(
        self,
        rank_context: RankContext,
        device: torch.device,
        dtype: torch.dtype,
        memory_format: torch.memory_format,
        in_float8: bool,
    ) -> None:
        super().__init__(rank_context, device, dtype)
        self._memory_format, self._in_float8 = memory_format, in_float8

    def tensor(self, array: Any, dtype: str = "") -> Tensor:
        if self._in_float8 and not dtype:
            raise Unsupported("PyTorch multiplies in float8 only in the linear layers of a model")
        kind = getattr(torch, dtype) if dtype else self.dtype
        return torch.tensor(array, dtype=kind, device=self.device)

    def to_numpy(self, tensor: Tensor) -> Any:
        return tensor.float().cpu().numpy()

    def in_place(self, function: Function, operands: Sequence[Tensor]) -> Repeated:
        # On a CPU the kernel would have to fill the pages of a new array with zeros, in some calls
        # or in all.
        held = function(*operands).fill_(math.nan)  # elements that are never written stay NaN
        return Repeated(lambda: function(*operands, out=held), lambda: held)

    def matmul_in(self, dtype: str, arrays: Sequence[Any]) -> Operation:
        operands = [torch.from_numpy(a).to(self.device, getattr(torch, dtype)) for a in arrays]
        multiply = torch._int_mm if dtype == "int8" else torch.matmul
        try:
            made = self.repeated(multiply, operands)
        except RuntimeError as error:  # cuBLASLt supports only some shapes and devices
            raise Unsupported(f"PyTorch: {error}") from None
        return Operation(made.run, lambda: made.held().cpu().numpy(), dtype)

    def convolution(self, shape: ConvolutionShape) -> LayerFunction:
        options: Dict[str, Any] = {
            "stride": shape.stride, "padding": shape.padding, "groups": shape.groups,
        }  # fmt: skip
        layout = self._memory_format or torch.contiguous_format
        return LayerFunction(
            lambda x, weight: F.conv2d(x, weight, **options),
            CHANNELS_FIRST,
            lambda tensor: tensor.contiguous(memory_format=layout),
        )

    def attention(self, shape: AttentionShape) -> LayerFunction:
        options = {"is_causal": shape.causal, "enable_gqa": shape.heads != shape.key_value_heads}
        return LayerFunction(
            lambda *operands: F.scaled_dot_product_attention(*operands, **options), HEADS_FIRST
        )

    def pullback(
        self, function: Function, operands: Sequence[Tensor], upstream: Tensor
    ) -> Tuple[Function, Sequence[Any]]:
        watched = [operand.detach().requires_grad_() for operand in operands]
        kept = function(*watched)
        return lambda: torch.autograd.grad(kept, watched, upstream, retain_graph=True), ()

    def communicating(
        self, operation: str, held: Tensor, received: Tensor
    ) -> Tuple[Callable[[], Any], List[Tensor]]:
        rank, ranks = self.rank_context.rank, self.rank_context.world_size

        def send_and_receive() -> None:
            sent = dist.P2POp(dist.isend, held, (rank + 1) % ranks)
            arriving = dist.P2POp(dist.irecv, received, (rank - 1) % ranks)
            for work in dist.batch_isend_irecv([sent, arriving]):
                work.wait()

        runs: Dict[str, Callable[[], Any]] = {
            operations.ALL_REDUCE: lambda: dist.all_reduce(held),
            operations.REDUCE: lambda: dist.reduce(held, 0),
            operations.BROADCAST: lambda: dist.broadcast(held, 0),
            operations.ALL_GATHER: lambda: dist.all_gather_into_tensor(received, held),
            operations.REDUCE_SCATTER: lambda: dist.reduce_scatter_tensor(received, held),
            operations.ALL_TO_ALL: lambda: dist.all_to_all_single(received, held),
            operations.SEND_RECEIVE: send_and_receive,
        }
        return runs[operation], [received]

    def columns(self, part: Tensor) -> Callable[[Tensor], Tensor]:
        parts = [torch.empty_like(part) for _ in range(self.rank_context.world_size)]

        def gather(part: Tensor) -> Tensor:
            dist.all_gather(parts, part)
            return torch.cat(parts, 1)

        return gather

    def start_all_reduce(self, held: Tensor) -> Callable[[], Any]:
        work = dist.all_reduce(held, async_op=True)
        return lambda: work.wait()


def transfer(direction: str, array: Any, pinned: bool, device: torch.device) -> Operation:
    """Prepare a copy of ``array``; see :class:`harness.capabilities.Transfers`. Copies of pinned
    memory are only enqueued."""
    host = torch.from_numpy(array)
    source = host.pin_memory() if pinned else host
    target = torch.zeros_like(host, device=device)
    if direction != HOST_TO_DEVICE:
        source = host.to(device)
    if direction == DEVICE_TO_HOST:
        target = torch.zeros_like(host, pin_memory=pinned)
    return Operation(
        lambda: target.copy_(source, non_blocking=True), lambda: target.cpu().numpy(), "float32"
    )


def transfer_between(
    sender: torch.device, receiver: torch.device, array: Any, own: torch.device
) -> Operation:
    """Prepare a copy of ``array`` between two devices; see
    :class:`harness.capabilities.PairTransfers`. ``own``: the device of this rank."""
    source = torch.from_numpy(array).to(sender)
    target = torch.zeros_like(source, device=receiver)

    def run() -> None:
        target.copy_(source, non_blocking=True)
        if own.type == "cuda":
            # Waiting for this rank's device then waits for the receiver's copy, too.
            stream = torch.cuda.current_stream(receiver)
            torch.cuda.current_stream(own).wait_stream(stream)

    return Operation(run, lambda: target.cpu().numpy(), "float32")
