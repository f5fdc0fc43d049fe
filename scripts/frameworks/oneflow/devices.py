"""The device a rank computes on."""

from __future__ import annotations

import oneflow
from harness.adapter import Place, require_visible


def take(place: Place) -> oneflow.device:
    """The device of ``place``. Raises :class:`Unsupported` where it is not there."""
    oneflow.set_num_threads(place.threads)
    if place.accelerator == "cpu":
        return oneflow.device("cpu")
    require_visible("OneFlow", oneflow.cuda.device_count(), place)
    oneflow.cuda.set_device(place.local_rank)
    return oneflow.device("cuda", place.local_rank)
