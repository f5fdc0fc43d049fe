"""MLPerf's mllog: the events of one run of training, one per line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ....records.run import MetricValue
from .. import rows
from ..file_formats import Format
from ..source import ImportedFile

TOKEN = ":::MLLOG "
START, STOP = "run_start", "run_stop"
#: Keys that always distinguish cases.
_CASE = ("submission_org", "submission_platform", "submission_division", "global_batch_size")
#: Keys that are not settings of a run.
_INCIDENTAL = (
    "submission_benchmark", "submission_entry", "submission_poc_name", "submission_poc_email",
    "sgd",  # name of the seed in NVIDIA's SSD
    *_CASE,
)  # fmt: skip


def read(source: ImportedFile) -> Iterator[rows.ImportedFigure]:
    """Yield the time from the first rank's run_start to the last one's run_stop."""
    logged = dict[str, Any]()
    started, stopped = dict[str, float](), dict[str, float]()
    statuses = set[str]()
    last = 0
    for line, writer, event in _events_of(source):
        key, value, last = str(event["key"]), event.get("value"), line
        if key in (START, STOP):
            time = source.number(event["time_ms"], "time_ms", line)
        if key == START:
            if writer in started or stopped:
                source.refuse(f"has another {START}; allowed: the log of one run", line)
            started[writer] = time
        elif key == STOP:
            if not started or writer in stopped or time < min(started.values()):
                source.refuse(f"{STOP} without a {START} before it", line)
            stopped[writer] = time
            metadata = event.get("metadata")
            statuses.add(repr(metadata.get("status") if isinstance(metadata, dict) else None))
        elif key in _INCIDENTAL or (not started and isinstance(value, (str, int, float))):
            logged[key] = value
        elif started and type(value) in (int, float):
            source.leave_out(key, f"only the time from {START} to {STOP} is imported from a log")
    if not last:
        source.refuse(f"is of another format: no line has {TOKEN}with time_ms and key")
    if not started and not logged.get("submission_benchmark"):
        allowed = "allowed: a log of MLPerf training, not of inference"
        source.refuse(f"has no {START}; {allowed}", last)
    wrong = sorted(statuses - {repr("success")})
    failure = f"{STOP} with status {wrong[0]}" if wrong else ""
    if not stopped:
        missing = STOP if started else START
        failure = f"the log ends at line {last} without a {missing}"
    seconds = (max(stopped.values()) - min(started.values())) / 1000 if stopped else None
    parameters = {name: logged[name] for name in _CASE if logged.get(name) not in (None, "")}
    yield rows.figure(
        "mllog", "mllog", MetricValue("time_to_train", seconds, "s", "lower"),
        model=str(logged.get("submission_benchmark") or ""), parameters=parameters,
        settings=rows.settings_of(logged, _INCIDENTAL), failure=failure,
    )  # fmt: skip


def _events_of(source: ImportedFile) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """Yield line, writer (rank prefix and namespace) and content of the events of all lines,
    without the output of other programs around them."""
    for line, text in source.lines():
        prefix, *events = text.split(TOKEN)
        for name in events:
            try:
                event, _ = json.JSONDecoder().raw_decode(name)
            except (ValueError, RecursionError):
                event = None
            if isinstance(event, dict) and {"time_ms", "key"} <= {*event}:
                yield line, f"{prefix}{event.get('namespace')}", event
            else:
                source.leave_out(f"{source.path.name}:{line}", "is not a complete event of mllog")


FORMATS = [Format("mllog", ".log", read=read, others=(".txt", ".out"))]
