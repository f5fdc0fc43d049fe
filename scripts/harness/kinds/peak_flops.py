"""Peak FLOPS of a device: how fast the framework multiplies two large square matrices.

Both are dense and random, because the speed depends on the values on some devices. Processors are
faster in bursts, and training takes longer than a burst. So the size that is fastest in short
blocks is then multiplied for seconds, and this rate is the peak. Several devices measure at once,
because they share power and memory; the slowest counts."""

from __future__ import annotations

import time
from functools import partial
from typing import Any, Callable, Dict, List, Mapping, Tuple

from harness.adapter import Collectives, Unsupported, require
from harness.capabilities import SingleOperations
from harness.kind import Context, Kind, Metric, Parameter, Workload, above_zero
from harness.measuring import rounding
from harness.measuring.blocks import runs_of_block, time_together
from harness.measuring.checks import check_cores
from harness.measuring.operands import check_matmul, matmul_operands
from harness.operations import MatmulShape, Operation

SIZES = (256, 512, 1024, 2048, 4096, 8192)
#: Blocks of matmuls that are timed together, each of at least this many seconds, so that reading
#: the clock and waiting for the device take no noticeable part. The fastest block counts, because
#: disturbances only slow blocks down.
BLOCKS, BLOCK_SECONDS = 3, 0.1
#: Seconds for all sizes. A size is tried if its time, predicted from the previous size, still fits.
SECONDS = 3.0
Check = Callable[[str], Any]


class PeakFlopsKind(Kind):
    """Peak FLOPS: FLOP/s of a large matmul in the dtype of the case's precision."""

    needs = SingleOperations
    parameters = (
        Parameter("sustained_seconds", above_zero, "s", "how long the fastest size runs", 2.0),
    )
    # The dtype of a precision may depend on the matmuls of the model.
    axes = ("framework", "model", "nodes", "devices_per_node", "precision", "sequence_length")

    def metrics(self, workload: Workload) -> Dict[str, Metric]:
        rate = Metric("TFLOP/s", "higher", "min", lambda rank: tflops_of(rank["sustained"]))
        return {"peak": rate}

    def measure(self, context: Context) -> None:
        fields = context.fields
        context.report.enter("matmuls")
        check = partial(rounding.check_ran_in, context)
        fields["matmuls"] = measure(context.adapter, check)
        fastest = max(fields["matmuls"], key=tflops_of)
        if context.rank_context.world_size > 1:
            require(context.adapter, Collectives)
            # a barrier, so that all ranks multiply at the same time
            context.adapter.all_reduce(0.0)
        seconds = context.workload.parameters["sustained_seconds"]
        fields["sustained"] = sustain(context.adapter, fastest, seconds, check)
        fields["cores"] = check_cores(context.cores)


def tflops_of(block: Mapping[str, Any]) -> float:
    """Return the TFLOP/s of a block. A matmul of n rows takes n^3 multiplications and n^3
    additions."""
    return float(2e-12 * block["size"] ** 3 * block["count"] / min(block["seconds"]))


def measure(adapter: SingleOperations, check: Check) -> List[Dict[str, Any]]:
    """Time blocks of matmuls for at least two sizes.

    Returns for each ``{"size": rows of a matrix, "count": per block, "seconds": of each
    block}``. ``check``: raises where a dtype is wrong. Raises Unsupported where there is no time
    for a second size, because the rate may still grow with the size then."""
    points: List[Dict[str, Any]] = []
    left, once = SECONDS, 0.0
    for size in SIZES:
        if points and 8 * once * (BLOCKS + 2) > left:  # twice the rows take 8 times the work
            break
        product, *_ = square_matmul(adapter, size)
        check(product.dtype)
        time_together(adapter, product.run, 1)  # the first call compiles and allocates the result
        count = runs_of_block(partial(time_together, adapter, product.run), BLOCK_SECONDS)
        seconds = [time_together(adapter, product.run, count) for _ in range(BLOCKS)]
        once = min(seconds) / count
        left -= sum(seconds)
        points.append({"size": size, "count": count, "seconds": seconds})
    if len(points) < 2:
        raise Unsupported(
            f"no peak: a product of {SIZES[0]} rows takes {once:.3g} s, too long for larger ones"
        )
    return points


def sustain(
    adapter: SingleOperations, fastest: Mapping[str, Any], seconds: float, check: Check
) -> Dict[str, Any]:
    """Repeat the matmuls of the ``fastest`` block of :func:`measure` for ``seconds``, and check the
    last one's result.

    Returns an entry like those of :func:`measure`, whose ``seconds`` are the whole time alone. Each
    block is synchronized, so that no queue grows."""
    product, left, right, random = square_matmul(adapter, fastest["size"])
    time_together(adapter, product.run, 1)
    start, count = time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        time_together(adapter, product.run, fastest["count"])
        count += fastest["count"]
    taken = time.perf_counter() - start
    check_matmul(product.result(), left, right, check(product.dtype), random)
    return {"size": fastest["size"], "count": count, "seconds": [taken]}


def square_matmul(adapter: SingleOperations, size: int) -> Tuple[Operation, Any, Any, Any]:
    """Prepare a matmul of two random matrices with ``size`` rows. Return it, both matrices, and the
    generator of random numbers."""
    import numpy as np

    random = np.random.RandomState(adapter.rank_context.seed)
    left, right = matmul_operands(MatmulShape(1, size, size, size), random)
    return adapter.primitives().layer_matmul(left, right), left, right, random
