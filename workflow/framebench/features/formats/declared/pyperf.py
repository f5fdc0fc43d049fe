"""pyperf's JSON: our runs are its runs, our steps its values."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from ....records.run import Run
from ....tables.results import CaseResult
from ..case_notes import flags, seconds_of_step
from ..format import ExportedFile, Format, Results


def write(results: Results) -> ExportedFile:
    left_out: list[str] = []
    benchmarks = []
    for case in results.cases:
        name = results.name(case)
        left_out += [
            f"{name}: repeat {run.repeat}: {run.status}: {run.reason}"
            for run in case.runs
            if run.status != "ok"
        ]
        if not case.case.is_step:
            left_out.append(f"{name}: {case.key.metric}: is of no steps")
        elif case.ok:
            runs = [_run(case, run) for run in case.ok]
            benchmarks.append({"metadata": {"name": name}, "runs": runs})
    document = {"version": "1.0", "metadata": {"unit": "second"}, "benchmarks": benchmarks}
    text = json.dumps(document, indent=1, ensure_ascii=False) + "\n"
    return ExportedFile(text, left_out, not benchmarks)


def _run(case: CaseResult, run: Run) -> dict[str, Any]:
    metadata = {"framebench_flags": flags(case)} if case.flags else {}
    if run.started:  # pyperf does not accept a time zone
        moment = datetime.fromtimestamp(run.started, UTC).replace(tzinfo=None)
        metadata["date"] = moment.isoformat(sep=" ")
    values = [seconds for seconds in run.waited_seconds if seconds > 0]
    return {"metadata": metadata, "values": values or [seconds_of_step(case, run.throughput or 0)]}


FORMATS = [
    Format(
        "pyperf",
        ".json",
        "pyperf JSON",
        write=write,
        holds="each repeat: the seconds of each step",
        flags="text in the metadata `framebench_flags` of each run",
        lost="failed repeats; benchmarks without steps; where step times are unknown, the mean "
        "step is the only value",
    )
]
