"""Formats that are only read: logs of trainings by DLLogger and by MLPerf's mllog."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from ....records.run import MetricValue
from ..file_formats import Format
from ..imported import ImportedFigure, ImportedFile, figure, settings_of

_DLLOGGER = "DLLL "
#: Names of steps that hold the configuration.
_CONFIGURATION = re.compile(r"PARAMETERS?|HPARAMS|CONFIG|ENVIRONMENT", re.I)
#: Direction by unit or name. Figures that match neither are skipped.
_HIGHER = re.compile(
    r"/s(ec)?(/|$)|per_second|throughput|ips$|perf$|tflops|accuracy|exact_match|^F1$|top[15]", re.I
)
_LOWER = re.compile(
    r"^([mun]?s|sec(onds)?|min|h)$|latency|(^|[^a-z])(time|timing|took)|time$"
    r"|loss|perplexity|(^|_)wer$",
    re.I,
)
_MLLOG = ":::MLLOG "
START, STOP = "run_start", "run_stop"
#: Keys of mllog that always distinguish cases.
_CASE = ("submission_org", "submission_platform", "submission_division", "global_batch_size")
#: Keys of mllog that are not settings of a run.
_INCIDENTAL = (
    "submission_benchmark", "submission_entry", "submission_poc_name", "submission_poc_email",
    "sgd",  # name of the seed in NVIDIA's SSD
    *_CASE,
)  # fmt: skip


def _read_dllogger(source: ImportedFile) -> Iterator[ImportedFigure]:
    units, configuration = dict[str, str](), dict[str, Any]()
    summary, others = dict[str, float](), set[str]()
    line = 0
    for line, entry in _dllogger_entries(source):
        if entry.get("type") == "METADATA":
            metadata = entry.get("metadata")
            if isinstance(metadata, dict) and metadata.get("unit"):
                units[str(entry.get("metric"))] = str(metadata["unit"])
            continue
        data, step = entry.get("data"), entry.get("step")
        if entry.get("type") != "LOG" or not isinstance(data, (dict, str)):
            source.refuse(
                "is not a line of DLLogger: type or data is missing or has another type", line
            )
        if not isinstance(data, dict):
            continue
        if isinstance(step, str) and _CONFIGURATION.fullmatch(step):
            configuration |= data
            continue
        numbers = {str(name): value for name, value in data.items() if type(value) in (int, float)}
        if step not in ([], "", "SUMMARY"):
            others |= {*numbers}
            continue
        for name, value in numbers.items():
            if name in summary:
                source.refuse(f"{name} is in another summary, too; allowed: the log of one run",
                              line)  # fmt: skip
            summary[name] = source.number(value, name, line)
    if not line:
        source.refuse(f"is of another format: no line has {_DLLOGGER.strip()}")
    for name in sorted(others - {*summary}):
        source.leave_out(name, "only the summary is imported")
    settings = settings_of(configuration)
    if not configuration:  # the logs of two files are two cases
        settings = {"file": "/".join(source.path.absolute().parts[-2:])}
    figures = []
    for name, value in summary.items():
        unit = units.get(name, "")
        if better := _better(name, unit):
            metric = MetricValue(name, value, unit, better)
            figures.append(figure("dllogger", "dllogger", metric, parameters={}, settings=settings))
        else:
            source.leave_out(name, "it is unknown whether higher or lower is better")
    if not figures:
        names = ", ".join(name for _, name in source.left_out[:6]) or "nothing"
        source.refuse(f"has no summary with a figure of known direction; it has {names}", line)
    yield from figures


def _dllogger_entries(source: ImportedFile) -> Iterator[tuple[int, dict[str, Any]]]:
    for line, text in source.lines():
        _, token, rest = text.partition(f"{_DLLOGGER}{{")
        if token:  # other lines are the program's own output
            yield line, source.object_of("{" + rest, line)


def _better(name: str, unit: str) -> str:
    for text in filter(None, (unit, name)):
        if _HIGHER.search(text):
            return "higher"
        if _LOWER.search(text):
            return "lower"
    return ""


def _read_mllog(source: ImportedFile) -> Iterator[ImportedFigure]:
    """Yield the time from the first rank's run_start to the last one's run_stop."""
    logged = dict[str, Any]()
    started, stopped = dict[str, float](), dict[str, float]()
    statuses = set[str]()
    last = 0
    for line, writer, event in _mllog_events(source):
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
        source.refuse(f"is of another format: no line has {_MLLOG}with time_ms and key")
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
    yield figure(
        "mllog", "mllog", MetricValue("time_to_train", seconds, "s", "lower"),
        model=str(logged.get("submission_benchmark") or ""), parameters=parameters,
        settings=settings_of(logged, _INCIDENTAL), failure=failure,
    )  # fmt: skip


def _mllog_events(source: ImportedFile) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """Yield line, writer (rank prefix and namespace) and content of the events of all lines,
    without the output of other programs around them."""
    for line, text in source.lines():
        prefix, *events = text.split(_MLLOG)
        for name in events:
            try:
                event, _ = json.JSONDecoder().raw_decode(name)
            except (ValueError, RecursionError):
                event = None
            if isinstance(event, dict) and {"time_ms", "key"} <= {*event}:
                yield line, f"{prefix}{event.get('namespace')}", event
            else:
                source.leave_out(f"{source.path.name}:{line}", "is not a complete event of mllog")


FORMATS = [
    Format("dllogger", ".json", read=_read_dllogger, others=(".log", ".txt", ".out")),
    Format("mllog", ".log", read=_read_mllog, others=(".txt", ".out")),
]
