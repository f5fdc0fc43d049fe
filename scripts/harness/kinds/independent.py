"""Training on several devices that do not communicate: the control of a scaling series.

Each rank trains by itself as in a run of one device, on the device and cores that it would have in
a run of ``train``. All timed regions of a node overlap. Losses against one device alone come from
shared hardware: memory bandwidth, caches, clocks. Further losses of a run of ``train`` come from
the gradient all-reduce and from waiting for the slowest rank in each step.
"""

from __future__ import annotations

from typing import Any, Mapping, Sequence

from harness.adapter import Mismatch
from harness.kind import Context, Workload
from harness.measuring.steps import StepBenchmark


class Independent(StepBenchmark):
    """Training on devices that do not communicate: samples per second."""

    independent_ranks = True
    trains = True

    def measure(self, context: Context) -> None:
        super().measure(context)
        context.fields["weights_checksum"] = context.adapter.weights_checksum()

    def check(self, workload: Workload, ranks: Sequence[Mapping[str, Any]]) -> None:
        """Check that ranks have different weights. They start alike and have different data, so
        equal weights mean that they communicated."""
        checksums = [fields["weights_checksum"] for fields in ranks]
        if len(set(checksums)) < len(checksums):
            raise Mismatch("independent ranks have the same weights after training on other data")
