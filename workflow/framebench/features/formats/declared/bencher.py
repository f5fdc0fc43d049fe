"""Bencher Metric Format: {benchmark: {measure: {value, lower_value, upper_value}}}."""

from __future__ import annotations

import json
from collections import defaultdict

from ..format import ExportedFile, Format, Results, not_measured

#: Suffix that Bencher removes from a benchmark's name and that silences its alerts.
IGNORED = "-bencher-ignore"
#: Bencher's limits on the length of names, in characters.
LONGEST_BENCHMARK, LONGEST_MEASURE = 1024, 64


def write(results: Results) -> ExportedFile:
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


FORMATS = [
    Format(
        "bencher",
        ".json",
        "Bencher Metric Format",
        write=write,
        holds="median and interval of each figure, with its unit in the name of the measure",
        flags=f"the name of the benchmark ends with `{IGNORED}`: kept, no alert",
        lost="names of flags; repeats; the better direction, which is set by thresholds on the "
        "server",
    )
]
