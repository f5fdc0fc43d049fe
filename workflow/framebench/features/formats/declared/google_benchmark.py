"""google-benchmark's JSON: one row per repeat, so that its compare.py can compare two files."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from ....records.run import Run
from ....tables.results import CaseResult
from .. import carried, rows
from ..case_notes import SECONDS, flags, seconds_of_step
from ..format import ExportedFile, Format, Results
from ..source import ImportedFile

#: Unit of written times, because compare.py prints no decimals.
UNIT = "us"
#: Suffixes of aggregates in files before version 1.5, whose rows lack the type.
_STATISTICS = ("mean", "median", "stddev", "cv", "BigO", "RMS")
#: Keys of a row that are no figures.
_PLACES = (
    "family_index", "per_family_instance_index", "repetitions", "repetition_index", "threads",
    "iterations", "real_time",
)  # fmt: skip
#: Keys of the context that differ between calls.
_INCIDENTAL = ("date", "executable", "load_avg", "mhz_per_cpu", "cpu_scaling_enabled", carried.KEY)


def write(results: Results) -> ExportedFile:
    left_out: list[str] = []
    benchmarks: list[dict[str, Any]] = []
    cases: dict[str, str] = {}
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
            cases[f"{name}#{index}"] = carried.text_of(run, case.key, case.flags)
            benchmarks.append(_row(case, run, seconds or 0.0, name, index, len(ok)))
    context: dict[str, Any] = {"executable": "framebench", "json_schema_version": 1}
    if started:
        context = {"date": datetime.fromtimestamp(max(started), UTC).isoformat(), **context}
    context[carried.KEY] = cases
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


def read(source: ImportedFile) -> Iterator[rows.ImportedFigure]:
    document = source.json(constants=True)  # counters may be NaN
    source.need(document, {"context": dict, "benchmarks": list})
    ours = document["context"].get(carried.KEY)
    benchmarks = document["benchmarks"]
    for index, row in enumerate(benchmarks):
        if not isinstance(row, dict) or not isinstance(row.get("name"), str):
            allowed = "allowed: an object with a name"
            found = f"benchmarks[{index}]: found {row!r:.60}; {allowed}"
            source.refuse(found, ("benchmarks", index))
    counts = Counter(row["name"] for row in benchmarks)
    aggregates = {index: _statistic(row, counts) for index, row in enumerate(benchmarks)}
    # A file of aggregates only has no better figure than the median.
    has_repeats = not all(aggregates.values())
    settings = rows.settings_of(document["context"], _INCIDENTAL)
    for index, row in enumerate(benchmarks):
        statistic = aggregates[index]
        if statistic and (has_repeats or statistic != "median"):
            why = "is an aggregate of repeats" if has_repeats else "is an aggregate; taken: _median"
            source.leave_out(row["name"], why)
        elif isinstance(ours, dict):
            key = f"{row['name']}#{row.get('repetition_index')}"
            if key not in ours:
                lacking = f"benchmarks[{index}]: context.{carried.KEY} has no {key!r}"
                source.refuse(lacking, ("benchmarks", index))
            figure = carried.figure_of(ours[key], source, ("context", carried.KEY, key))
            _check(source, figure.run, row, index)
            yield figure
        else:
            yield _foreign(source, row, index, statistic, settings)


def _statistic(row: Mapping[str, Any], counts: Mapping[str, int]) -> str:
    """Return the name of the statistic in an aggregate row; "" for a repeat."""
    if row.get("run_type") == "aggregate" or "aggregate_name" in row:
        return str(row.get("aggregate_name") or row["name"].rpartition("_")[2])
    if "run_type" in row:
        return ""
    if {"big_o", "rms", "cpu_coefficient"} & {*row}:
        return "complexity"
    base, _, statistic = row["name"].rpartition("_")
    siblings = sum(f"{base}_{statistic}" in counts for statistic in _STATISTICS)
    is_known = statistic in _STATISTICS and (base in counts or siblings > 1)
    # Statistic defined by the program: a single row next to several of the benchmark.
    is_own = counts.get(base, 0) > 1 and counts[row["name"]] == 1
    return statistic if is_known or is_own else ""


def _check(source: ImportedFile, run: Run, row: dict[str, Any], index: int) -> None:
    """Raise FormatError if the row's step rate differs from that of the embedded row."""
    if run.case.is_step and row.get("items_per_second") != run.throughput:
        source.refuse(
            f"benchmarks[{index}]: items_per_second: found {row.get('items_per_second')}, but "
            f"{run.throughput} in context.{carried.KEY}: the file was changed",
            ("benchmarks", index, "items_per_second"),
        )


def _foreign(
    source: ImportedFile,
    row: dict[str, Any],
    place: int,
    statistic: str,
    settings: Mapping[str, Any],
) -> rows.ImportedFigure:
    name = row.get("run_name", row["name"].removesuffix(f"_{statistic}"))
    index = row.get("repetition_index")
    where = f"benchmarks[{place}].real_time"
    unit = row.get("time_unit", "ns")
    if not isinstance(unit, str) or unit not in SECONDS:
        allowed = ", ".join(SECONDS)
        source.refuse(
            f"benchmarks[{place}].time_unit: found {unit!r}; allowed: {allowed}",
            ("benchmarks", place, "time_unit"),
        )
    options: dict[str, Any] = {
        "model": str(name),
        "variant": str(row.get("label", "")),
        "repeat": index + 1 if type(index) is int and index >= 0 else 0,
        "parameters": {"aggregate": statistic} if statistic else {},
        "settings": settings,
    }
    if row.get("error_occurred") or row.get("skipped"):
        why = str(row.get("error_message") or row.get("skip_message") or "")
        return rows.figure(
            "google-benchmark", "google_benchmark", "real_time", None, unit, "lower",
            status="failed", reason=why, **options,
        )  # fmt: skip
    for key, entry in row.items():
        if key not in _PLACES and isinstance(entry, (int, float)) and not isinstance(entry, bool):
            source.leave_out(key, "of a row only real_time is taken")
    value = source.number(row.get("real_time"), where, ("benchmarks", place, "real_time"))
    return rows.figure(
        "google-benchmark", "google_benchmark", "real_time", value, unit, "lower", **options
    )


FORMATS = [
    Format(
        "google-benchmark",
        ".json",
        "google-benchmark JSON",
        write=write,
        read=read,
        holds="each repeat: step time, or another time, in us; rate of steps",
        flags="text in `label`",
        lost="failed repeats; figures that are no times; `cpu_time` repeats `real_time`, because "
        "compare.py needs it and it is not measured",
        taken="`real_time` of each repeat; from a file of aggregates only, the median, with the "
        "parameter `aggregate`; parameters: differences between contexts, such as host and build "
        "type",
        not_taken="`cpu_time`, counters, rates, aggregates next to repeats (before version 1.5 "
        "recognized by name)",
        missing="the whole case but its name, unless the file is ours",
    )
]
