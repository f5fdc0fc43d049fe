"""Formats that are only written: pyperf's and google-benchmark's JSON of steps, and LaTeX."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd

from ....records.run import Run
from ....tables.results import CaseResult
from ..file_formats import ExportedFile, Format, Results, flags

#: Function that writes a case, from its name, the case, and the seconds of each step by repeat.
Written = Callable[[str, CaseResult, Sequence[Sequence[float]]], list[dict[str, Any]]]


def _document(results: Results, head: dict[str, Any], written: Written) -> ExportedFile:
    """Return a JSON document with a list of benchmarks, for the cases of steps."""
    left_out, benchmarks = list[str](), list[dict[str, Any]]()
    for case in results.cases:
        name = results.name(case)
        for run in case.runs:
            if run.status != "ok":
                left_out.append(f"{name}: repeat {run.repeat}: {run.status}: {run.reason}")
        if not case.case.is_step:
            left_out.append(f"{name}: {case.key.metric}: has no steps")
        elif case.ok:
            benchmarks += written(name, case, [_seconds(case, run) for run in case.ok])
    text = json.dumps({**head, "benchmarks": benchmarks}, indent=1, ensure_ascii=False)
    return ExportedFile(text + "\n", left_out, not benchmarks)


def _seconds(case: CaseResult, run: Run) -> list[float]:
    """Return the seconds of each step of a repeat; their mean where step times are unknown."""
    seconds = [value for value in run.waited_seconds if value > 0]
    return seconds or [case.case.samples_per_step / (run.throughput or 1.0)]


def _pyperf(name: str, case: CaseResult, steps: Sequence[Sequence[float]]) -> list[dict[str, Any]]:
    metadata = {"framebench_flags": flags(case)} if case.flags else {}
    runs = [{"metadata": metadata, "values": [*values]} for values in steps]
    return [{"metadata": {"name": name}, "runs": runs}]


def _google(name: str, case: CaseResult, steps: Sequence[Sequence[float]]) -> list[dict[str, Any]]:
    label = {"label": flags(case)} if case.flags else {}
    rows = []
    for index, run in enumerate(case.ok):
        rate = run.throughput or 1.0
        time = 1e6 * case.case.samples_per_step / rate
        rows.append({
            "name": name, "run_name": name, "run_type": "iteration", "repetitions": len(steps),
            "repetition_index": index, "threads": 1, "iterations": len(run.step_seconds) or 1,
            # compare.py requires cpu_time; processor time is not measured.
            "real_time": time, "cpu_time": time, "time_unit": "us",
            "items_per_second": rate, **label,
        })  # fmt: skip
    return rows


def _latex(results: Results) -> ExportedFile:
    rows = [
        {
            "case": results.name(case),
            "metric": case.key.metric,
            "median": case.status if case.throughput is None else f"{case.throughput:.4g}",
            "95 % interval": "{:.4g} to {:.4g}".format(*case.interval) if case.interval else "",
            "unit": case.unit,
            "repeats": str(len(case.values)),
            "flags": flags(case),
        }
        for case in results.cases
    ]
    # pandas' own text, because Styler does not escape backslashes before braces.
    style = pd.DataFrame(rows).style.hide(axis="index").format(escape="latex")
    text = style.format_index(escape="latex", axis=1).to_latex(environment="longtable", hrules=True)
    return ExportedFile(f"% needs \\usepackage{{booktabs,longtable}}\n{text}")


_PYPERF = {"version": "1.0", "metadata": {"unit": "second"}}
_GOOGLE = {"context": {"executable": "framebench", "json_schema_version": 1}}
FORMATS = [
    Format("pyperf", ".json", lambda results: _document(results, _PYPERF, _pyperf)),
    Format("google-benchmark", ".json", lambda results: _document(results, _GOOGLE, _google)),
    Format("latex", ".tex", _latex),
]
