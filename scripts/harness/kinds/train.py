"""Training: steps of forward, loss, backward, all-reduce and optimizer."""

from __future__ import annotations

from typing import Any, Dict, Mapping, Sequence

from harness.adapter import MatmulTrace
from harness.kind import AXES, Context, Kind, Metric, Workload
from harness.measuring import after_window, steps
from harness.measuring.checks import check_same_weights
from harness.measuring.verification import shared_steps


class Train(Kind):
    """Training: samples per second of training steps."""

    needs = MatmulTrace
    counts_steps = True
    axes = AXES

    def mode(self, parameters: Mapping[str, Any]) -> str:
        return "train"

    def metrics(self, workload: Workload) -> Dict[str, Metric]:
        return {"throughput": steps.throughput(workload)}

    def measure(self, context: Context) -> None:
        steps.run(context)
        shared_steps.observe(context)

    def afterwards(self, context: Context, seconds: float) -> None:
        if context.rank_context.world_size > 1:
            after_window.note_all_reduce(context.adapter, seconds, context.report)

    def check(self, workload: Workload, ranks: Sequence[Mapping[str, Any]]) -> None:
        check_same_weights(ranks)
        shared_steps.check(workload, ranks)
