"""Search for the largest batch per device that a case can run, by runs of another benchmark with
few steps.

1. Start with the smallest batch and double it until one does not fit, or the bound is reached.
2. Halve the distance between the largest batch that fits and the smallest that does not, until they
   are one step apart.
3. A run that ends otherwise than ``ok`` or ``oom`` ends the search, with its status and reason.

Memory must grow with the batch; nothing else is assumed. No run is larger than twice the largest
batch that fitted, so that a run exceeds the limit by little before the harness ends it.

The records of the runs lie in a folder next to the record of the search. A search that was killed
continues from the records that exist.
"""

from __future__ import annotations

import os
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from core import bounded

from harness.adapter import Unsupported
from harness.kind import AXES, Context, Kind, Metric, Parameter, Workload, at_least, one_of

#: Options of the search's command line that are not passed to its runs.
_OWN = ("--kind", "--parameter", "--output", "--log")
_BATCH = "batch_per_device"
#: Part of the memory limit that a run of a search must leave free, because memory varies between
#: runs, and a batch that fits now must fit in later runs, too.
_SPARE = 0.03


class LargestBatch(Kind):
    """Search for the largest batch that fits, by runs with few steps and growing batches.

    Attempts take the role of ranks in its metrics."""

    parameters = (
        Parameter(
            "mode", one_of("train", "inference"), "", "benchmark whose largest batch is searched"
        ),
        Parameter("multiple_of", at_least(1), "samples", "batches are multiples of this number", 8),
        Parameter("at_most", at_least(1), "samples", "largest batch that is tried", 4096),
    )
    counts_steps = True

    @property
    def axes(self) -> Sequence[str]:
        return [axis for axis in AXES if axis != _BATCH]

    def mode(self, parameters: Mapping[str, Any]) -> str:
        return str(parameters["mode"])

    def metrics(self, workload: Workload) -> Dict[str, Metric]:
        return {"largest_batch": Metric("samples/device", "higher", "max", fitting_batch)}

    def measure(self, context: Context) -> None:
        raise NotImplementedError("a search measures nothing itself: its runs do")


def fitting_batch(attempt: Mapping[str, Any]) -> float:
    """Return the batch of an attempt that fits; 0 for others."""
    return float(attempt[_BATCH]) if attempt["status"] == "ok" else 0.0


def next_batch(tried: Sequence[Tuple[int, str]], multiple_of: int, at_most: int) -> Optional[int]:
    """Return the next batch to try, given the tried batches and their statuses; None where the
    search is over."""
    if not tried:
        return multiple_of
    if tried[-1][1] not in ("ok", "oom"):
        return None
    bound = at_most // multiple_of * multiple_of
    fits = max((batch for batch, status in tried if status == "ok"), default=0)
    too_large = min((batch for batch, status in tried if status == "oom"), default=None)
    if too_large is None:
        return min(2 * fits, bound) if fits < bound else None
    if too_large - fits <= multiple_of:
        return None
    return (fits + too_large) // 2 // multiple_of * multiple_of


def search(
    workload: Workload, run: Callable[[List[str]], Any]
) -> Tuple[str, str, List[Dict[str, Any]], str]:
    """Run the search. Return its status, reason, attempts, and the version of the framework.

    ``run``: measures a run, given its command line, and writes its record. Runs share the command
    line of the search except for the options in ``_OWN``. Raises Unsupported and what ``run``
    raises."""
    options = workload.options
    bounds = workload.parameters["multiple_of"], workload.parameters["at_most"]
    if bounds[0] > bounds[1]:
        raise Unsupported(f"no multiple of {bounds[0]} is at most {bounds[1]}")
    attempts: List[Dict[str, Any]] = []
    version = ""
    with open(options.log, "a", encoding="utf-8") as log:
        batch = next_batch([], *bounds)
        while batch is not None:
            path, finished = _finished(workload, batch, run)
            version = finished["framework_version"]
            place = os.path.relpath(path, os.path.dirname(options.output))
            attempts.append(_attempt(batch, finished, place))
            ending = f"{finished['status']}  {finished['reason']}"
            print(f"{_BATCH} {batch}: {ending}", file=log, flush=True)
            batch = next_batch([(each[_BATCH], each["status"]) for each in attempts], *bounds)
        ended = ended_by(attempts)
        status, reason = ended["status"], ""
        if status != "ok":
            reason = f"at batch {ended[_BATCH]}: {ended['reason']}"
        elif ended[_BATCH] > bounds[1] - bounds[0]:
            reason = f"the bound of the search: {bounds[1]}"
        print(f"{status}: {reason}", file=log)
    return status, reason, attempts, version


def ended_by(attempts: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the attempt that decided a finished search: the largest batch that fits, or the run
    that failed otherwise."""
    if attempts[-1]["status"] not in ("ok", "oom"):
        return attempts[-1]
    fitting = [attempt for attempt in attempts if attempt["status"] == "ok"]
    return max(fitting, key=fitting_batch, default=attempts[-1])


def _finished(
    workload: Workload, batch: int, run: Callable[[List[str]], Any]
) -> Tuple[str, Dict[str, Any]]:
    """Return path and record of the run with this batch; measure unless the record exists."""
    options = workload.options
    output, log = (
        os.path.join(os.path.splitext(path)[0], f"{_BATCH}-{batch}{end}")
        for path, end in ((options.output, ".json"), (options.log, ".log"))
    )
    if not os.path.exists(output):
        words = ["--kind", workload.parameters["mode"], "--batch-per-device", str(batch)]
        limit = options.memory_limit
        if limit:
            words += ["--memory-limit", str(limit._replace(number=(1 - _SPARE) * limit.number))]
        run([*_shared(options.arguments), *words, "--output", output, "--log", log])
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
