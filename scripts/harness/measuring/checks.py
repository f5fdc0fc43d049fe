"""Whether what ran is what was asked. Each raises :class:`harness.adapter.Mismatch` where not."""

from __future__ import annotations

import math
import os
import zlib
from typing import Any, Dict, List, Mapping, Sequence

from harness import precisions
from harness.adapter import Adapter, Mismatch, OwnModels

#: Below it a checksum of a batch: float32, which an all-reduce adds in, holds a sum of 256 of them.
_CHECKSUMS = 2**16


def check_processes(adapter: Adapter, world_size: int) -> int:
    """How many ranks an all-reduce reaches: all of them."""
    reached = adapter.all_reduce(1.0)
    if reached != world_size:
        raise Mismatch(f"an all-reduce of 1 gives {reached:g} over {world_size} ranks")
    return world_size


def check_parameters(built: int, expected: int) -> int:
    """The model as built is the model of the facts."""
    if built != expected:
        raise Mismatch(f"the model has {built} trainable parameters, not {expected}")
    return built


def check_other_batches(adapter: OwnModels) -> None:
    """Ranks of one run have batches of their own: else weights that are the same in the end would
    not show that the gradients were averaged."""
    ranks = adapter.rank_context.world_size
    if ranks == 1:
        return
    checksum = 0
    for array in adapter.batch_arrays():
        checksum = zlib.crc32(array.tobytes(), checksum)
    checksum %= _CHECKSUMS
    if adapter.all_reduce(float(checksum)) == ranks * checksum:
        raise Mismatch(
            f"all {ranks} ranks made the same batch; make must draw it with the framework's own "
            "random numbers, which are seeded for each"
        )


def check_matmuls(precision: str, products: Dict[str, int]) -> Dict[str, int]:
    """As many of the observed matrix products as the precision wants have one of its dtypes."""
    total = sum(products.values())
    if total < 1:
        raise Mismatch("no matrix product was observed, so the precision is not proved")
    asked = precisions.load(precision)
    others = sorted(set(products) - set(asked.dtypes))
    wrong = sum(products[dtype] for dtype in others)
    if total - wrong < asked.share * total:
        ran = f"{wrong} of {total} products ran in {', '.join(others)}"
        raise Mismatch(f"{precision}, but {ran}")
    return products


def compiler_proof(adapter: Adapter) -> Dict[str, Any]:
    """What the adapter tells of the compiler's work, which did not fall back; nothing where none
    was asked for."""
    return {} if adapter.case.compiler == "none" else adapter.compiled()


def check_value(value: float, mode: str, step: int) -> float:
    """Raises ArithmeticError where a loss or output is no finite number."""
    if not math.isfinite(value):
        what = "loss" if mode == "train" else "output"
        raise ArithmeticError(f"{what} is {value} at step {step}")
    return value


def check_cores(asked: List[int]) -> List[int]:
    """The cores this thread may use now: no framework undid the pinning."""
    used = sorted(os.sched_getaffinity(0))
    if asked and not set(used) <= set(asked):
        raise Mismatch(f"pinned to cores {asked}, but the framework moved to {used}")
    return used


def check_same_weights(ranks: Sequence[Mapping[str, Any]]) -> None:
    """Ranks that train together have the same weights at the end; rounding of the sum is allowed
    for (1e-12)."""
    if len(ranks) == 1:
        return
    first = ranks[0].get("weights_checksum")
    for fields in ranks:
        other = fields.get("weights_checksum")
        if first is None or other is None:
            raise Mismatch(f"the weights of rank {fields['rank']} are not finite")
        if abs(first - other) > 1e-12 * max(abs(first), abs(other)):
            raise Mismatch(
                "the ranks have different weights after training together: rank 0 has "
                f"checksum {first!r}, rank {fields['rank']} has {other!r}"
            )
