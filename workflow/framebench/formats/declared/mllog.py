"""MLPerf's mllog: events of a run, one a line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from ...records.run import Run
from ...tables.results import CaseResult
from .. import carried, rows
from ..format import Format, Results, Written
from ..source import Source
from ..words import marks

TOKEN = ":::MLLOG "
START, END, POINT = "INTERVAL_START", "INTERVAL_END", "POINT_IN_TIME"


def write(results: Results) -> Written:
    left_out: list[str] = []
    lines: list[str] = []
    for case in results.cases:
        for run in case.runs:
            if run.started is None or run.wall_seconds is None:
                name = f"{results.name(case)}: repeat {run.repeat}"
                left_out.append(f"{name}: when it was started and ended is not known")
                continue
            lines += _events(results.name(case), case, run, run.started, run.wall_seconds)
    return Written("".join(f"{TOKEN}{line}\n" for line in lines), left_out)


def _events(name: str, case: CaseResult, run: Run, start: float, took: float) -> Iterator[str]:
    """Start and stop are those of the whole run: process, warm-up and timed window."""
    about = {"file": run.origin, "lineno": 1}
    row = carried.text_of(run, case.key.metric, case.marks)
    stop = start + took

    def event(time: float, kind: str, key: str, value: Any, **metadata: Any) -> str:
        line = {
            "namespace": "", "time_ms": round(1000 * time), "event_type": kind, "key": key,
            "value": value, "metadata": {**about, **metadata},
        }  # fmt: skip
        return json.dumps(line, ensure_ascii=False)

    yield event(start, POINT, "submission_benchmark", name)
    if case.case.is_step:
        yield event(start, POINT, "global_batch_size", case.key.total_batch)
    yield event(start, START, "run_start", None)
    figure = run.value(case.key.metric) if run.status == "ok" else None
    if figure is not None:
        notes = {"unit": case.unit, "better": case.better, "marks": marks(case)}
        yield event(stop, POINT, "tracked_stats", {case.key.metric: figure}, step=1, **notes)
    status = "success" if run.status == "ok" else "aborted"
    yield event(stop, END, "run_stop", None, status=status, **{carried.KEY: row})


def read(source: Source) -> Iterator[Run]:
    """Foreign logs: the time from run_start to run_stop. Ours: what they were made of."""
    names: dict[str, Any] = {}
    started: float | None = None
    start_line = count = 0
    for line, event in _events_of(source):
        count += 1
        key, metadata = event["key"], event["metadata"]
        if key in ("submission_benchmark", "global_batch_size"):
            names[key] = event["value"]
        elif key == "run_start":
            if started is not None:
                source.refuse("run_start stands twice without a run_stop between", line)
            started, start_line = source.number(event["time_ms"], "time_ms", line), line
        elif key == "run_stop":
            stopped = source.number(event["time_ms"], "time_ms", line)
            if started is None or stopped < started:
                source.refuse("run_stop without a run_start before it", line)
            if carried.KEY in metadata:
                yield carried.run_of(metadata[carried.KEY], source, line)
            else:
                yield _foreign(names, (stopped - started) / 1000, metadata)
            started, names = None, {}
    if not count:
        source.refuse(f"is of another format: no line has {TOKEN.strip()}")
    if started is not None:
        source.refuse("the log ends without the run_stop of this run_start", start_line)


def _events_of(source: Source) -> Iterator[tuple[int, dict[str, Any]]]:
    for line, text in source.lines():
        _, token, rest = text.partition(TOKEN)
        if not token:
            continue  # of the program's own
        event = source.object_of(rest, line)
        missing = [key for key in ("time_ms", "event_type", "key", "value") if key not in event]
        if missing or not isinstance(event.get("metadata", {}), dict):
            source.refuse(f"is no event of mllog: {', '.join(missing) or 'metadata'} missing", line)
        yield line, {"metadata": {}, **event}


def _foreign(names: dict[str, Any], seconds: float, metadata: dict[str, Any]) -> Run:
    ok = metadata.get("status") == "success"
    batch = names.get("global_batch_size")
    parameters = {"global_batch_size": batch} if isinstance(batch, int) else {}
    return rows.figure(
        "mllog", "mllog", "time_to_train", seconds if ok else None, "s", "lower",
        model=re.sub(r"\s+", " ", str(names.get("submission_benchmark") or "")),
        parameters=parameters, status="ok" if ok else "failed",
        reason=f"run_stop with status {metadata.get('status')!r}",
    )  # fmt: skip


FORMATS = [
    Format(
        "mllog",
        ".log",
        "MLPerf mllog",
        write=write,
        read=read,
        marks="metadata `marks` of `tracked_stats`",
        lost="runs of which it is not known when they were started; it is no log that MLPerf's "
        "compliance checker accepts as a submission",
        missing="framework, devices, batch per device, precision; of foreign logs the time from "
        "`run_start` to `run_stop` is taken and nothing else",
    )
]
