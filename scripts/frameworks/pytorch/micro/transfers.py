"""Copies between the host and a GPU, and within it."""

from __future__ import annotations

from typing import Any

import torch
from harness.operations import Operation
from harness.transfers import DEVICE_TO_HOST, HOST_TO_DEVICE


def transfer(direction: str, array: Any, pinned: bool, device: torch.device) -> Operation:
    """See :class:`harness.transfers.Transfers`. Copies of pinned memory are only enqueued."""
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
