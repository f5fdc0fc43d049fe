"""Verify and time the all-reduce of several ranks before anything else is timed.

Standard library and numpy.
"""

from __future__ import annotations

import time
from typing import Any, Dict, List

from harness.adapter import Collectives, Mismatch

#: Bytes of float32 arrays: one dominated by latency, and one like a bucket of gradients.
SIZES = (2**12, 2**24)
ROUNDS = 4
#: Upper limit of the whole numbers to sum: exact in float32 over up to 500 ranks.
_LARGEST = 127


def check(adapter: Collectives) -> List[Dict[str, Any]]:
    """Return ``{"bytes": of an array, "seconds": of each all-reduce}`` for each size. Raises
    Mismatch where a sum is wrong."""
    import numpy as np

    rank_context = adapter.rank_context
    timings = []
    for size in SIZES:
        base = np.resize(np.arange(_LARGEST, dtype=np.float32), size // 4)
        # Arrays differ between ranks, so that omitted or repeated ranks are detected.
        all_reduce = adapter.prepare_all_reduce(base * (rank_context.rank + 1))
        all_reduce.run()
        expected = base * (rank_context.world_size * (rank_context.world_size + 1) // 2)
        wrong = np.flatnonzero(np.asarray(all_reduce.result()).reshape(-1) != expected)
        if wrong.size:
            raise Mismatch(
                f"pre-flight: an all-reduce of {size} bytes over {rank_context.world_size} ranks "
                f"is wrong in {wrong.size} of {expected.size} elements, first in number {wrong[0]}"
            )
        seconds = []
        for _ in range(ROUNDS):
            adapter.synchronize()
            start = time.perf_counter()
            all_reduce.run()
            adapter.synchronize()
            seconds.append(time.perf_counter() - start)
        timings.append({"bytes": size, "seconds": seconds})
    return timings
