"""A series: the runs that a kind asks for, one after the other, each a harness of its own.

A run's record lies in a folder beside that of the series, under the name of what the run has of
its own. A series that was killed goes on from the records that are there.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from harness import bounded
from harness.kind import Series
from harness.processes.cleanup import Interrupted
from harness.processes.parent_death import PARENT_VARIABLE
from harness.record import record
from harness.record.schema import errors
from harness.request.declaration import Task

#: What of the command line is the series' own.
_OWN = ("--kind", "--parameter", "--output", "--log")
_HARNESS = os.path.dirname(os.path.realpath(__file__))


class NoRecord(Exception):
    """A run ended without a record; ``status`` is its exit status."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


def measure(
    task: Task, kind: Series, arguments: Sequence[str], schema: Mapping[str, Any]
) -> record.Measured:
    """How the series went: its attempts, and the status that follows from them. ``arguments``: the
    command line of the series, which its runs share but for what is their own. Raises
    :class:`NoRecord`, :class:`harness.adapter.Unsupported` and
    :class:`harness.processes.cleanup.Interrupted`, which the run gets, too."""
    request = task.request
    command = [sys.executable, _HARNESS, *_shared(arguments), "--kind"]
    command.append(kind.runs(request.parameters))
    attempts: List[Dict[str, Any]] = []
    version = ""
    with open(request.log, "a", encoding="utf-8") as log:
        own = kind.following(task.workload, attempts)
        while own is not None:
            path, made = _run(task, kind, own, command, schema)
            version = made["framework_version"]
            attempts.append(
                _attempt(own, made, os.path.relpath(path, os.path.dirname(request.output)))
            )
            words = " ".join(f"{axis} {value}" for axis, value in own.items())
            print(f"{words}: {made['status']}  {made['reason']}", file=log, flush=True)
            own = kind.following(task.workload, attempts)
        status, reason = kind.outcome(task.workload, attempts)
        print(f"{status}: {reason}", file=log)
    return record.Measured(status, reason, [], attempts=attempts, framework_version=version)


def _shared(arguments: Sequence[str]) -> List[str]:
    words = iter(arguments)
    kept = []
    for word in words:
        name, separator, _ = word.partition("=")
        if name not in _OWN:
            kept.append(word)
        elif not separator:
            next(words)
    return kept


def _folder(path: str) -> str:
    """Of the runs' files, beside that of the series."""
    return os.path.splitext(path)[0]


def _run(
    task: Task,
    kind: Series,
    own: Mapping[str, Any],
    command: Sequence[str],
    schema: Mapping[str, Any],
) -> Tuple[str, Dict[str, Any]]:
    """The record of the run that has this of its own, and its path: measured, if it is not there
    already."""
    request = task.request
    stem = "-".join(f"{axis}-{value}" for axis, value in own.items())
    number = 0
    while True:
        name = f"{stem}-retry{number}" if number else stem
        path = os.path.join(_folder(request.output), f"{name}.json")
        if not os.path.lexists(path):
            break
        made = _read(path, schema)
        of_kind = made and made["kind"] == kind.runs(request.parameters)
        if made and of_kind and own.items() <= made["case"].items():
            return path, made
        number += 1  # truncated or somebody else's: it stays as it is
    options = [word for axis, value in own.items() for word in (_option(axis), str(value))]
    places = ["--output", path, "--log", os.path.join(_folder(request.log), f"{name}.log")]
    status = _wait([*command, *options, *places])
    finished = _read(path, schema)
    if status or finished is None:
        raise NoRecord(status or 1)
    return path, finished


def _option(axis: str) -> str:
    return "--" + axis.replace("_", "-")


def _read(path: str, schema: Mapping[str, Any]) -> Optional[Dict[str, Any]]:
    """A whole record; None for anything else."""
    try:
        content = bounded.read_json(path)
    except (OSError, ValueError):
        return None
    return None if errors(content, dict(schema)) else content


def _wait(command: Sequence[str]) -> int:
    """The exit status of a command that ends with this process, 128 + N after signal N. Raises
    Interrupted behind the end of the command, which has got the signal, too."""
    own = {PARENT_VARIABLE: str(os.getpid())}
    process = subprocess.Popen(list(command), env={**os.environ, **own})
    try:
        status = process.wait()
    except Interrupted as interrupted:
        process.send_signal(interrupted.number)
        process.wait()
        raise
    return status if status >= 0 else 128 - status


def _attempt(own: Mapping[str, Any], made: Mapping[str, Any], path: str) -> Dict[str, Any]:
    """Memory in bytes: of the device that held most, and of the host for all ranks together."""
    devices = [rank.get("peak_device_memory_bytes") for rank in made["ranks"]]
    hosts = [node.get("memory") or {} for node in made.get("nodes") or [made]]
    fullest: Mapping[str, Any] = max(hosts, key=lambda one: one.get("peak_bytes", 0))
    return {
        **own,
        "status": made["status"],
        "reason": made["reason"],
        "peak_device_memory_bytes": max((size for size in devices if size), default=None),
        "peak_host_memory_bytes": fullest.get("peak_bytes"),
        "memory_limit_bytes": fullest.get("limit_bytes"),
        "seconds": made["wall_seconds"],
        "record": path.replace(os.sep, "/"),
    }
