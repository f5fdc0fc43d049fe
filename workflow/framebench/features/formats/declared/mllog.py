"""MLPerf's mllog: one event of a run per line."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ....files.json_files import object_at
from .. import rows
from ..format import Format
from ..source import ImportedFile

TOKEN = ":::MLLOG "


#: Keys that always distinguish cases.
_CASE = ("submission_org", "submission_platform", "submission_division", "global_batch_size")
#: Keys of MLPerf HPC -> counts of a case.
_COUNTS = {"number_of_nodes": "nodes", "accelerators_per_node": "devices_per_node"}
#: Keys that are not settings of a run.
_INCIDENTAL = (
    "submission_benchmark", "submission_entry", "submission_poc_name", "submission_poc_email",
    "sgd",  # name of the seed in NVIDIA's SSD
    *_CASE, *_COUNTS,
)  # fmt: skip


@dataclass(frozen=True)
class Event:
    """An event of the log. ``writer``: rank prefix and namespace."""

    line: int
    writer: str
    key: str
    value: Any
    metadata: Mapping[str, Any]
    time: float


@dataclass
class TimedRun:
    """A run of the log; several ranks may log its start and stop."""

    line: int
    started: dict[str, float] = field(default_factory=dict)
    stopped: dict[str, float] = field(default_factory=dict)
    statuses: set[str] = field(default_factory=set)

    @property
    def is_over(self) -> bool:
        return {*self.started} <= {*self.stopped}


class Log:
    """State of parsing a log, event by event.

    ``logged``: settings of the current run; ``behind``: settings logged after its end, which belong
    to it or to the next run."""

    def __init__(self, source: ImportedFile) -> None:
        self.source = source
        self.run: TimedRun | None = None
        self.logged: dict[str, Any] = {}
        self.behind: dict[str, Any] = {}

    def take(self, event: Event) -> Iterator[rows.ImportedFigure]:
        """Process the next event and yield each run that it completes."""
        if event.key == "run_start":
            yield from self._start(event)
        elif event.key == "run_stop":
            self._stop(event)
        elif event.key in _INCIDENTAL:
            (self.behind if self.run and self.run.is_over else self.logged)[event.key] = event.value
        elif self.run is None and isinstance(event.value, (str, int, float)):
            self.logged[event.key] = event.value
        elif not event.key.endswith(("_start", "_stop")):
            self._leave_out(event)

    def _start(self, event: Event) -> Iterator[rows.ImportedFigure]:
        if self.run and self.run.is_over:
            yield self._figure(self.run, self.logged)
            self.run, self.logged, self.behind = None, self.behind, {}
        if self.run is None:
            self.run = TimedRun(event.line)
        elif event.writer in self.run.started:
            self.source.refuse("run_start stands twice without a run_stop between", event.line)
        self.run.started[event.writer] = event.time

    def _stop(self, event: Event) -> None:
        run = self.run
        begun = min(run.started.values()) if run else math.inf
        if run is None or event.writer in run.stopped or event.time < begun:
            self.source.refuse("run_stop without a run_start before it", event.line)
        run.stopped[event.writer] = event.time
        run.statuses.add(repr(event.metadata.get("status")))

    def _leave_out(self, event: Event) -> None:
        parts = event.value if isinstance(event.value, dict) else {"": event.value}
        for name, value in parts.items():
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                why = "of a log only the time from run_start to run_stop is taken"
                self.source.leave_out(f"{event.key}.{name}".rstrip("."), why)

    def end(self, last: int) -> Iterator[rows.ImportedFigure]:
        """Yield the last run, also if it has not ended. Raises FormatError if there is none."""
        logged = {**self.behind, **self.logged}
        if self.run:
            yield self._figure(self.run, logged)
        elif logged.get("submission_benchmark"):
            yield self._foreign(logged, None, f"the log ends at line {last} without a run_start")
        else:
            allowed = "allowed: a log of MLPerf training; those of inference are not read"
            self.source.refuse(f"has no run_start; {allowed}", last)

    def _figure(self, run: TimedRun, logged: Mapping[str, Any]) -> rows.ImportedFigure:
        if not run.stopped:
            why = f"the log ends without the run_stop of the run_start in line {run.line}"
            return self._foreign(logged, None, why)
        seconds = (max(run.stopped.values()) - min(run.started.values())) / 1000
        wrong = sorted(run.statuses - {repr("success")})
        return self._foreign(logged, seconds, f"run_stop with status {wrong[0]}" if wrong else "")

    def _foreign(
        self, logged: Mapping[str, Any], seconds: float | None, reason: str
    ) -> rows.ImportedFigure:
        parameters = {name: logged[name] for name in _CASE if logged.get(name) not in (None, "")}
        counts = {name: logged[key] for key, name in _COUNTS.items() if _is_count(logged.get(key))}
        if system := _system(self.source.path):
            parameters["system"] = system
        return rows.figure(
            "mllog", "mllog", "time_to_train", seconds, "s", "lower",
            model=str(logged.get("submission_benchmark") or ""), parameters=parameters,
            settings=rows.settings_of(logged, _INCIDENTAL), status="failed" if reason else "ok",
            reason=reason, **counts,
        )  # fmt: skip


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 < value < 1_000_000


def _system(path: Path) -> str:
    """Return the system of a submission's log, results/SYSTEM/BENCHMARK/result_N.txt; else ""."""
    parts = path.absolute().parts
    is_result = re.fullmatch(r"result_\d+\.txt(\.gz)?", path.name) and parts[-4:-3] == ("results",)
    return parts[-3] if is_result else ""


def read(source: ImportedFile) -> Iterator[rows.ImportedFigure]:
    """Yield the time from run_start to run_stop of each run."""
    log = Log(source)
    last = 0
    for event in _events_of(source):
        last = event.line
        yield from log.take(event)
    if not last:
        source.refuse(f"is of another format: no line has {TOKEN}with time_ms and key")
    yield from log.end(last)


def _events_of(source: ImportedFile) -> Iterator[Event]:
    """Yield the events of all lines, without the output of other programs around them."""
    for line, text in source.lines(of_log=True):
        prefix, *events = text.split(TOKEN)
        for name in events:
            try:
                event, _ = json.JSONDecoder().raw_decode(name)
            except (ValueError, RecursionError):
                event = None
            if not isinstance(event, dict) or not {"time_ms", "key"} <= {*event}:
                if not source.is_cut_off(line):
                    source.leave_out(f"{source.path.name}:{line}", "is no complete event of mllog")
                continue
            if event["key"] in ("run_start", "run_stop"):
                time = source.number(_numeric(event["time_ms"]), "time_ms", line)
            else:
                time = math.nan
            yield Event(
                line, f"{prefix}{event.get('namespace')}", str(event["key"]), event.get("value"),
                object_at(event, "metadata"), time,
            )  # fmt: skip


def _numeric(value: Any) -> Any:
    """Return numeric text as a number, any other value unchanged."""
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value


FORMATS = [
    Format(
        "mllog",
        ".log",
        "MLPerf mllog",
        others=(".txt", ".out"),
        read=read,
        missing="framework, devices (except in MLPerf HPC), batch per device, precision",
        taken="for training, the time from `run_start` to `run_stop`; a run without `run_stop` or "
        "with another status than success is `failed`; parameters: organization, platform, "
        "division, global batch size, and everything logged before `run_start` that differs",
        not_taken="`tracked_stats`, accuracies and everything else logged in the run; MLPerf "
        "inference; MLPerf 0.5",
    )
]
