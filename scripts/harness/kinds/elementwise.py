"""Operations on each element of large arrays, which are limited by memory bandwidth.

Three of STREAM's four kernels are among them; the fourth, a copy, is the direction device_to_device
of the kind `transfer`. Bandwidth counts as STREAM does: each operand is read once, and the result
written once."""

from __future__ import annotations

from typing import Dict, Iterator, List

from harness.capabilities import SingleOperations
from harness.kind import Context, Metric, Parameter, Workload, at_least
from harness.measuring import blocks
from harness.measuring.operands import check_elements
from harness.measuring.sweep import Block, GridPoint, Sweep, bandwidth
from harness.operations import ADD, EXP, SCALE, TRIAD

#: Number of arrays that each operation reads.
READ = {ADD: 2, EXP: 1, SCALE: 1, TRIAD: 2}


class Elementwise(Sweep):
    """Elementwise operations: bytes per second of each, in the dtype of the case's precision."""

    needs = SingleOperations
    names_points = False
    parameters = (
        Parameter("elements", at_least(1), "", "of each array", 16 * 2**20),
        *blocks.parameters("each operation"),
    )

    def grid(self, workload: Workload) -> List[GridPoint]:
        return [GridPoint({"operation": name}, name) for name in READ]

    def figures(self, workload: Workload, subject: str) -> Dict[str, Metric]:
        return {subject: Metric("GB/s", "higher", "sum", bandwidth)}

    def run(self, context: Context, subject: str) -> Iterator[Block]:
        import numpy as np

        elements = context.workload.parameters["elements"]
        drawn = blocks.random_of(context).uniform(-1, 1, (READ[subject], elements))
        arrays = list(drawn.astype(np.float32))
        ran = context.adapter.primitives().operation(subject, arrays)
        taken = blocks.measure(context, ran)
        check_elements(subject, arrays, ran.result(), ran.dtype)
        moved = (READ[subject] + 1) * (4 if ran.dtype == "float32" else 2) * elements
        yield {**taken, "bytes": moved}
