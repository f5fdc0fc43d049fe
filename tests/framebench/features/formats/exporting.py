"""Runs to export, and the files that an export makes of them."""

from __future__ import annotations

from pathlib import Path

from framebench.features.formats import file_formats
from framebench.features.formats.file_formats import ExportedFile, Results
from framebench.records.run import Flag, MetricValue, Run
from framebench.tables import grouping
from framebench.tables.results import CaseResults

from ...made_up_runs import changed, measured, repeats, run

#: Throughputs of a case without flags.
CLEAN = (100.0, 101.0, 102.0, 103.0, 104.0, 105.0)
#: Reason with characters that formats must escape.
ODD = 'ran <out> of "memory" & 100 % of $_{x}^2'
#: Exported name of the case of CLEAN.
CASE_NAME = "pytorch/resnet50_v1.5/train/1n1g/b32/fp32"


def with_step_times(one: Run, steps: int = 4) -> Run:
    """Return a run with start time, and step times consistent with its throughput."""
    seconds = one.case.batch_per_device / (one.throughput or 1.0)
    times = tuple(seconds * factor for factor in (0.5, 1.5) * (steps // 2))
    steps = {"step_seconds": times, "waited_apart": times}
    return changed(one, **steps, started=1.7e9 + one.repeat, wall_seconds=30.0)


def runs_of_all_kinds() -> list[Run]:
    """Return runs of all kinds: clean, flagged, out of memory, unsupported, and two
    micro-benchmarks."""
    flag = (Flag("disturbed", "somebody compiled"),)
    return [
        *map(with_step_times, repeats(*CLEAN)),
        *(with_step_times(repeat) for repeat in repeats(50.0, 52.0, precision="amp", flags=flag)),
        run(None, batch_per_device=512, status="oom", reason=ODD),
        run(None, compiler="xla", status="unsupported", reason="has no xla"),
        measured("peak_flops", [MetricValue("peak", 1.5, "TFLOP/s")], size=2048),
        measured("copy", [MetricValue("latency", 2.5, "ms", "lower")], bytes=64),
    ]


def results(runs: list[Run] | None = None) -> Results:
    """Return results to export, by default of runs of all kinds."""
    return Results(grouped(runs))


def grouped(runs: list[Run] | None = None) -> CaseResults:
    """Return the results of each case."""
    return grouping.group(runs or runs_of_all_kinds(), None)


def exported(name: str, runs: list[Run] | None = None) -> ExportedFile:
    """Return the export of runs in a format, by default of runs of all kinds."""
    write = file_formats.writer(name).write
    assert write
    return write(results(runs))


def save_export(name: str, folder: Path, runs: list[Run] | None = None) -> Path:
    """Write the export of runs in a format to a folder; return the file."""
    path = folder / f"results{file_formats.writer(name).suffix}"
    content = exported(name, runs).content
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path
