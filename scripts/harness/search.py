"""Run a search for the largest batch: single runs one after the other.

The records of the runs lie in a folder next to the record of the search. A search that was killed
continues from the records that exist.
"""

from __future__ import annotations

import os
from typing import Any, Callable, Dict, List, Mapping, Sequence, Tuple

from core import bounded

from harness import record
from harness.adapter import Unsupported
from harness.command_line import parse
from harness.kind import Workload
from harness.kinds.largest_batch import fitting_batch, largest_possible, next_batch

#: Options of the search's command line that are not passed to its runs.
_OWN = ("--kind", "--parameter", "--output", "--log")
_BATCH = "batch_per_device"
#: Part of the memory limit that a run of a search must leave free, because memory varies between
#: runs, and a batch that fits now must fit in later runs, too.
_SPARE = 0.03


def measure(workload: Workload, run: Callable[[Workload], Any]) -> record.Measured:
    """Run the search and return its attempts and final status.

    ``run``: measures a run and writes its record. Runs share the command line of the search except
    for the options in ``_OWN``. Raises :class:`harness.adapter.Unsupported` and what ``run``
    raises."""
    bounds = workload.parameters["multiple_of"], workload.parameters["at_most"]
    if not largest_possible(*bounds):
        raise Unsupported(f"no multiple of {bounds[0]} is at most {bounds[1]}")
    attempts: List[Dict[str, Any]] = []
    version = ""
    with open(workload.options.log, "a", encoding="utf-8") as log:
        batch = next_batch([], *bounds)
        while batch is not None:
            path, finished = _finished(workload, batch, run)
            version = finished["framework_version"]
            attempts.append(_attempt(batch, finished, os.path.relpath(path, _folder(workload))))
            said = f"{finished['status']}  {finished['reason']}"
            print(f"{_BATCH} {batch}: {said}", file=log, flush=True)
            batch = next_batch([(each[_BATCH], each["status"]) for each in attempts], *bounds)
        status, reason = _outcome(attempts, bounds)
        print(f"{status}: {reason}", file=log)
    return record.Measured(status, reason, attempts=attempts, framework_version=version)


def ended_by(attempts: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the attempt that decided a finished search: the largest batch that fits, or the run
    that failed otherwise."""
    if attempts[-1]["status"] not in ("ok", "oom"):
        return attempts[-1]
    fitting = [attempt for attempt in attempts if attempt["status"] == "ok"]
    return max(fitting, key=fitting_batch, default=attempts[-1])


def _outcome(attempts: Sequence[Mapping[str, Any]], bounds: Tuple[int, int]) -> Tuple[str, str]:
    ended = ended_by(attempts)
    if ended["status"] != "ok":
        return ended["status"], f"at batch {ended[_BATCH]}: {ended['reason']}"
    is_bound = ended[_BATCH] == largest_possible(*bounds)
    return "ok", f"the bound of the search: {bounds[1]}" if is_bound else ""


def _folder(workload: Workload) -> str:
    return os.path.dirname(str(workload.options.output))


def _finished(
    workload: Workload, batch: int, run: Callable[[Workload], Any]
) -> Tuple[str, Dict[str, Any]]:
    """Return path and record of the run with this batch; measure unless the record exists."""
    options = workload.options
    output, log = (
        os.path.join(os.path.splitext(path)[0], f"{_BATCH}-{batch}{end}")
        for path, end in ((options.output, ".json"), (options.log, ".log"))
    )
    if not os.path.exists(output):
        words = ["--kind", workload.parameters["mode"], "--batch-per-device", str(batch)]
        if options.memory_limit:
            words += ["--memory-limit", str(options.memory_limit.part(1 - _SPARE))]
        run(parse([*_shared(options.arguments), *words, "--output", output, "--log", log]))
    return output, bounded.read_json(output)


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


def _attempt(batch: int, finished: Mapping[str, Any], path: str) -> Dict[str, Any]:
    """Return the entry of a run in the record of the search.

    Memory is in bytes: device memory of the fullest device, host memory of all ranks together."""
    devices = [rank.get("peak_device_memory_bytes") for rank in finished["ranks"]]
    hosts = [node.get("memory") or {} for node in finished.get("nodes") or [finished]]
    fullest: Mapping[str, Any] = max(hosts, key=lambda node: node.get("peak_bytes", 0))
    return {
        _BATCH: batch,
        "status": finished["status"],
        "reason": finished["reason"],
        "peak_device_memory_bytes": max((size for size in devices if size), default=None),
        "peak_host_memory_bytes": fullest.get("peak_bytes"),
        "memory_limit_bytes": fullest.get("limit_bytes"),
        "seconds": finished["wall_seconds"],
        "record": path.replace(os.sep, "/"),
    }
