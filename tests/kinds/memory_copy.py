"""Memory copy speed of one core: a benchmark without framework, which needs only this file."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from harness.adapter import Mismatch
from harness.kind import Context, Kind, Metric, Parameter, Workload, at_least


class MemoryCopy(Kind):
    """Benchmark of bytes per second of copies within memory."""

    needs = None
    parameters = (
        Parameter("size", at_least(1), "bytes", "how much is copied at once"),
        Parameter("copies", at_least(1), "", "how often it is copied", default=10),
    )

    def metrics(self, workload: Workload) -> dict[str, Metric]:
        size = workload.parameters["size"]

        def rate(rank: Mapping[str, Any]) -> float:
            return 1e-9 * size * len(rank["copy_seconds"]) / rank["window_seconds"]

        def longest(rank: Mapping[str, Any]) -> float:
            return 1e3 * max(rank["copy_seconds"])

        return {
            "bandwidth": Metric("GB/s", "higher", "sum", rate),
            "longest_copy": Metric("ms", "lower", "max", longest),
        }

    def measure(self, context: Context) -> None:
        size = context.workload.parameters["size"]
        source = context.phase("fill", lambda: bytearray(b"x") * size)
        target = bytearray(size)
        marks = [time.perf_counter()]
        for _ in range(context.workload.parameters["copies"]):
            target[:] = source
            marks.append(time.perf_counter())
        context.fields["window_start"] = marks[0]
        context.fields["window_seconds"] = marks[-1] - marks[0]
        context.fields["copy_seconds"] = [marks[n + 1] - marks[n] for n in range(len(marks) - 1)]
        if target != source:
            raise Mismatch("the copy differs from what was copied")
