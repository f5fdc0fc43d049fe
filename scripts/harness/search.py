"""Run a search: single runs one after the other, each a harness of its own.

The record of a run lies in a folder next to the record of the search. Its name is made of the axes
that the search varies. A search that was killed continues from the records that exist.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any, Dict, List, Mapping, Optional, Tuple

from core import RECORD_FORMAT, axes, bounded

from harness import record
from harness.kind import SearchKind, Workload
from harness.processes.cleanup import Interrupted
from harness.processes.parent_death import PARENT_VARIABLE

#: Options of the search's command line that its runs do not share.
_OWN = ("--kind", "--parameter", "--output", "--log")
_HARNESS = os.path.dirname(os.path.realpath(__file__))


class NoRecord(Exception):
    """Raised where a run ended without a record; ``status`` is its exit status."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


def measure(workload: Workload, kind: SearchKind) -> record.Measured:
    """Run the search and return its attempts and final status.

    Its runs share its command line except for the options in ``_OWN``. Raises :class:`NoRecord`,
    :class:`harness.adapter.Unsupported` and :class:`harness.processes.cleanup.Interrupted`, which
    is passed on to the run."""
    options = workload.options
    attempts: List[Dict[str, Any]] = []
    version = ""
    with open(options.log, "a", encoding="utf-8") as log:
        varied = kind.following(workload, attempts)
        while varied is not None:
            path, finished = _run(workload, kind.runs(workload.parameters), varied)
            version = finished["framework_version"]
            relative = os.path.relpath(path, os.path.dirname(options.output))
            attempts.append(_attempt(varied, finished, relative))
            label = " ".join(f"{axis} {value}" for axis, value in varied.items())
            print(f"{label}: {finished['status']}  {finished['reason']}", file=log, flush=True)
            varied = kind.following(workload, attempts)
        status, reason = kind.outcome(workload, attempts)
        print(f"{status}: {reason}", file=log)
    return record.Measured(status, reason, attempts=attempts, framework_version=version)


def _run(workload: Workload, kind: str, varied: Mapping[str, Any]) -> Tuple[str, Dict[str, Any]]:
    """Return path and record of the run with the axes ``varied``; measure it unless its record
    exists, in a folder next to that of the search."""
    options, number = workload.options, 0
    stem = "-".join(f"{axis}-{value}" for axis, value in varied.items())
    while True:
        name = f"{stem}-retry{number}" if number else stem
        path = os.path.join(os.path.splitext(options.output)[0], f"{name}.json")
        if not os.path.lexists(path):
            break
        existing = _read(path)
        if existing and existing["kind"] == kind and varied.items() <= existing["case"].items():
            return path, existing
        number += 1  # truncated or somebody else's: it stays as it is
    log = os.path.join(os.path.splitext(options.log)[0], f"{name}.log")
    command = [sys.executable, _HARNESS, *_shared(options.arguments), "--kind", kind]
    command += [w for axis, value in varied.items() for w in (axes.named(axis).option, str(value))]
    status = _wait([*command, "--output", path, "--log", log])
    finished = _read(path)
    if status or finished is None:
        raise NoRecord(status or 1)
    return path, finished


def _shared(arguments: List[str]) -> List[str]:
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


def _read(path: str) -> Optional[Dict[str, Any]]:
    """Return a complete record, or None for anything else."""
    try:
        content = bounded.read_json(path)
    except (OSError, ValueError):
        return None
    is_record = isinstance(content, dict) and content.get("format") == RECORD_FORMAT
    return content if is_record else None


def _wait(command: List[str]) -> int:
    """Return the exit status of a command that ends with this process; 128 + N after signal N.

    Raises Interrupted after the command, which gets the same signal, has ended."""
    variables = {PARENT_VARIABLE: str(os.getpid())}
    process = subprocess.Popen(command, env={**os.environ, **variables})
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
