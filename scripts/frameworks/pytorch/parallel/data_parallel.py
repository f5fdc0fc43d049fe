"""Several ranks: one process each, the gradients averaged by DistributedDataParallel."""

from __future__ import annotations

import os
import socket
from collections import Counter
from typing import Any, Callable, Dict, List, Sequence

import torch
import torch.distributed
from harness.adapter import RankContext
from harness.capabilities import SEND
from harness.hardware import interface_with
from harness.operations import ALL_GATHER, ALL_REDUCE, REDUCE_SCATTER
from torch import nn
from torch.distributed.constants import default_pg_timeout

OPTIONS = {
    "gradient_as_bucket_view": True,  # saves the copy between gradients and buckets
    # each rank keeps its own running statistics: a training step does not read them, and other
    # frameworks do not send them either (`forward_sync_buffers` in newer versions, which warn)
    "broadcast_buffers": False,
}
#: Names that PyTorch's profiler gives collectives of a process group.
COLLECTIVES = {
    "c10d::_allgather_base_": ALL_GATHER,
    "c10d::allgather_into_tensor_coalesced_": ALL_GATHER,
    "c10d::_reduce_scatter_base_": REDUCE_SCATTER,
    "c10d::reduce_scatter_tensor_coalesced_": REDUCE_SCATTER,
    "c10d::allreduce_": ALL_REDUCE,
    "c10d::send": SEND,
}


def join(device: torch.device, rank_context: RankContext) -> str:
    """Join the process group of all ranks; returns its back-end.

    By default, PyTorch listens on every interface: rank 0 for the others, and Gloo at the address
    of the host's name. Here each rank listens at its own address."""
    host, _, port = rank_context.addresses[0].rpartition(":")
    listening = None
    if rank_context.rank == 0:
        server = socket.create_server((host, int(port)), backlog=rank_context.world_size)
        listening = server.detach()
    store = torch.distributed.TCPStore(
        host,
        int(port),
        rank_context.world_size,
        is_master=rank_context.rank == 0,
        timeout=default_pg_timeout,
        master_listen_fd=listening,
    )
    address = rank_context.addresses[rank_context.rank].rpartition(":")[0]
    own = interface_with(address)
    if own and device.type != "cuda":
        os.environ.setdefault("GLOO_SOCKET_IFNAME", own)
    backend, device_id = ("nccl", device) if device.type == "cuda" else ("gloo", None)
    torch.distributed.init_process_group(
        backend,
        store=store,
        rank=rank_context.rank,
        world_size=rank_context.world_size,
        device_id=device_id,
    )
    return torch.distributed.get_backend()


def wrap(model: nn.Module, device: torch.device, options: Dict[str, Any]) -> Any:
    """Return ``model`` with its gradients averaged over all ranks during the backward pass."""
    device_ids = [device] if device.type == "cuda" else None
    return nn.parallel.DistributedDataParallel(model, device_ids=device_ids, **options)


def bucket_bytes(wrapped: Any) -> List[int]:
    """Return the bytes of each bucket of :func:`wrap`, in the order of reduction.

    DistributedDataParallel has made its buckets by the first backward pass."""
    buckets = wrapped.reducer._get_zeros_like_grad_buckets()
    return [bucket.buffer().nbytes for bucket in buckets]


def all_reduce_together(tensors: Sequence[torch.Tensor], group: Any = None) -> None:
    """All-reduce each tensor over the ranks of ``group``, by default all of them, as
    DistributedDataParallel does with its buckets: all are started one after the other, and then
    waited for."""
    all_reduce = torch.distributed.all_reduce
    works = [all_reduce(tensor, group=group, async_op=True) for tensor in tensors]
    for work in works:
        work.wait()


def count_collectives(run: Callable[[], Any]) -> Dict[str, int]:
    """Count the collectives of ``run()`` by kind, with PyTorch's profiler."""
    with torch.autograd.profiler.profile() as profiled:
        run()
    names = (COLLECTIVES.get(event.name) for event in profiled.function_events)
    return dict(Counter(filter(None, names)))
