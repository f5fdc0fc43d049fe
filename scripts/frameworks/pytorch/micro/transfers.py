"""Copies between the host and a GPU, within it, and from one to another."""

from __future__ import annotations

from typing import Any

import torch
from harness.operations import Operation
from harness.transfers import DEVICE_TO_HOST, HOST_TO_DEVICE


def transfer(direction: str, array: Any, pinned: bool, device: torch.device) -> Operation:
    """Prepare a copy of ``array`` in a direction; see :class:`harness.transfers.Transfers`. Copies
    of pinned memory are only enqueued."""
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


def between(
    sender: torch.device, receiver: torch.device, array: Any, own: torch.device
) -> Operation:
    """Prepare a copy of ``array`` between two devices; see
    :class:`harness.transfers.PairTransfers`. ``own``: the device of this rank."""
    source = torch.from_numpy(array).to(sender)
    target = torch.zeros_like(source, device=receiver)

    def run() -> None:
        target.copy_(source, non_blocking=True)
        if own.type == "cuda":
            # Who waits for this rank's device waits for the receiver's copy, too.
            stream = torch.cuda.current_stream(receiver)
            torch.cuda.current_stream(own).wait_stream(stream)

    return Operation(run, lambda: target.cpu().numpy(), "float32")
