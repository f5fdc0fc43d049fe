"""Double of a device whose copies take a known time."""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np
from harness.adapter import RankContext
from harness.operations import Operation

from ...frameworks.toy.plain import wait_until

#: Duration of a copy.
COPY_SECONDS = 5e-4


class CopyingDevice:
    """Device whose copies take COPY_SECONDS.
    ``late``: nothing waits for them; ``lost``: the last number does not arrive; ``ran_on``: cores
    of this process during a copy."""

    def __init__(self, late: bool = False, lost: bool = False) -> None:
        self.rank_context = RankContext(0, 0, ["127.0.0.1:1"], "cuda", 1, 0)
        self.late, self.lost, self.done_at = late, lost, 0.0
        self.ran_on: set[int] = set()

    def transfer(self, direction: str, array: Any, pinned: bool) -> Operation:
        self.ran_on = os.sched_getaffinity(0)
        return self.copy(array, COPY_SECONDS)

    def copy(self, array: Any, seconds: float) -> Operation:
        arrived = np.where(np.arange(array.size) < array.size - self.lost, array, np.float32(0))

        def run() -> None:
            self.done_at = max(self.done_at, time.perf_counter()) + seconds

        return Operation(run, lambda: (wait_until(self.done_at), arrived)[1], "float32")

    def synchronize(self) -> None:
        if not self.late:
            wait_until(self.done_at)

    def reset_peak_device_memory(self) -> None:
        """Do nothing: it has none."""
