"""The collectives of torch.distributed, on tensors of their own."""

from __future__ import annotations

from typing import Any, Callable, Dict

import torch
import torch.distributed as dist
from harness.adapter import RankContext
from harness.communication import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    BROADCAST,
    REDUCE,
    REDUCE_SCATTER,
    SEND_RECEIVE,
    CollectiveOperation,
    MatmulCollective,
)


def collective(
    operation: str, array: Any, dtype: str, device: torch.device, rank_context: RankContext
) -> CollectiveOperation:
    """Prepare a collective; see :class:`harness.communication.Communication`."""
    ranks = rank_context.world_size
    contribution = torch.from_numpy(array).to(device, getattr(torch, dtype))
    held = contribution.clone()
    length = {ALL_GATHER: ranks * len(contribution), REDUCE_SCATTER: len(contribution) // ranks}
    received = contribution.new_zeros(length.get(operation, len(contribution)))

    def send_and_receive() -> None:
        sent = dist.P2POp(dist.isend, held, (rank_context.rank + 1) % ranks)
        arriving = dist.P2POp(dist.irecv, received, (rank_context.rank - 1) % ranks)
        for work in dist.batch_isend_irecv([sent, arriving]):
            work.wait()

    runs: Dict[str, Callable[[], Any]] = {
        ALL_REDUCE: lambda: dist.all_reduce(held),
        REDUCE: lambda: dist.reduce(held, 0),
        BROADCAST: lambda: dist.broadcast(held, 0),
        ALL_GATHER: lambda: dist.all_gather_into_tensor(received, held),
        REDUCE_SCATTER: lambda: dist.reduce_scatter_tensor(received, held),
        ALL_TO_ALL: lambda: dist.all_to_all_single(received, held),
        SEND_RECEIVE: send_and_receive,
    }
    result = held if operation in (ALL_REDUCE, REDUCE, BROADCAST) else received

    def reset() -> None:
        held.copy_(contribution)
        if result is received:
            received.zero_()

    return CollectiveOperation(reset, runs[operation], lambda: result.float().cpu().numpy())


def sharded_matmul(
    left: Any, right: Any, operation: str, device: torch.device, dtype: torch.dtype, ranks: int
) -> MatmulCollective:
    """Prepare a matmul and the collective of its parts; see
    :class:`harness.communication.ShardedMatmuls`."""
    a, b = (torch.from_numpy(array).to(device, dtype) for array in (left, right))
    part = a @ b
    parts = [torch.empty_like(part) for _ in range(ranks if operation == ALL_GATHER else 0)]
    whole = part

    def matmul() -> None:
        torch.matmul(a, b, out=part)

    def communicate() -> None:
        nonlocal whole
        if operation == ALL_REDUCE:
            dist.all_reduce(part)
        else:
            dist.all_gather(parts, part)
            whole = torch.cat(parts, 1)

    def both() -> None:
        matmul()
        communicate()

    name = str(part.dtype).removeprefix("torch.")
    return MatmulCollective(matmul, communicate, both, lambda: whole.float().cpu().numpy(), name)
