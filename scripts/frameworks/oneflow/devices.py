"""The device a rank computes on."""

from __future__ import annotations

import os
from typing import Any

import oneflow
from harness.adapter import RankContext, Unsupported, require_visible
from oneflow import sysconfig

#: The wheels of OneFlow 0.9 have machine code for compute capability 6.0 to 8.6, and no PTX that a
#: driver could compile for newer ones.
BUILT_UP_TO = 8


def channels_last() -> bool:
    """Return whether OneFlow's layers take images as (batch, height, width, channels)."""
    return os.environ["ONEFLOW_ENABLE_NHWC"] == "1"


def take(rank_context: RankContext) -> oneflow.device:
    """Return the device of ``rank_context``. Raises :class:`Unsupported` where it is not there, or
    newer than OneFlow's kernels."""
    oneflow.set_num_threads(rank_context.threads)
    if rank_context.accelerator == "cpu":
        return oneflow.device("cpu")
    if not sysconfig.with_cuda():
        raise Unsupported(f"OneFlow {oneflow.__version__} is a build without CUDA")
    require_visible("OneFlow", oneflow.cuda.device_count(), rank_context)
    oneflow.cuda.set_device(rank_context.local_rank)
    device = oneflow.device("cuda", rank_context.local_rank)
    major, minor = oneflow.cuda.get_device_capability(device)
    if major > BUILT_UP_TO and oneflow.__version__.startswith("0."):
        raise Unsupported(
            f"OneFlow {oneflow.__version__} has kernels for compute capability 6.0 to 8.6; the "
            f"device is {oneflow.cuda.get_device_name(device)}, compute capability {major}.{minor}"
        )
    return device


def copied(array: Any, device: oneflow.device) -> oneflow.Tensor:
    """Return a copy of ``array`` on the device; a tensor is returned as it is. To a GPU it goes
    from page-locked memory, which OneFlow's virtual machine copies by a stream of its own while the
    previous step runs."""
    if isinstance(array, oneflow.Tensor):
        return array
    if device.type == "cuda":
        return oneflow.tensor(array.copy()).pin_memory().to(device)
    return oneflow.tensor(array.copy(), device=device)
