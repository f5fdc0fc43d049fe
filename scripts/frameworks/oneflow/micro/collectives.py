"""The collectives of oneflow.comm, on tensors of their own."""

from __future__ import annotations

from typing import Any, Callable, Dict

import oneflow
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
    operation: str, array: Any, dtype: str, device: oneflow.device, rank_context: RankContext
) -> CollectiveOperation:
    """Prepare a collective; see :class:`harness.communication.Communication`."""
    comm, ranks = oneflow.comm, rank_context.world_size
    contribution = oneflow.tensor(array, dtype=getattr(oneflow, dtype), device=device)
    held = contribution.clone()
    length = {ALL_GATHER: ranks * len(array), REDUCE_SCATTER: len(array) // ranks}
    received = oneflow.zeros(
        length.get(operation, len(array)), dtype=contribution.dtype, device=device
    )
    if operation == ALL_TO_ALL:
        outgoing, incoming = list(held.chunk(ranks)), list(received.chunk(ranks))

    def send_and_receive() -> None:
        # in turns, for a send waits until it is received
        def send() -> None:
            comm.send(held, (rank_context.rank + 1) % ranks)

        def receive() -> None:
            comm.recv((rank_context.rank - 1) % ranks, out=received)

        for step in (send, receive) if rank_context.rank % 2 == 0 else (receive, send):
            step()

    runs: Dict[str, Callable[[], Any]] = {
        ALL_REDUCE: lambda: comm.all_reduce(held),
        REDUCE: lambda: comm.reduce(held, 0),
        BROADCAST: lambda: comm.broadcast(held, 0),
        ALL_GATHER: lambda: comm.all_gather_into_tensor(received, held),
        REDUCE_SCATTER: lambda: comm.reduce_scatter_tensor(received, held),
        ALL_TO_ALL: lambda: comm.all_to_all(incoming, outgoing),
        SEND_RECEIVE: send_and_receive,
    }
    in_place = operation in (ALL_REDUCE, REDUCE, BROADCAST)

    def reset() -> None:
        held.copy_(contribution)
        received.zero_()

    def result() -> Any:
        if operation == ALL_TO_ALL:
            return oneflow.cat(incoming).float().numpy()
        return (held if in_place else received).float().numpy()

    return CollectiveOperation(reset, runs[operation], result)


def sharded_matmul(
    left: Any,
    right: Any,
    operation: str,
    device: oneflow.device,
    dtype: oneflow.dtype,
    ranks: int,
) -> MatmulCollective:
    """Prepare a matmul and the collective of its parts; see
    :class:`harness.communication.ShardedMatmuls`."""
    a, b = (oneflow.tensor(array, dtype=dtype, device=device) for array in (left, right))
    part = whole = oneflow.matmul(a, b)
    rows, columns = part.shape
    parts = oneflow.zeros(ranks * rows, columns, dtype=part.dtype, device=device)

    def matmul() -> None:
        nonlocal part
        part = oneflow.matmul(a, b)

    def communicate() -> None:
        nonlocal whole
        if operation == ALL_REDUCE:
            oneflow.comm.all_reduce(part)
            whole = part
        else:
            oneflow.comm.all_gather_into_tensor(parts, part)
            whole = oneflow.cat(parts.chunk(ranks), 1)

    def both() -> None:
        matmul()
        communicate()

    name = str(part.dtype).replace("oneflow.", "")
    return MatmulCollective(matmul, communicate, both, lambda: whole.float().numpy(), name)
