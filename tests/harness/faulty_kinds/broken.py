"""Benchmark that fails in the way that its parameter names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness.adapter import Mismatch
from harness.kind import Context, Kind, Metric, Parameter, Workload


class Broken(Kind):
    """Benchmark with the ``fault`` "measure", "check" or "missing"."""

    needs = None
    parameters = (Parameter("fault", str, "", "what goes wrong"),)

    def metrics(self, workload: Workload) -> dict[str, Metric]:
        return {"speed": Metric("m/s", "higher", "first", lambda rank: rank["speed"])}

    def measure(self, context: Context) -> None:
        context.fields["known"] = 7
        if context.workload.parameters["fault"] == "measure":
            raise OSError("no disk")

    def check(self, workload: Workload, ranks: Sequence[Mapping[str, Any]]) -> None:
        if workload.parameters["fault"] == "check":
            raise Mismatch("the ranks differ")
