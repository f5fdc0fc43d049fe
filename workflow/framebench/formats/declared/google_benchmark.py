"""google-benchmark's JSON: a row for each repeat, so that its compare.py can test A against B."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from ...records.run import Run
from ...tables.results import CaseResult
from .. import carried, rows
from ..format import Format, Results, Written
from ..source import Source
from ..words import SECONDS, marks, seconds_of_step

#: Of the file that is written: compare.py prints no decimals.
UNIT = "us"


def write(results: Results) -> Written:
    left_out: list[str] = []
    benchmarks: list[dict[str, Any]] = []
    cases: dict[str, str] = {}
    started = [run.started for case in results.cases for run in case.runs if run.started]
    for case in results.cases:
        name = _name(results, case)
        for run in case.runs:
            if run.status != "ok":
                left_out.append(f"{name}: repeat {run.repeat}: {run.status}: {run.reason}")
        ok = [(run, _seconds(case, run)) for run in case.ok]
        if any(seconds is None for _, seconds in ok):
            left_out.append(f"{name}: {case.key.metric} in {case.unit or 'no unit'}: is no time")
            continue
        for index, (run, seconds) in enumerate(ok):
            cases[f"{name}#{index}"] = carried.text_of(run, case.key.metric, case.marks)
            benchmarks.append(_row(case, run, seconds or 0.0, name, index, len(ok)))
    context: dict[str, Any] = {"executable": "framebench", "json_schema_version": 1}
    if started:
        context = {"date": datetime.fromtimestamp(max(started), UTC).isoformat(), **context}
    context[carried.KEY] = cases
    document = {"context": context, "benchmarks": benchmarks}
    return Written(json.dumps(document, indent=1, ensure_ascii=False) + "\n", left_out)


def _name(results: Results, case: CaseResult) -> str:
    """Of steps that of the case; of other kinds with the metric."""
    return results.name(case) if case.case.is_step else f"{results.name(case)}:{case.key.metric}"


def _seconds(case: CaseResult, run: Run) -> float | None:
    """What a repeat's figure is in seconds; None for a figure of something else than time."""
    value = run.value(case.key.metric)
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
        # compare.py needs it; time on the processor is not measured.
        "cpu_time": time,
        "time_unit": UNIT,
    }
    if case.case.is_step:
        row["items_per_second"] = run.throughput
    return {**row, "label": marks(case)} if case.marks else row


def read(source: Source) -> Iterator[Run]:
    document = source.json()
    source.need(document, {"context": dict, "benchmarks": list})
    ours = document["context"].get(carried.KEY)
    for place, row in enumerate(document["benchmarks"]):
        if not isinstance(row, dict) or not isinstance(row.get("name"), str):
            allowed = "allowed: an object with a name"
            found = f"benchmarks[{place}]: found {row!r:.60}; {allowed}"
            source.refuse(found, ("benchmarks", place))
        if row.get("run_type", "iteration") != "iteration":
            continue  # means and deviations of the others
        if isinstance(ours, dict):
            key = f"{row['name']}#{row.get('repetition_index')}"
            if key not in ours:
                lacking = f"benchmarks[{place}]: context.{carried.KEY} has no {key!r}"
                source.refuse(lacking, ("benchmarks", place))
            run = carried.run_of(ours[key], source, ("context", carried.KEY, key))
            _check(source, run, row, place)
            yield run
            continue
        yield _foreign(source, row, place)


def _check(source: Source, run: Run, row: dict[str, Any], place: int) -> None:
    """What is carried and what the row says are one figure."""
    if run.case.is_step and row.get("items_per_second") != run.throughput:
        source.refuse(
            f"benchmarks[{place}]: items_per_second: found {row.get('items_per_second')}, but "
            f"{run.throughput} in context.{carried.KEY}: the file was changed",
            ("benchmarks", place, "items_per_second"),
        )


def _foreign(source: Source, row: dict[str, Any], place: int) -> Run:
    name = row.get("run_name", row["name"])
    given: dict[str, Any] = {"model": str(name), "variant": str(row.get("label", ""))}
    index = row.get("repetition_index")
    repeat = index + 1 if type(index) is int and index >= 0 else 0
    where = f"benchmarks[{place}].real_time"
    unit = row.get("time_unit", "ns")
    if not isinstance(unit, str) or unit not in SECONDS:
        allowed = ", ".join(SECONDS)
        source.refuse(
            f"benchmarks[{place}].time_unit: found {unit!r}; allowed: {allowed}",
            ("benchmarks", place, "time_unit"),
        )
    if row.get("error_occurred") or row.get("skipped"):
        why = str(row.get("error_message") or row.get("skip_message") or "")
        return rows.figure(
            "google-benchmark", "google_benchmark", "real_time", None, unit, "lower",
            repeat=repeat, status="failed", reason=why, **given,
        )  # fmt: skip
    value = source.number(row.get("real_time"), where, ("benchmarks", place, "real_time"))
    return rows.figure(
        "google-benchmark", "google_benchmark", "real_time", value, unit, "lower", repeat=repeat,
        **given,
    )  # fmt: skip


FORMATS = [
    Format(
        "google-benchmark",
        ".json",
        "google-benchmark JSON",
        write=write,
        read=read,
        marks="text in `label`",
        lost="failed repeats; figures of other kinds that are no time; `cpu_time` repeats "
        "`real_time`, because compare.py needs it and it is not measured",
        missing="all of a case but its name, unless the file is ours; aggregates and counters are "
        "not taken",
    )
]
