"""The peak of a device: how fast the framework multiplies two large square matrices there.

Both are random, scaled so that a chain of products neither grows nor vanishes: on some devices the
speed depends on what is multiplied. Standard library and numpy.
"""

from __future__ import annotations

import math
import time
from typing import Any, Callable, Dict, List

from harness.adapter import Adapter

SIZES = (512, 1024, 2048, 4096, 8192)
BLOCKS = 3  # of products that are timed together; the fastest counts, for disturbances only slow
BLOCK_SECONDS = 0.1  # at least, so that neither the clock nor the waiting for the device counts
#: A size is tried if what it will take, by the size before it, fits into what is left of this.
SECONDS = 3.0


def measure(adapter: Adapter, check: Callable[[str], Any]) -> List[Dict[str, Any]]:
    """Seconds of blocks of products for each size that was tried: ``{"size": rows of a matrix,
    "products": in a block, "seconds": of each block}``. ``check`` is told the dtype of each size's
    products before they are timed, and raises where it is not what was asked."""
    import numpy as np

    random = np.random.RandomState(adapter.place.seed)
    found: List[Dict[str, Any]] = []
    left, once = SECONDS, 0.0
    for size in SIZES:
        if found and 8 * once * (BLOCKS + 2) > left:  # twice the rows are 8 times the work
            break
        # By eigenvalues of at most about one the chain keeps its size.
        first = (random.standard_normal((size, size)) / math.sqrt(size)).astype(np.float32)
        second = random.standard_normal((size, size)).astype(np.float32)
        product = adapter.product(first, second)
        check(product.dtype)
        _time(adapter, product.multiply, 1)  # compiles, and makes room for the result
        once = _time(adapter, product.multiply, 1)
        count = max(1, math.ceil(BLOCK_SECONDS / max(once, 1e-9)))
        seconds = [_time(adapter, product.multiply, count) for _ in range(BLOCKS)]
        once = min(seconds) / count
        left -= sum(seconds)
        found.append({"size": size, "products": count, "seconds": seconds})
    return found


def _time(adapter: Adapter, multiply: Callable[[], Any], count: int) -> float:
    adapter.synchronize()
    start = time.perf_counter()
    for _ in range(count):
        multiply()
    adapter.synchronize()
    return time.perf_counter() - start
