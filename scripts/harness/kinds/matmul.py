"""Matmuls, or batches of them, in several shapes.

Operands are random and stay the same. The kind `peak_flops` keeps the fastest of several sizes,
which is what a device can do. This kind shows what a framework reaches for given shapes. A sample
of each result is checked against float64. Standard library and numpy.
"""

from __future__ import annotations

from typing import Dict, Iterator, List

from core.matmuls import MatmulShape

from harness.common_capabilities import SingleOperations
from harness.kind import Context, Parameter, Workload
from harness.measuring import blocks
from harness.measuring.micro.matmuls import check_matmul, operands, shapes, shapes_of
from harness.measuring.sweep import Block, GridPoint, PointFigure, Sweep, per_second
from harness.measuring.verification import rounding
from harness.operations import MATMUL


class Matmul(Sweep):
    """Matmuls alone: FLOP/s of each shape, in the dtype of the case's precision."""

    needs = SingleOperations
    axes = ("framework", "nodes", "devices_per_node", "precision")
    parameters = (
        Parameter(
            "shapes", shapes, "", "m x k x n of each product, or batch x m x k x n",
            "256x256x256 1024x1024x1024 16x256x64x256",
        ),
        *blocks.parameters("a shape"),
    )  # fmt: skip
    summaries = (("highest_rate", "rate", max),)

    def grid(self, workload: Workload) -> List[GridPoint]:
        asked = shapes_of(workload.parameters["shapes"])
        return [GridPoint(dict(shape._asdict()), shape) for shape in asked]

    def figures(self, workload: Workload, subject: MatmulShape) -> Dict[str, PointFigure]:
        # Devices share power, cooling and memory: the slowest of several counts, as for the peak.
        rate = per_second(1e-12 * subject.operations)
        return {"rate": PointFigure("TFLOP/s", "higher", "min", rate)}

    def run(self, context: Context, subject: MatmulShape) -> Iterator[Block]:
        random = blocks.random_of(context)
        first, second = operands(subject, random)
        product = context.adapter.operation(MATMUL, [first, second])
        dtype = rounding.check_ran_in(context, product.dtype)
        timing = blocks.measure(context, product)
        error = check_matmul(product.result(), first, second, dtype, random)
        yield {**timing, "error": error}
