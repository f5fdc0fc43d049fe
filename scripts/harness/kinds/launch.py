"""Launch overhead: time to dispatch an operation that computes little or nothing.

The operation adds small arrays, of one element by default; with no element, only the framework's
own work per call is left. Calls come from Python as users make them, one after the other, and the
last is waited for. Where the framework has events of a GPU, the time between an event before and an
event after the calls is measured, too."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Mapping, Optional

from harness.capabilities import SingleOperations
from harness.kind import Context, Metric, Parameter, Workload, at_least
from harness.measuring import blocks
from harness.measuring.operands import check_elements
from harness.measuring.sweep import Block, GridPoint, Sweep, per_second, scaled
from harness.operations import ADD


class Launch(Sweep):
    """Launch overhead: microseconds per call of a small operation, and calls per second."""

    needs = SingleOperations
    names_points = False
    parameters = (
        Parameter(
            "elements", at_least(0), "", "elements of each operand; 0: an empty operation", 1
        ),
        *blocks.parameters("a series of calls"),
    )

    def grid(self, workload: Workload) -> List[GridPoint]:
        elements = workload.parameters["elements"]
        return [GridPoint({"elements": elements}, elements)]

    def figures(self, workload: Workload, subject: int) -> Dict[str, Metric]:
        return {
            "time": Metric("us", "lower", "max", scaled(1e6)),
            "operations_per_second": Metric("1/s", "higher", "min", per_second(1)),
        }

    def metrics(self, workload: Workload) -> Dict[str, Metric]:
        whole = super().metrics(workload)
        of_device = whole["time"]._replace(rank_value=_event_time, optional=True)
        return {**whole, "event_time": of_device}

    def run(self, context: Context, subject: int) -> Iterator[Block]:
        import numpy as np

        arrays = list(blocks.random_of(context).standard_normal((2, subject)).astype(np.float32))
        added = context.adapter.primitives().operation(ADD, arrays)
        taken = blocks.measure(context, added)
        check_elements(ADD, arrays, added.result(), added.dtype)
        count = taken["operations"]
        events = [context.adapter.device_seconds(added.run, count) for _ in taken["seconds"]]
        yield {**taken, "event_seconds": events}


def _event_time(rank: Mapping[str, Any]) -> Optional[float]:
    """Return the microseconds of an operation between two events of the device; None without."""
    (block,) = rank["blocks"]
    if None in block["event_seconds"]:
        return None
    return scaled(1e6)({**block, "seconds": block["event_seconds"]})
