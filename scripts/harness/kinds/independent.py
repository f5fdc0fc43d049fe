"""Training on several devices that exchange nothing: the control of a scaling series.

Each rank trains by itself, as a run of one device does, on the device and the cores that it would
have in a run of ``train`` on as many devices, and all of a node are in their windows together. What
they lose against one device alone, they lose to hardware that they share: memory bandwidth, caches,
clocks. What a run of ``train`` loses beyond that it loses to the exchange of gradients, and to
waiting for the slowest rank in each step.
"""

from __future__ import annotations

from typing import Any, Dict, Mapping, Sequence

from harness.adapter import MatmulTrace, Mismatch
from harness.kind import Context, Kind, Metric, Workload
from harness.measuring import steps


class Independent(Kind):
    """Samples per second of training steps without an exchange."""

    needs = MatmulTrace
    counts_steps = True
    independent_ranks = True

    def mode(self, parameters: Mapping[str, Any]) -> str:
        return "train"

    def metrics(self, workload: Workload) -> Dict[str, Metric]:
        return {"throughput": steps.throughput(workload)}

    def measure(self, context: Context) -> None:
        steps.run(context)
        context.fields["weights_checksum"] = context.adapter.weights_checksum()

    def check(self, workload: Workload, ranks: Sequence[Mapping[str, Any]]) -> None:
        """Ranks start with the same weights and have other data: equal ones were exchanged."""
        checksums = [fields["weights_checksum"] for fields in ranks]
        if len(set(checksums)) < len(checksums):
            raise Mismatch("independent ranks have the same weights after training on other data")
