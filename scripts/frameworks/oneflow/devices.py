"""The device a rank computes on."""

from __future__ import annotations

import oneflow
from harness.adapter import RankContext, require_visible


def take(rank_context: RankContext) -> oneflow.device:
    """Return the device of ``rank_context``. Raises :class:`Unsupported` where it is not there."""
    oneflow.set_num_threads(rank_context.threads)
    if rank_context.accelerator == "cpu":
        return oneflow.device("cpu")
    require_visible("OneFlow", oneflow.cuda.device_count(), rank_context)
    oneflow.cuda.set_device(rank_context.local_rank)
    return oneflow.device("cuda", rank_context.local_rank)
