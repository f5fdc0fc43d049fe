"""How long a framework takes to dispatch an operation that computes nothing, or little.

Additions of small arrays, by default of one element; of none, nothing is left but the framework's
own work for a call. They are called from Python as users call them, one behind the other, and the
last is waited for. Standard library and numpy.
"""

from __future__ import annotations

import statistics
import time
from typing import Any, Dict, Mapping

from harness.adapter import Mismatch
from harness.kind import Context, Kind, Metric, Parameter, Subject, above_zero, at_least
from harness.measuring import blocks, libraries
from harness.measuring.checks import check_cores
from harness.operations import ADD, SingleOperations


class Launch(Kind):
    """Microseconds of a call, and calls a second."""

    needs = SingleOperations
    independent_ranks = True
    axes = ("framework", "nodes", "devices_per_node", "precision")
    parameters = (
        Parameter("elements", at_least(0), "", "of each operand; 0: an empty operation", 1),
        Parameter("blocks", at_least(1), "", "how often they are timed", blocks.BLOCKS),
        Parameter(
            "block_seconds", above_zero, "s", "how long each of them takes at least",
            blocks.BLOCK_SECONDS,
        ),
    )  # fmt: skip

    def metrics(self, subject: Subject) -> Dict[str, Metric]:
        return {
            "time": Metric("us", "lower", "max", lambda rank: 1e6 * _seconds(rank)),
            "operations_per_second": Metric(
                "1/s", "higher", "min", lambda rank: 1 / _seconds(rank)
            ),
        }

    def measure(self, context: Context) -> None:
        import numpy as np

        adapter, fields = context.adapter, context.fields
        parameters = context.subject.parameters
        random = np.random.RandomState(adapter.place.seed)
        elements = parameters["elements"]
        arrays = [random.standard_normal(elements).astype(np.float32) for _ in range(2)]
        context.report.enter(f"additions of {elements} elements")
        start = time.perf_counter()
        added = adapter.operation(ADD, arrays)
        found = blocks.measure(
            adapter, added.run, added.result, parameters["blocks"],
            parameters["block_seconds"], context.barrier,
        )  # fmt: skip
        _check(np.asarray(added.result()), arrays[0] + arrays[1])
        fields["blocks"] = [{"at": {"elements": elements}, **found}]
        fields["window_start"], fields["window_seconds"] = start, time.perf_counter() - start
        fields["cores"] = check_cores(context.cores)
        fields["libraries"] = libraries.in_use()


def _seconds(rank: Mapping[str, Any]) -> float:
    """Of one in the median block."""
    (block,) = rank["blocks"]
    return float(statistics.median(block["seconds"]) / block["operations"])


def _check(found: Any, expected: Any) -> None:
    """Raises Mismatch where a sum is another than rounding to eight bits makes it."""
    if found.shape != expected.shape or not (abs(found - expected) <= 0.02).all():
        raise Mismatch(f"a sum that is {expected.tolist()} came out as {found.tolist()}")
