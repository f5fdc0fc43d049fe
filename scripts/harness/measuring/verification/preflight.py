"""Before anything is timed on several ranks: is their all-reduce right, and how fast is it?

Standard library and numpy.
"""

from __future__ import annotations

import time
from typing import Any, Dict, List

from harness.adapter import Collectives, Mismatch

#: Bytes of float32: small enough to be told by its latency, and about a bucket of gradients.
SIZES = (2**12, 2**24)
ROUNDS = 4
#: Whole numbers below it: their sums over up to 500 ranks are exact in float32.
_LARGEST = 127


def check(adapter: Collectives) -> List[Dict[str, Any]]:
    """``{"bytes": of an array, "seconds": of each all-reduce}`` for each size, as this rank sees
    it. Raises Mismatch where a sum is wrong."""
    import numpy as np

    rank_context = adapter.rank_context
    found = []
    for size in SIZES:
        base = np.arange(size // 4) % _LARGEST
        # Each rank another array, so that none can be left out or counted twice unseen.
        all_reduce = adapter.prepare_all_reduce((base * (rank_context.rank + 1)).astype(np.float32))
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
        found.append({"bytes": size, "seconds": seconds})
    return found
