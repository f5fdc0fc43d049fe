"""Formats of services that keep figures over commits.

Bencher Metric Format: {benchmark: {measure: {value, lower_value, upper_value}}}. Custom tools of
github-action-benchmark: a list of {name, unit, value, range, extra}, all of one
direction."""

from __future__ import annotations

import json
from collections import defaultdict
from functools import partial

from ..file_formats import ExportedFile, Format, Results, not_measured, notes

#: Suffix that Bencher removes from a benchmark's name and that silences its alerts.
IGNORED = "-bencher-ignore"
#: Bencher's limits on the length of names, in characters.
LONGEST_BENCHMARK, LONGEST_MEASURE = 1024, 64


def write_bencher(results: Results) -> ExportedFile:
    benchmarks: dict[str, dict[str, dict[str, float]]] = defaultdict(dict)
    left_out = list(not_measured(results))
    for case in results.cases:
        if case.compared is None:
            continue
        name = results.name(case) + (IGNORED if case.flags else "")
        measure = f"{case.key.metric} ({case.unit})" if case.unit else case.key.metric
        if len(name) > LONGEST_BENCHMARK or len(measure) > LONGEST_MEASURE:
            left_out.append(f"{name}: {measure}: its name is too long for Bencher")
            continue
        low, high = case.interval or (None, None)
        figures = {"value": case.throughput, "lower_value": low, "upper_value": high}
        benchmarks[name][measure] = {
            key: figure for key, figure in figures.items() if figure is not None
        }
    return ExportedFile(
        json.dumps(benchmarks, indent=1, ensure_ascii=False) + "\n", left_out, not benchmarks
    )


def write_action(results: Results, better: str) -> ExportedFile:
    left_out = list(not_measured(results))
    entries = []
    for case in results.cases:
        if case.compared is None:
            continue
        metric, name = case.key.metric, results.name(case)
        if case.better != better:
            left_out.append(f"{name}: {metric}: {case.better} is better, here {better}")
            continue
        entry = {"name": f"{name} {metric}", "unit": case.unit, "value": case.throughput}
        if case.interval:
            low, high = case.interval
            entry["range"] = f"{low:.6g} to {high:.6g}"
        entries.append({**entry, "extra": notes(case) or "no flags"})
    return ExportedFile(
        json.dumps(entries, indent=1, ensure_ascii=False) + "\n", left_out, not entries
    )


FORMATS = [
    Format("bencher", ".json", write_bencher),
    Format("github-action-benchmark", ".json", partial(write_action, better="higher")),
    Format("github-action-benchmark-smaller", ".json", partial(write_action, better="lower")),
]
