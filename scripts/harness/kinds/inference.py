"""Inference: forward steps, over a batch on the device unless the case asks for another input."""

from __future__ import annotations

from typing import Dict

from harness.adapter import MatmulTrace
from harness.kind import USUAL_AXES, Context, Kind, Metric, Workload
from harness.measuring import steps


class Inference(Kind):
    """Inference: samples per second of forward steps."""

    needs = MatmulTrace
    counts_steps = True
    axes = (*USUAL_AXES, "input")

    def metrics(self, workload: Workload) -> Dict[str, Metric]:
        return {"throughput": steps.throughput(workload)}

    def measure(self, context: Context) -> None:
        steps.run(context)
