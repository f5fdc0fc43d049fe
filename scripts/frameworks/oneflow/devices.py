"""The device a rank computes on."""

from __future__ import annotations

import oneflow
from harness.adapter import Place, Unsupported


def take(place: Place) -> oneflow.device:
    """The device of ``place``. Raises :class:`Unsupported` where it is not there."""
    oneflow.set_num_threads(place.threads)
    if place.accelerator == "cpu":
        return oneflow.device("cpu")
    if place.accelerator != "cuda":
        raise Unsupported(f"no support for accelerator {place.accelerator}")
    visible = oneflow.cuda.device_count()
    if place.local_rank >= visible:
        raise Unsupported(
            f"OneFlow sees {visible} CUDA devices, too few for local rank {place.local_rank}"
        )
    oneflow.cuda.set_device(place.local_rank)
    return oneflow.device("cuda", place.local_rank)


def name(device: oneflow.device) -> str:
    if device.type == "cpu":
        return "cpu"
    return f"{device} {oneflow.cuda.get_device_name(device)}"
