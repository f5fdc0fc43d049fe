"""Launch overhead: time to dispatch an operation that computes little or nothing.

The operation adds small arrays, of one element by default; with no element, only the framework's
own work per call is left. Calls come from Python as users make them, one after the other, and the
last is waited for. Standard library and numpy.
"""

from __future__ import annotations

from typing import Dict, Iterator, List

from harness.common_capabilities import SingleOperations
from harness.kind import Context, Parameter, Workload, at_least
from harness.measuring import blocks
from harness.measuring.micro.samples import check_elements
from harness.measuring.sweep import Block, GridPoint, PointFigure, Sweep, per_second, scaled
from harness.operations import ADD


class Launch(Sweep):
    """Launch overhead: microseconds per call of a small operation, and calls per second."""

    needs = SingleOperations
    names_points = False
    axes = ("framework", "nodes", "devices_per_node", "precision")
    parameters = (
        Parameter("elements", at_least(0), "", "of each operand; 0: an empty operation", 1),
        *blocks.parameters("a row of them"),
    )

    def grid(self, workload: Workload) -> List[GridPoint]:
        elements = workload.parameters["elements"]
        return [GridPoint({"elements": elements}, elements)]

    def figures(self, workload: Workload, subject: int) -> Dict[str, PointFigure]:
        return {
            "time": PointFigure("us", "lower", "max", scaled(1e6)),
            "operations_per_second": PointFigure("1/s", "higher", "min", per_second(1)),
        }

    def run(self, context: Context, subject: int) -> Iterator[Block]:
        import numpy as np

        first, second = blocks.random_of(context).standard_normal((2, subject)).astype(np.float32)
        added = context.adapter.operation(ADD, [first, second])
        taken = blocks.measure(context, added)
        check_elements(ADD, np.asarray(added.result()), first + second, added.dtype)
        yield taken
