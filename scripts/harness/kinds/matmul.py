"""Products of two matrices, or of batches of them, in several shapes.

Operands are random and stay the same. `peak` multiplies a chain of square matrices for seconds and
keeps the fastest size: that is what a device can do. This is what a framework makes of the shapes
that somebody asks for. A sample of each result is held against float64. Standard library and numpy.
"""

from __future__ import annotations

import time
from typing import Any, Dict, Mapping, Optional, Tuple

from harness.kind import (
    Context,
    Kind,
    Metric,
    Parameter,
    Subject,
    above_zero,
    at_least,
    one_of,
    point,
)
from harness.measuring import blocks, libraries
from harness.measuring.checks import check_cores, check_products
from harness.measuring.micro.products import check_product, operands
from harness.measuring.micro.shapes import Shape, shapes, shapes_of
from harness.operations import MATMUL, SingleOperations, Transposed


class Matmul(Kind):
    """Floating-point operations per second of products in the dtype of the case's precision."""

    needs = SingleOperations
    independent_ranks = True
    axes = ("framework", "nodes", "devices_per_node", "precision")
    parameters = (
        Parameter(
            "shapes", shapes, "", "m x k x n of each product, or batch x m x k x n",
            "256x256x256 1024x1024x1024 16x256x64x256",
        ),
        Parameter(
            "transposed", one_of("neither", "first", "second", "both"), "",
            "which operand lies transposed in memory", "neither",
        ),
        Parameter("blocks", at_least(1), "", "how often a shape is timed", blocks.BLOCKS),
        Parameter(
            "block_seconds", above_zero, "s", "how long each of them takes at least",
            blocks.BLOCK_SECONDS,
        ),
    )  # fmt: skip

    def metrics(self, subject: Subject) -> Dict[str, Metric]:
        asked = shapes_of(subject.parameters["shapes"])

        def highest(rank: Mapping[str, Any]) -> Optional[float]:
            return max(filter(None, (rate(rank, shape) for shape in asked)), default=None)

        def at(shape: Shape) -> Tuple[str, Metric]:
            metric = Metric("TFLOP/s", "higher", "min", lambda rank: rate(rank, shape))
            return point("rate", shape.at, metric)

        # Devices share power, cooling and memory: of several the slowest counts, as for the peak.
        best = Metric("TFLOP/s", "higher", "min", highest)
        return {"highest_rate": best, **dict(map(at, asked))}

    def measure(self, context: Context) -> None:
        fields, parameters = context.fields, context.subject.parameters
        fields["blocks"] = []
        start = time.perf_counter()
        for shape in shapes_of(parameters["shapes"]):
            context.report.enter(f"product {shape}")
            fields["blocks"].append(_measured(context, shape))
        fields["window_start"] = start
        fields["window_seconds"] = time.perf_counter() - start
        fields["cores"] = check_cores(context.cores)
        fields["libraries"] = libraries.in_use()


def rate(rank: Mapping[str, Any], shape: Shape) -> Optional[float]:
    """TFLOP/s of the median block."""
    seconds = blocks.seconds_of_one(rank, shape.at)
    return None if seconds is None else 1e-12 * shape.operations / seconds


def _measured(context: Context, shape: Shape) -> Dict[str, Any]:
    import numpy as np

    adapter, parameters = context.adapter, context.subject.parameters
    random = np.random.RandomState(adapter.place.seed)
    first, second = operands(shape, random)
    transposed: Transposed = (
        parameters["transposed"] in ("first", "both"),
        parameters["transposed"] in ("second", "both"),
    )
    given = [_laid_out(array, swap) for array, swap in zip((first, second), transposed)]
    product = adapter.operation(MATMUL, given, transposed)
    dtypes = {product.dtype: 1}
    context.fields["products"] = check_products(context.subject.case.precision, dtypes)
    found = blocks.measure(
        adapter,
        product.run,
        product.result,
        parameters["blocks"],
        parameters["block_seconds"],
        context.barrier,
    )
    error = check_product(product.result(), first, second, product.dtype, random)
    return {"at": shape.at, **found, "error": error}


def _laid_out(array: Any, transposed: bool) -> Any:
    import numpy as np

    return np.ascontiguousarray(np.swapaxes(array, -1, -2)) if transposed else array
