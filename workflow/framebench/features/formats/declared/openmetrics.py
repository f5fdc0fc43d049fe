"""OpenMetrics text: one gauge per metric, for Prometheus."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from types import SimpleNamespace

from ....cases.conditions import series_of_model
from ....tables.results import CaseResult
from ..file_formats import ExportedFile, Format, Results, not_measured

_FLAG = "Quality flags of the figure with the same labels."
_REPEATS = "Repeats of the case by status."
#: Unit names that the specification requires: base units in the plural.
_UNITS = {"s": "seconds", "TFLOP/s": "teraflops_per_second"}


def write(results: Results) -> ExportedFile:
    """Return gauges for medians and intervals, flags, and repeats by status."""
    from prometheus_client.metrics_core import Metric
    from prometheus_client.openmetrics.exposition import generate_latest

    families: dict[str, Metric] = {}

    def add(name: str, unit: str, text: str, labels: dict[str, str], value: float) -> None:
        family = families.setdefault(name, Metric(name, text, "gauge", unit))
        family.add_sample(name, labels, value)

    for case in results.cases:
        labels = _labels(results, case)
        for end, value in _values(case):
            add(*_family(case, end), labels, value)
        for flag in sorted(case.flags) if case.throughput is not None else ():
            add("framebench_flag", "", _FLAG, {**labels, "flag": flag}, 1)
        for status, count in sorted(Counter(run.status for run in case.runs).items()):
            add("framebench_repeats", "", _REPEATS, {**labels, "status": status}, count)
    registry = SimpleNamespace(collect=families.values)
    text: bytes = generate_latest(registry)  # type: ignore[no-untyped-call]
    # A case without a figure appears only in the count of repeats.
    return ExportedFile(text.decode(), list(not_measured(results)))


def _values(case: CaseResult) -> Iterable[tuple[str, float]]:
    if case.compared is None:
        return
    yield "", case.compared
    yield from zip(("_ci_low", "_ci_high"), case.interval or (), strict=False)


def _family(case: CaseResult, end: str) -> tuple[str, str, str]:
    """Return name, unit and help text of a metric family. The name ends with the unit."""
    unit = _UNITS.get(case.unit) or _word(case.unit.replace("/s", "_per_second"))
    name = f"framebench_{_word(case.key.metric)}{end}" + (f"_{unit}" if unit else "")
    what = {"": "Median over repeats", "_ci_low": "Lower end of the 95 % interval of the median"}
    said = what.get(end, "Upper end of the 95 % interval of the median")
    return name, unit, f"{said}."


def _labels(results: Results, case: CaseResult) -> dict[str, str]:
    own = case.case
    model = series_of_model(own.model)
    named = {
        "case": results.name(case),
        "metric": case.key.metric,
        "unit": case.unit,
        "better": case.better,
        "model": model,
        "model_version": own.model[len(model) + 1 :],  # version of a user's own model
    }
    axes = ("framework", "framework_version", "mode", "precision", "compiler")
    counts = ("nodes", "devices_per_node", "batch_per_device")
    named.update({axis: getattr(own, axis) for axis in axes})
    named.update({count: str(getattr(own, count) or "") for count in counts})
    return {name: value for name, value in named.items() if value or name == "unit"}


def _word(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")


FORMATS = [Format("openmetrics", ".txt", write)]
