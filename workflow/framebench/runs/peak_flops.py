"""Peak-FLOPS benchmarks that a suite needs, and the command of each."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from core.text import duration

from ..plan import estimates
from ..plan.case_settings import request
from ..plan.planning import Plan
from ..records.device_peaks import KIND
from .commands import common, model_of, words
from .verify import free_name


class PeakFlopsBenchmark(NamedTuple):
    """Matmuls of one framework in one precision, on ``devices`` of a node at once.

    ``model``: any model that the framework runs in the suite; the harness needs one."""

    framework: str
    precision: str
    devices: int
    model: str
    sequence_length: int | None

    def __str__(self) -> str:
        together = f", {self.devices} devices at once" if self.devices > 1 else ""
        return f"{self.framework} {self.precision}{together}"


def wanted(plan: Plan) -> list[PeakFlopsBenchmark]:
    """Return a benchmark for each framework, precision and number of devices of a node.

    On CPUs a time budget is spent on none."""
    if plan.settings.budget and plan.capacity.accelerator == "cpu":
        return []
    found: dict[tuple[str, str, int], PeakFlopsBenchmark] = {}
    for case in filter(lambda case: case.is_step, plan.computed):
        what = (case.framework, case.precision, case.devices_per_node)
        found.setdefault(what, PeakFlopsBenchmark(*what, case.model, case.sequence_length))
    return list(found.values())


def names(plan: Plan) -> dict[str, PeakFlopsBenchmark]:
    """Return benchmarks by name: that of their record in ``results/peak_flops``, less ``.json``.

    The name ends in a digest of accelerator, cores and environment, which decide the result."""
    results = {}
    for benchmark in wanted(plan):
        asked = request(
            benchmark.framework, benchmark.devices, plan.settings, plan.capacity, plan.software
        )
        about = [asked["accelerator"], asked["cores_per_device"], asked["environment"]]
        digest = hashlib.sha256(json.dumps(about).encode()).hexdigest()[:8]
        together = f"-{benchmark.devices}d" if benchmark.devices > 1 else ""
        name = f"{benchmark.framework}/{benchmark.precision}{together}-{digest}"
        results[free_name(plan, "peak_flops", name, KIND)] = benchmark
    return results


def missing(results: Path, named: Mapping[str, PeakFlopsBenchmark]) -> list[str]:
    """Return the names of benchmarks without a record."""
    return [name for name in named if not (results / "peak_flops" / f"{name}.json").exists()]


def describe(plan: Plan, benchmarks: Mapping[str, PeakFlopsBenchmark]) -> str:
    """Return a line with number and seconds of pending benchmarks; "" if there are none."""
    to_do = [benchmarks[name] for name in missing(plan.settings.results, benchmarks)]
    if not to_do:
        return ""
    seconds = duration(sum(estimates.of_peak(one.framework, plan.capacity) for one in to_do))
    return f"\nPeak-FLOPS benchmarks to run, roughly {seconds}: {len(to_do)}"


def arguments(plan: Plan, benchmark: PeakFlopsBenchmark) -> list[str]:
    """Return the arguments of the harness for a benchmark."""
    named: dict[str, Any] = {
        "kind": KIND,
        "framework": f"{plan.scripts}/frameworks/{benchmark.framework}",
        "model": model_of(plan, benchmark.model),
        "sequence-length": benchmark.sequence_length,
        "precision": benchmark.precision,
        "devices-per-node": benchmark.devices,
        **common(plan, benchmark.devices),
    }
    return words(named)
