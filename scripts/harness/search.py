"""Run a search: single runs one after the other, each a harness of its own.

The record of a run lies in a folder next to the record of the search. Its name is made of the axes
that the search varies. A search that was killed continues from the records that exist.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from core import bounded

from harness.kind import SearchKind
from harness.processes.cleanup import Interrupted
from harness.processes.parent_death import PARENT_VARIABLE
from harness.record import record
from harness.record.schema import errors
from harness.request.declaration import Task

#: Options of the search's command line that its runs do not share.
_OWN = ("--kind", "--parameter", "--output", "--log")
_HARNESS = os.path.dirname(os.path.realpath(__file__))


class NoRecord(Exception):
    """Raised where a run ended without a record; ``status`` is its exit status."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


def measure(
    task: Task, kind: SearchKind, arguments: Sequence[str], schema: Mapping[str, Any]
) -> record.Measured:
    """Run the search and return its attempts and final status.

    ``arguments`` is the command line of the search, which its runs share except for the options in
    ``_OWN``. Raises :class:`NoRecord`, :class:`harness.adapter.Unsupported` and
    :class:`harness.processes.cleanup.Interrupted`, which is passed on to the run."""
    request = task.request
    command = [sys.executable, _HARNESS, *_shared(arguments), "--kind"]
    command.append(kind.runs(request.parameters))
    attempts: List[Dict[str, Any]] = []
    version = ""
    with open(request.log, "a", encoding="utf-8") as log:
        varied = kind.following(task.workload, attempts)
        while varied is not None:
            path, finished = _run(task, kind, varied, command, schema)
            version = finished["framework_version"]
            attempts.append(
                _attempt(varied, finished, os.path.relpath(path, os.path.dirname(request.output)))
            )
            label = " ".join(f"{axis} {value}" for axis, value in varied.items())
            print(f"{label}: {finished['status']}  {finished['reason']}", file=log, flush=True)
            varied = kind.following(task.workload, attempts)
        status, reason = kind.outcome(task.workload, attempts)
        print(f"{status}: {reason}", file=log)
    return record.Measured(status, reason, [], attempts=attempts, framework_version=version)


def _shared(arguments: Sequence[str]) -> List[str]:
    """Return the arguments without the options in ``_OWN``."""
    remaining = iter(arguments)
    kept = []
    for argument in remaining:
        name, separator, _ = argument.partition("=")
        if name not in _OWN:
            kept.append(argument)
        elif not separator:
            next(remaining)
    return kept


def _folder(path: str) -> str:
    """Return the folder of the runs' files, next to ``path`` of the search."""
    return os.path.splitext(path)[0]


def _run(
    task: Task,
    kind: SearchKind,
    varied: Mapping[str, Any],
    command: Sequence[str],
    schema: Mapping[str, Any],
) -> Tuple[str, Dict[str, Any]]:
    """Return path and record of the run with the axes ``varied``; measure it unless its record
    exists."""
    request = task.request
    stem = "-".join(f"{axis}-{value}" for axis, value in varied.items())
    number = 0
    while True:
        name = f"{stem}-retry{number}" if number else stem
        path = os.path.join(_folder(request.output), f"{name}.json")
        if not os.path.lexists(path):
            break
        existing = _read(path, schema)
        is_same_kind = existing and existing["kind"] == kind.runs(request.parameters)
        if existing and is_same_kind and varied.items() <= existing["case"].items():
            return path, existing
        number += 1  # truncated or somebody else's: it stays as it is
    options = [word for axis, value in varied.items() for word in (_option(axis), str(value))]
    places = ["--output", path, "--log", os.path.join(_folder(request.log), f"{name}.log")]
    status = _wait([*command, *options, *places])
    finished = _read(path, schema)
    if status or finished is None:
        raise NoRecord(status or 1)
    return path, finished


def _option(axis: str) -> str:
    """Return the command line option of an axis."""
    return "--" + axis.replace("_", "-")


def _read(path: str, schema: Mapping[str, Any]) -> Optional[Dict[str, Any]]:
    """Return a complete record, or None for anything else."""
    try:
        content = bounded.read_json(path)
    except (OSError, ValueError):
        return None
    return None if errors(content, dict(schema)) else content


def _wait(command: Sequence[str]) -> int:
    """Return the exit status of a command that ends with this process; 128 + N after signal N.

    Raises Interrupted after the command, which gets the same signal, has ended."""
    variables = {PARENT_VARIABLE: str(os.getpid())}
    process = subprocess.Popen(list(command), env={**os.environ, **variables})
    try:
        status = process.wait()
    except Interrupted as interrupted:
        process.send_signal(interrupted.number)
        process.wait()
        raise
    return status if status >= 0 else 128 - status


def _attempt(varied: Mapping[str, Any], finished: Mapping[str, Any], path: str) -> Dict[str, Any]:
    """Return the entry of a run in the record of the search.

    Memory is in bytes: device memory of the fullest device, host memory of all ranks together."""
    devices = [rank.get("peak_device_memory_bytes") for rank in finished["ranks"]]
    hosts = [node.get("memory") or {} for node in finished.get("nodes") or [finished]]
    fullest: Mapping[str, Any] = max(hosts, key=lambda node: node.get("peak_bytes", 0))
    return {
        **varied,
        "status": finished["status"],
        "reason": finished["reason"],
        "peak_device_memory_bytes": max((size for size in devices if size), default=None),
        "peak_host_memory_bytes": fullest.get("peak_bytes"),
        "memory_limit_bytes": fullest.get("limit_bytes"),
        "seconds": finished["wall_seconds"],
        "record": path.replace(os.sep, "/"),
    }
