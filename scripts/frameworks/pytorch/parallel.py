"""Several ranks: one process each, the gradients averaged by DistributedDataParallel."""

from __future__ import annotations

import torch
import torch.distributed
from torch import nn

OPTIONS = {
    "gradient_as_bucket_view": True,  # spares the copy between gradients and buckets
    "static_graph": True,  # every parameter has a gradient, once, in every step
    # running statistics stay each rank's own: a training step does not read them, and the other
    # frameworks do not send them either (`forward_sync_buffers` in newer versions, which warn)
    "broadcast_buffers": False,
}


def join(device: torch.device) -> str:
    """Join the process group that the environment describes (``MASTER_ADDR``, ``MASTER_PORT``,
    ``RANK``, ``WORLD_SIZE``); returns its back-end."""
    if device.type == "cuda":
        torch.distributed.init_process_group("nccl", device_id=device)
    else:
        torch.distributed.init_process_group("gloo")
    return torch.distributed.get_backend()


def wrap(model: nn.Module, device: torch.device) -> nn.Module:
    """``model`` with its gradients averaged over all ranks during the backward pass."""
    device_ids = [device] if device.type == "cuda" else None
    return nn.parallel.DistributedDataParallel(model, device_ids=device_ids, **OPTIONS)


def total(value: float, device: torch.device) -> float:
    """Sum of ``value`` over all ranks."""
    tensor = torch.tensor(value, dtype=torch.float64, device=device)
    sum_in_place(tensor)
    return tensor.item()


def sum_in_place(tensor: torch.Tensor) -> None:
    """Replace each rank's tensor by the sum over all ranks."""
    torch.distributed.all_reduce(tensor)
