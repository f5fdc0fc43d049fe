"""google-benchmark's JSON: one row per repeat, so that its compare.py can compare two files."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from ....records.run import Run
from ....tables.results import CaseResult
from ..case_notes import SECONDS, flags, seconds_of_step
from ..format import ExportedFile, Format, Results

#: Unit of written times, because compare.py prints no decimals.
UNIT = "us"


def write(results: Results) -> ExportedFile:
    left_out: list[str] = []
    benchmarks: list[dict[str, Any]] = []
    started = [run.started for case in results.cases for run in case.runs if run.started]
    for case in results.cases:
        name = results.name(case) + ("" if case.case.is_step else f":{case.key.metric}")
        for run in case.runs:
            if run.status != "ok":
                left_out.append(f"{name}: repeat {run.repeat}: {run.status}: {run.reason}")
        ok = [(run, _seconds(case, run)) for run in case.ok]
        if any(seconds is None for _, seconds in ok):
            left_out.append(f"{name}: {case.key.metric} in {case.unit or 'no unit'}: is no time")
            continue
        for index, (run, seconds) in enumerate(ok):
            benchmarks.append(_row(case, run, seconds or 0.0, name, index, len(ok)))
    context: dict[str, Any] = {"executable": "framebench", "json_schema_version": 1}
    if started:
        context = {"date": datetime.fromtimestamp(max(started), UTC).isoformat(), **context}
    document = {"context": context, "benchmarks": benchmarks}
    text = json.dumps(document, indent=1, ensure_ascii=False) + "\n"
    return ExportedFile(text, left_out, not benchmarks)


def _seconds(case: CaseResult, run: Run) -> float | None:
    """Return the figure of a repeat in seconds; None unless it is a time or a rate of steps."""
    value = run.value(case.key.metric, case.key.point)
    if value is None:
        return None
    of_unit = SECONDS.get(case.unit)
    return value * of_unit if of_unit else seconds_of_step(case, value)


def _row(
    case: CaseResult, run: Run, seconds: float, name: str, index: int, repetitions: int
) -> dict[str, Any]:
    time = seconds / SECONDS[UNIT]
    row: dict[str, Any] = {
        "name": name,
        "run_name": name,
        "run_type": "iteration",
        "repetitions": repetitions,
        "repetition_index": index,
        "threads": 1,
        "iterations": len(run.step_seconds) or 1,
        "real_time": time,
        # compare.py requires it; processor time is not measured.
        "cpu_time": time,
        "time_unit": UNIT,
    }
    if case.case.is_step:
        row["items_per_second"] = run.throughput
    return {**row, "label": flags(case)} if case.flags else row


FORMATS = [
    Format(
        "google-benchmark",
        ".json",
        "google-benchmark JSON",
        write=write,
        holds="each repeat: step time, or another time, in us; rate of steps",
        flags="text in `label`",
        lost="failed repeats; figures that are no times; `cpu_time` repeats `real_time`, because "
        "compare.py needs it and it is not measured",
    )
]
