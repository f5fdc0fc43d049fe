"""Search for the largest batch per device that a case can run: see :mod:`core.batch_search`.

It runs another benchmark several times with few steps (:mod:`harness.search`).
"""

from __future__ import annotations

from typing import Any, Dict, Mapping, Sequence

from harness.kind import AXES, Context, Kind, Metric, Parameter, Workload, at_least, one_of


class LargestBatch(Kind):
    """Search for the largest batch that fits, by runs with few steps and growing batches.

    Attempts take the role of ranks in its metrics."""

    parameters = (
        Parameter("mode", one_of("train", "inference"), "", "the kind of the runs"),
        Parameter("multiple_of", at_least(1), "samples", "the step of the search", 8),
        Parameter("at_most", at_least(1), "samples", "the bound of the search", 4096),
    )
    counts_steps = True
    stands_in = True

    @property
    def axes(self) -> Sequence[str]:
        return [axis for axis in AXES if axis != "batch_per_device"]

    def mode(self, parameters: Mapping[str, Any]) -> str:
        return str(parameters["mode"])

    def metrics(self, workload: Workload) -> Dict[str, Metric]:
        return {"largest_batch": Metric("samples/device", "higher", "max", fitting_batch)}

    def measure(self, context: Context) -> None:
        raise NotImplementedError("the search measures in its runs")


def fitting_batch(attempt: Mapping[str, Any]) -> float:
    """Return the batch of an attempt that fits; 0 for others."""
    return float(attempt["batch_per_device"]) if attempt["status"] == "ok" else 0.0
