"""Training: steps of forward, loss, backward, all-reduce and optimizer."""

from __future__ import annotations

from typing import Any, Dict, Mapping, Sequence

from harness.adapter import MatmulTrace
from harness.kind import AXES, Context, Kind, Metric, Parameter, Workload, at_least
from harness.measuring import after_window, steps
from harness.measuring.checks import check_same_weights
from harness.measuring.verification import shared_steps


class Train(Kind):
    """Training: samples per second of training steps."""

    parameters = (
        Parameter(
            name="breakdown_steps",
            type=at_least(0),
            unit="steps",
            help="further steps, after the timed region, that are timed part by part",
            default=0,
        ),
    )
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
        count = context.workload.parameters["breakdown_steps"]
        if count:
            after_window.note_parts(context.adapter, count, seconds, context.report)
        if context.rank_context.world_size > 1:
            after_window.note_all_reduce(context.adapter, seconds, context.report)

    def check(self, workload: Workload, ranks: Sequence[Mapping[str, Any]]) -> None:
        check_same_weights(ranks)
        shared_steps.check(workload, ranks)
