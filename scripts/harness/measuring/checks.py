"""Checks that raise :class:`harness.adapter.Mismatch` unless the executed work is the requested
work, and the status of a rank that an error ended."""

from __future__ import annotations

import contextlib
import math
import os
import re
import time
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from core import precisions
from core.parallelism import DATA, Layout
from core.text import shorten

from harness.adapter import Accumulation, Adapter, Case, Collectives, Mismatch, Unsupported
from harness.capabilities import SEND, Sharded
from harness.hardware import file_text
from harness.kind import Context
from harness.operations import ALL_GATHER, ALL_REDUCE, REDUCE_SCATTER
from harness.report import error_text

#: Bytes of the arrays (float32) in the first all-reduces: one dominated by latency, and one as
#: large as a bucket of gradients.
_PREFLIGHT_BYTES = (2**12, 2**24)
#: Capabilities that an adapter needs for a non-default value of an axis; () if it needs none.
CAPABILITIES: Dict[str, Tuple[type, ...]] = {
    "accumulation": (Accumulation,),
    "parallelism": (Sharded,),
    "input": (),  # kinds that read samples require their own capability
}
#: Faults of the machine that a framework's refusal may quote. They say nothing about the framework.
_NO_MEMORY = re.compile(r"out of memory|cannot allocate memory|bad_alloc", re.IGNORECASE)
_FAULT = re.compile(
    r"no space left|disk quota exceeded|permission denied|operation not permitted|"
    r"read-only file system|input/output error|too many open files|name resolution|"
    r"name or service not known|temporarily unavailable",
    re.IGNORECASE,
)


def check_preloaded(libraries: str) -> None:
    """Raise Mismatch where one of the ``libraries`` in LD_PRELOAD is not in this process: the
    linker only warns that a library is missing."""
    mapped = file_text("/proc/self/maps") or ""
    for library in filter(None, re.split("[ :]", libraries)):
        names = {os.path.basename(path) for path in (library, os.path.realpath(library))}
        if not any(f"/{name}" in mapped for name in names):
            raise Mismatch(f"LD_PRELOAD: {library} was not loaded")


def check_all_reduce(adapter: Collectives) -> List[Dict[str, Any]]:
    """Check and time the all-reduce of several ranks before anything else is timed.

    Returns ``{"bytes": of an array, "seconds": of each all-reduce}`` for each size."""
    import numpy as np

    rank_context = adapter.rank_context
    reached = adapter.all_reduce(1.0)
    if reached != rank_context.world_size:
        raise Mismatch(f"an all-reduce of 1 gives {reached:g} over {rank_context.world_size} ranks")
    timings = []
    for size in _PREFLIGHT_BYTES:
        # Whole numbers, whose sums are exact in float32 over up to 500 ranks. Arrays differ between
        # ranks, so that omitted or repeated ranks are detected.
        base = np.resize(np.arange(127, dtype=np.float32), size // 4)
        all_reduce = adapter.prepare_all_reduce(base * (rank_context.rank + 1))
        all_reduce.run()
        expected = base * (rank_context.world_size * (rank_context.world_size + 1) // 2)
        wrong = np.flatnonzero(np.asarray(all_reduce.result()).reshape(-1) != expected)
        if wrong.size:
            raise Mismatch(
                f"pre-flight: an all-reduce of {size} bytes over {rank_context.world_size} ranks "
                f"is wrong in {wrong.size} of {expected.size} elements, first at index {wrong[0]}"
            )
        seconds = []
        for _ in range(4):
            adapter.synchronize()
            start = time.perf_counter()
            all_reduce.run()
            adapter.synchronize()
            seconds.append(time.perf_counter() - start)
        timings.append({"bytes": size, "seconds": seconds})
    return timings


def check_batches(case: Case, ranks: Sequence[Mapping[str, Any]], remedy: str = "") -> None:
    """Check that ranks of a replica had the same batch, and that replicas had different batches.

    With equal batches, equal weights in the end would not prove that gradients were averaged.
    Batches read from files have no checksum. ``remedy`` ends the message about equal batches."""
    first_replica: Dict[int, int] = {}
    of_replica: Dict[int, int] = {}
    for fields in ranks:
        if "batch_checksum" not in fields:
            continue
        checksum, replica = fields["batch_checksum"], case.layout.replica(fields["rank"])
        if of_replica.setdefault(replica, checksum) != checksum:
            raise Mismatch(f"ranks that share replica {replica} had different batches")
        first = first_replica.setdefault(checksum, replica)
        if first != replica:
            raise Mismatch(f"replicas {first} and {replica} had the same batch{remedy}")


def check_matmuls(precision: str, products: Dict[str, int]) -> Dict[str, int]:
    """Check that enough of the observed matmuls run in a dtype of the precision; return the counts.

    ``products``: number of matmuls by dtype."""
    total = sum(products.values())
    if total < 1:
        raise Mismatch("no matmul was observed, so the precision is not verified")
    requested = precisions.known()[precision]
    others = sorted(set(products) - set(requested.dtypes))
    wrong = sum(products[dtype] for dtype in others)
    if total - wrong < requested.share * total:
        ran = f"{wrong} of {total} matmuls ran in {', '.join(others)}"
        raise Mismatch(f"{precision}, but {ran}")
    return products


def compiler_evidence(adapter: Adapter) -> Dict[str, Any]:
    """Return the adapter's evidence that its compiler did not fall back; without a compiler,
    evidence of functions that a user's model compiled itself."""
    if adapter.case.compiler == "none":
        return adapter.compiled_by_model()
    return adapter.compiled()


def check_value(value: float, mode: str, step: int) -> float:
    """Return ``value``, a loss or output. Raises ArithmeticError where it is not finite."""
    if not math.isfinite(value):
        quantity = "loss" if mode == "train" else "output"
        raise ArithmeticError(f"{quantity} is {value} at step {step}")
    return value


def check_cores(pinned: List[int]) -> List[int]:
    """Return the cores that this thread may use. Raises Mismatch where the framework undid the
    pinning."""
    used = sorted(os.sched_getaffinity(0))
    if pinned and not set(used) <= set(pinned):
        raise Mismatch(f"pinned to cores {pinned}, but the framework moved to {used}")
    return used


def check_same_weights(ranks: Sequence[Mapping[str, Any]]) -> None:
    """Check that ranks that trained together have the same checksum of weights, up to rounding
    (1e-12)."""
    if len(ranks) == 1:
        return
    first = ranks[0].get("weights_checksum")
    for fields in ranks:
        checksum = fields.get("weights_checksum")
        if first is None or checksum is None:
            raise Mismatch(f"the weights of rank {fields['rank']} are not finite")
        if abs(first - checksum) > 1e-12 * max(abs(first), abs(checksum)):
            raise Mismatch(
                "the ranks have different weights after training together: rank 0 has "
                f"checksum {first!r}, rank {fields['rank']} has {checksum!r}"
            )


def note_sharding(context: Context) -> None:
    """Store the parameters that this rank holds and its collectives per step, after the timed
    region, where devices share more than the data."""
    if context.workload.case.parallelism != DATA:
        context.fields["held_parameters"] = context.adapter.held_parameters()
        context.fields["collectives"] = context.adapter.collective_counts()


def check_sharding(case: Case, ranks: Sequence[Mapping[str, Any]]) -> None:
    """Raise Mismatch where a rank holds the whole model, where all ranks together do not hold it,
    or where collectives are missing."""
    if case.parallelism == DATA:
        return
    held = [rank["held_parameters"] for rank in ranks]
    total = ranks[0]["trainable_parameters"]
    for rank, count in zip(ranks, held):
        check_held(case, rank["rank"], count, total)
        check_collectives(case.parallelism, case.layout, rank["rank"], rank["collectives"])
    if sum(held) < total * case.layout.data:
        raise Mismatch(f"all ranks together hold {sum(held)} of {total} parameters")


def check_held(case: Case, rank: int, held: int, total: int) -> None:
    """Check that a rank holds only part of the parameters.

    With ``fsdp`` alone a rank holds at most twice its share, because extents may not divide
    evenly."""
    if held >= total:
        raise Mismatch(f"{case.parallelism}, but rank {rank} holds all {total} parameters")
    layout = case.layout
    if layout.fsdp == case.devices and held * layout.fsdp > 2 * total:
        raise Mismatch(
            f"{case.parallelism}, but rank {rank} holds {held} of {total} parameters, more than "
            f"twice its share of {layout.fsdp} ranks"
        )


def check_collectives(
    parallelism: str, layout: Layout, rank: int, counts: Mapping[str, int]
) -> Mapping[str, int]:
    """Check that a rank takes part in the collectives of each of its groups; return their
    counts."""
    gathers, sums = counts.get(ALL_GATHER, 0), counts.get(REDUCE_SCATTER, 0)
    reduces, sends = counts.get(ALL_REDUCE, 0), counts.get(SEND, 0)
    missing = {
        "gathers of parameters": layout.fsdp > 1 and not gathers,
        "sums of gradients": (layout.fsdp > 1 or layout.data > 1) and not sums + reduces,
        "sums of a layer's parts": layout.tensor > 1 and not reduces + sums,
        "messages between stages": layout.pipeline > 1 and not sends,
    }
    for name, is_missing in missing.items():
        if is_missing:
            raise Mismatch(f"{parallelism}, but a step of rank {rank} has no {name}")
    return counts


def describe(error: BaseException, adapter: Optional[Adapter]) -> Dict[str, str]:
    """Return status and reason for an exception that ended the rank."""
    if isinstance(error, Unsupported):
        reason, status = str(error), "unsupported"
        if _NO_MEMORY.search(reason):
            status = "oom"
        elif _FAULT.search(reason):
            status = "failed"
        return {"status": status, "reason": shorten(reason)}
    memory = isinstance(error, MemoryError)
    if adapter is not None and not isinstance(error, Mismatch):
        with contextlib.suppress(Exception):  # a framework that was not imported cannot answer
            memory = memory or adapter.out_of_memory(error)
    if memory:
        return {"status": "oom", "reason": error_text(error)}
    return {"status": "failed", "reason": error_text(error)}
