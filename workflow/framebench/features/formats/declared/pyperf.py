"""pyperf's JSON: our runs are its runs, our steps its values."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from ....records.run import Run
from ....statistics import descriptive
from ....tables.results import CaseResult
from .. import carried, rows
from ..case_notes import flags, seconds_of_step
from ..format import ExportedFile, Format, Results
from ..json_places import Keys
from ..source import ImportedFile

#: pyperf's units -> ours.
UNITS = {"second": "s", "byte": "byte", "integer": ""}
#: Format versions before 1.0, which are integers.
_OLD_VERSIONS = (5, 6)
#: Metadata that differ between processes of one benchmark.
_INCIDENTAL = (
    "name", "unit", "duration", "uptime", "boot_time", "load_avg_1min", "runnable_threads",
    "mem_max_rss", "mem_peak_pagefile_usage", "command_max_rss", "cpu_freq", "cpu_temp", "loops",
    "inner_loops", "calibrate_loops", "recalibrate_loops", "calibrate_warmups", "timer",
    "recalibrate_warmups", "python_hash_seed", "python_executable", "tags", "description",
    "perf_version", "pyperf_version",
)  # fmt: skip


def write(results: Results) -> ExportedFile:
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
    text = json.dumps(document, indent=1, ensure_ascii=False) + "\n"
    return ExportedFile(text, left_out, not benchmarks)


def _run(case: CaseResult, run: Run) -> dict[str, Any]:
    metadata: dict[str, Any] = {carried.KEY: carried.text_of(run, case.key, case.flags)}
    if case.flags:
        metadata["framebench_flags"] = flags(case)
    if run.started:
        # pyperf does not accept a time zone.
        moment = datetime.fromtimestamp(run.started, UTC).replace(tzinfo=None)
        metadata["date"] = moment.isoformat(sep=" ")
    throughput = run.throughput or math.nan
    values = [seconds for seconds in run.waited_seconds if seconds > 0]
    return {"metadata": metadata, "values": values or [seconds_of_step(case, throughput)]}


def read(source: ImportedFile) -> Iterator[rows.ImportedFigure]:
    document = source.json()
    version = document.get("version")
    is_old = type(version) is int and version in _OLD_VERSIONS
    source.need(document, {"version": int if is_old else str, "benchmarks": list})
    for index, benchmark in enumerate(document["benchmarks"]):
        keys = ("benchmarks", index)
        if not isinstance(benchmark, dict) or not isinstance(benchmark.get("runs"), list):
            allowed = "allowed: an object with runs"
            source.refuse(f"{_shown(keys)}: found {benchmark!r:.60}; {allowed}", keys)
        repeat = 0
        for number, run in enumerate(benchmark["runs"]):
            of_run = (*keys, "runs", number)
            if not isinstance(run, dict):
                found = f"{_shown(of_run)}: found {run!r:.60}; allowed: an object"
                source.refuse(found, of_run)
            key = "samples" if version == _OLD_VERSIONS[0] else "values"
            values = run.get(key)
            if not isinstance(values, list) or not values:
                continue  # calibration run
            metadata = _metadata({(): document, keys: benchmark, of_run: run})
            if carried.KEY in metadata:
                yield carried.figure_of(metadata[carried.KEY][0], source, metadata[carried.KEY][1])
                continue
            repeat += 1
            yield _foreign(source, metadata, values, (*of_run, key), repeat)


def _shown(keys: Keys) -> str:
    """Return a place as text: ``benchmarks[0].runs[1]``."""
    return "".join(f"[{number}]" if isinstance(number, int) else f".{number}" for number in keys)[
        1:
    ]


def _metadata(parts: Mapping[Keys, Mapping[str, Any]]) -> dict[str, tuple[Any, Keys]]:
    """Return value and place of each metadata key; later parts override earlier ones."""
    return {
        key: (value, (*keys, name, key))
        for keys, part in parts.items()
        for name in ("common_metadata", "metadata")
        if isinstance(part.get(name), dict)
        for key, value in part[name].items()
    }


def _foreign(
    source: ImportedFile,
    metadata: Mapping[str, tuple[Any, Keys]],
    values: list[Any],
    keys: Keys,
    repeat: int,
) -> rows.ImportedFigure:
    """Return the median of a run's values, which are at ``keys``, as a figure."""
    of_run = keys[:-1]
    name, stands = metadata.get("name", (None, of_run))
    if not isinstance(name, str):
        source.refuse(f"{_shown(of_run)}: name: found {name!r:.60}; allowed: a text", stands)
    unit, stands = metadata.get("unit", ("second", of_run))
    if not isinstance(unit, str) or unit not in UNITS:
        allowed = f"allowed: {', '.join(UNITS)}"
        source.refuse(f"{_shown(of_run)}: unit: found {unit!r:.60}; {allowed}", stands)
    numbers = [
        source.number(value, _shown(keys), (*keys, index)) for index, value in enumerate(values)
    ]
    told = {key: value for key, (value, _) in metadata.items()}
    return rows.figure(
        "pyperf", "pyperf", "value", descriptive.median(numbers), UNITS[unit], "lower",
        model=name, repeat=repeat, settings=rows.settings_of(told, _INCIDENTAL),
    )  # fmt: skip


FORMATS = [
    Format(
        "pyperf",
        ".json",
        "pyperf JSON",
        write=write,
        read=read,
        holds="each repeat: the seconds of each step",
        flags="text in the metadata `framebench_flags` of each run",
        lost="failed repeats; benchmarks without steps; where step times are unknown, the mean "
        "step is the only value",
        taken="the median of each process, in s, bytes or without unit; also `.json.gz`, and "
        "files of versions before 1.0; parameters: differences in metadata, such as Python's "
        "version and the host",
        not_taken="warm-ups, calibration, memory in the metadata",
        missing="the whole case but its name, unless the file is ours",
    )
]
