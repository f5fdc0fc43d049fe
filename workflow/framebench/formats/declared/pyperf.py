"""pyperf's JSON: our run is its run, our steps are its values."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from ...records.run import Run
from ...statistics import descriptive
from ...tables.results import CaseResult
from .. import carried, rows
from ..format import Format, Results, Written
from ..source import Source
from ..words import marks, seconds_of_step

#: What pyperf calls the units that it has, and what they are here.
UNITS = {"second": "s", "byte": "byte", "integer": ""}


def write(results: Results) -> Written:
    left_out: list[str] = []
    benchmarks = []
    for case in results.cases:
        name = results.name(case)
        for run in case.runs:
            if run.status != "ok":
                left_out.append(f"{name}: repeat {run.repeat}: {run.status}: {run.reason}")
        if not case.case.is_step:
            left_out.append(f"{name}: {case.key.metric}: is of no steps")
            continue
        runs = [_run(case, run) for run in case.ok]
        if runs:
            benchmarks.append({"metadata": {"name": name}, "runs": runs})
    document = {"version": "1.0", "metadata": {"unit": "second"}, "benchmarks": benchmarks}
    if not benchmarks:
        left_out.append("everything: pyperf reads no file without a benchmark")
    return Written(json.dumps(document, indent=1, ensure_ascii=False) + "\n", left_out)


def _run(case: CaseResult, run: Run) -> dict[str, Any]:
    metadata: dict[str, Any] = {carried.KEY: carried.text_of(run, case.key.metric, case.marks)}
    if case.marks:
        metadata["framebench_marks"] = marks(case)
    if run.started:
        # pyperf takes no time zone.
        moment = datetime.fromtimestamp(run.started, UTC).replace(tzinfo=None)
        metadata["date"] = moment.isoformat(sep=" ")
    throughput = run.throughput or math.nan
    values = [seconds for seconds in run.waited_seconds if seconds > 0]
    return {"metadata": metadata, "values": values or [seconds_of_step(case, throughput)]}


def read(source: Source) -> Iterator[Run]:
    document = source.json()
    source.need(document, {"version": str, "benchmarks": list})
    for place, benchmark in enumerate(document["benchmarks"]):
        where = f"benchmarks[{place}]"
        if not isinstance(benchmark, dict) or not isinstance(benchmark.get("runs"), list):
            source.refuse(f"{where}: found {benchmark!r:.60}; allowed: an object with runs")
        repeat = 0
        for number, one in enumerate(benchmark["runs"]):
            if not isinstance(one, dict):
                source.refuse(f"{where}.runs[{number}]: found {one!r:.60}; allowed: an object")
            metadata = _metadata(document) | _metadata(benchmark) | _metadata(one)
            values = one.get("values")
            if not isinstance(values, list) or not values:
                continue  # of a calibration
            if carried.KEY in metadata:
                yield carried.run_of(metadata[carried.KEY], source)
                continue
            repeat += 1
            yield _foreign(source, metadata, values, f"{where}.runs[{number}]", repeat)


def _metadata(part: dict[str, Any]) -> dict[str, Any]:
    found = part.get("metadata")
    return found if isinstance(found, dict) else {}


def _foreign(
    source: Source, metadata: dict[str, Any], values: list[Any], where: str, repeat: int
) -> Run:
    """The median of a run's values is its figure."""
    unit = metadata.get("unit", "second")
    if not isinstance(metadata.get("name"), str) or str(unit) not in UNITS:
        source.refuse(f"{where}: found name {metadata.get('name')!r} and unit {unit!r}; allowed: "
                      f"a text, and one of {', '.join(UNITS)}")  # fmt: skip
    numbers = [source.number(value, f"{where}.values") for value in values]
    return rows.figure(
        "pyperf", "pyperf", "value", descriptive.median(numbers), UNITS[unit], "lower",
        model=metadata["name"], repeat=repeat,
    )  # fmt: skip


FORMATS = [
    Format(
        "pyperf",
        ".json",
        "pyperf JSON",
        write=write,
        read=read,
        marks="text in the metadata `framebench_marks` of each run",
        lost="failed repeats; other kinds than steps; where the step times of a run are not known, "
        "it has its mean step as its only value",
        missing="all of a case but its name, unless the file is ours; the median of a run's values "
        "is its figure",
    )
]
