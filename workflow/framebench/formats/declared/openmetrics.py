"""OpenMetrics text: a gauge for each metric, as Prometheus reads it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

from ...tables.results import CaseResult
from ..case_notes import not_measured
from ..format import ExportedFile, Format, Results

#: In the words that the specification asks for: base units, in the plural.
_UNITS = {"s": "seconds", "TFLOP/s": "teraflops_per_second"}


def write(results: Results) -> ExportedFile:
    families: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    flags: list[str] = []
    repeats: list[str] = []
    for case in results.cases:
        labels = _labels(results, case)
        if case.throughput is not None:
            for end, value in _values(case):
                family = _family(case, end)
                families[family].append(f"{family[0]}{_text(labels)} {value!r}")
            flags += [
                f"framebench_mark{_text({**labels, 'mark': mark})} 1" for mark in sorted(case.marks)
            ]
        for status in sorted({run.status for run in case.runs}):
            count = sum(run.status == status for run in case.runs)
            repeats.append(f"framebench_repeats{_text({**labels, 'status': status})} {count}")
    lines: list[str] = []
    for (name, unit, help_), samples in families.items():
        lines += [f"# TYPE {name} gauge", *([f"# UNIT {name} {unit}"] if unit else [])]
        lines += [f"# HELP {name} {help_}", *samples]
    lines += _gauge("framebench_mark", "Quality flags of the figure with the same labels.", flags)
    lines += _gauge("framebench_repeats", "Repeats of the case by status.", repeats)
    # In words, because a case without a figure is a count of repeats here.
    return ExportedFile("\n".join([*lines, "# EOF", ""]), list(not_measured(results)))


def _values(case: CaseResult) -> Iterable[tuple[str, float]]:
    if case.throughput is not None:
        yield "", case.throughput
    yield from zip(("_ci_low", "_ci_high"), case.interval or (), strict=False)


def _family(case: CaseResult, end: str) -> tuple[str, str, str]:
    """Name, unit and help. The name of a family ends with its unit."""
    unit = _UNITS.get(case.unit) or _word(case.unit.replace("/s", "_per_second"))
    name = f"framebench_{_word(case.key.metric)}{end}" + (f"_{unit}" if unit else "")
    what = {"": "Median over repeats", "_ci_low": "Lower end of the 95 % interval of the median"}
    said = what.get(end, "Upper end of the 95 % interval of the median")
    return name, unit, f"{said}."


def _labels(results: Results, case: CaseResult) -> dict[str, str]:
    own = case.case
    named = {
        "case": results.name(case),
        "metric": case.key.metric,
        "unit": case.unit,
        "better": case.better,
    }
    axes = ("framework", "framework_version", "model", "mode", "precision", "compiler")
    counts = ("nodes", "devices_per_node", "batch_per_device")
    return {
        **named,
        **{axis: getattr(own, axis) for axis in axes if getattr(own, axis)},
        **{count: str(getattr(own, count)) for count in counts if getattr(own, count)},
    }


def _gauge(name: str, help_: str, samples: list[str]) -> list[str]:
    return [f"# TYPE {name} gauge", f"# HELP {name} {help_}", *samples] if samples else []


def _word(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")


def _text(labels: dict[str, str]) -> str:
    inner = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())
    return "{" + inner + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


FORMATS = [
    Format(
        "openmetrics",
        ".txt",
        "OpenMetrics text",
        write=write,
        holds="a gauge for each median and each end of its interval, with the unit in its name "
        "and as a label; repeats by status",
        marks="a gauge `framebench_mark` for each, with the labels of the figure",
        lost="single repeats; reasons of what failed (how many did is a gauge)",
    )
]
