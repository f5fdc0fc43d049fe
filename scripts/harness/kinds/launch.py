"""Launch overhead: time to dispatch an operation that computes little or nothing.

The operation adds small arrays, of one element by default; with no element, only the framework's
own work per call is left. Calls come from Python as users make them, one after the other, and the
last is waited for. Standard library and numpy.
"""

from __future__ import annotations

import statistics
from typing import Any, Dict, Mapping

from harness.adapter import Mismatch
from harness.kind import Context, Kind, Metric, Parameter, Workload, at_least
from harness.measuring import blocks
from harness.operations import ADD, SingleOperations


class Launch(Kind):
    """Launch overhead: microseconds per call of a small operation, and calls per second."""

    needs = SingleOperations
    independent_ranks = True
    axes = ("framework", "nodes", "devices_per_node", "precision")
    parameters = (
        Parameter("elements", at_least(0), "", "of each operand; 0: an empty operation", 1),
        *blocks.parameters("a row of them"),
    )

    def metrics(self, workload: Workload) -> Dict[str, Metric]:
        return {
            "time": Metric("us", "lower", "max", lambda rank: 1e6 * _seconds(rank)),
            "operations_per_second": Metric(
                "1/s", "higher", "min", lambda rank: 1 / _seconds(rank)
            ),
        }

    def measure(self, context: Context) -> None:
        import numpy as np

        adapter, elements = context.adapter, context.workload.parameters["elements"]
        random = np.random.RandomState(adapter.rank_context.seed)
        arrays = [random.standard_normal(elements).astype(np.float32) for _ in range(2)]
        context.report.enter(f"additions of {elements} elements")
        with blocks.recorded_blocks(context) as points:
            added = adapter.operation(ADD, arrays)
            taken = blocks.measure(context, added)
            _check(np.asarray(added.result()), arrays[0] + arrays[1])
            points.append({"at": {"elements": elements}, **taken})


def _seconds(rank: Mapping[str, Any]) -> float:
    """Return the seconds of one call in the median block."""
    (block,) = rank["blocks"]
    return float(statistics.median(block["seconds"]) / block["operations"])


def _check(actual: Any, expected: Any) -> None:
    """Raise Mismatch where a sum is off by more than rounding to eight bits."""
    if actual.shape != expected.shape or not (abs(actual - expected) <= 0.02).all():
        raise Mismatch(f"a sum that is {expected.tolist()} came out as {actual.tolist()}")
