"""Operations on each element of large arrays, which are limited by memory bandwidth.

Three of STREAM's four kernels are among them; the fourth, a copy, is the direction device_to_device
of the kind `transfer`. Bandwidth counts as STREAM does: each operand is read once, and the result
written once. Standard library and numpy.
"""

from __future__ import annotations

from typing import Any, Dict, Mapping

from harness.kind import Context, Kind, Metric, Parameter, Workload, at_least
from harness.measuring import blocks
from harness.measuring.micro.elementwise import check_elements, exact
from harness.operations import ADD, EXP, SCALE, TRIAD, SingleOperations

#: Number of arrays that each operation reads.
READ = {ADD: 2, EXP: 1, SCALE: 1, TRIAD: 2}


class Elementwise(Kind):
    """Elementwise operations: bytes per second of each, in the dtype of the case's precision."""

    needs = SingleOperations
    independent_ranks = True
    axes = ("framework", "nodes", "devices_per_node", "precision")
    parameters = (
        Parameter("elements", at_least(1), "", "of each array", 16 * 2**20),
        *blocks.parameters("each operation"),
    )

    def metrics(self, workload: Workload) -> Dict[str, Metric]:
        def bandwidth(name: str) -> Metric:
            return Metric("GB/s", "higher", "sum", lambda rank: _bandwidth(rank, name))

        return {name: bandwidth(name) for name in READ}

    def measure(self, context: Context) -> None:
        import numpy as np

        adapter, parameters = context.adapter, context.workload.parameters
        random = np.random.RandomState(adapter.rank_context.seed)
        with blocks.recorded_blocks(context) as timed:
            for name, reads in READ.items():
                context.report.enter(name)
                shape = (reads, parameters["elements"])
                arrays = list(random.uniform(-1, 1, shape).astype(np.float32))
                ran = adapter.operation(name, arrays)
                taken = blocks.measure(context, ran)
                result = np.asarray(ran.result())
                check_elements(name, result, exact(name, *arrays), ran.dtype)
                size = np.dtype(np.float32).itemsize if ran.dtype == "float32" else 2
                moved = (reads + 1) * size * parameters["elements"]
                timed.append({"at": {"operation": name}, **taken, "bytes": moved})


def _bandwidth(rank: Mapping[str, Any], name: str) -> float:
    at = {"operation": name}
    moved = next(block["bytes"] for block in rank["blocks"] if block["at"] == at)
    return float(1e-9 * moved / blocks.operation_seconds(rank, at))
