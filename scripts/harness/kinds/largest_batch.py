"""Search for the largest batch per device that a case can run.

1. Start with the smallest batch and double it until one does not fit, or the bound is reached.
2. Halve the distance between the largest batch that fits and the smallest that does not, until they
   are one step apart.
3. A run that ends otherwise than ``ok`` or ``oom`` ends the search, with its status and reason.

Memory must grow with the batch; nothing else is assumed. No run is larger than twice the largest
batch that fitted, so little is held beyond the limit, and the harness ends the run before memory
runs out. No forecast is needed.
"""

from __future__ import annotations

import math
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from harness.adapter import Unsupported
from harness.kind import AXES, Metric, Parameter, SearchKind, Workload, at_least, one_of

Attempts = Sequence[Mapping[str, Any]]


class LargestBatch(SearchKind):
    """Search for the largest batch that fits, by runs with few steps and growing batches."""

    parameters = (
        Parameter("mode", one_of("train", "inference"), "", "the kind of the runs"),
        Parameter("multiple_of", at_least(1), "samples", "the step of the search", 8),
        Parameter("at_most", at_least(1), "samples", "the bound of the search", 4096),
    )
    counts_steps = True

    @property
    def axes(self) -> Sequence[str]:
        return [axis for axis in AXES if axis != "batch_per_device"]

    def mode(self, parameters: Mapping[str, Any]) -> str:
        return self.runs(parameters)

    def metrics(self, workload: Workload) -> Dict[str, Metric]:
        return {"largest_batch": Metric("samples/device", "higher", "max", _fitting)}

    def runs(self, parameters: Mapping[str, Any]) -> str:
        return str(parameters["mode"])

    def following(self, workload: Workload, attempts: Attempts) -> Optional[Dict[str, Any]]:
        parameters = workload.parameters
        if not _bound(parameters):
            raise Unsupported(
                f"no multiple of {parameters['multiple_of']} is at most {parameters['at_most']}"
            )
        batch = next_batch(_tried(attempts), parameters)
        return None if batch is None else {"batch_per_device": batch}

    def outcome(self, workload: Workload, attempts: Attempts) -> Tuple[str, str]:
        ended = ended_by(attempts)
        batch, at_most = ended["batch_per_device"], workload.parameters["at_most"]
        if ended["status"] != "ok":
            return ended["status"], f"at batch {batch}: {ended['reason']}"
        is_bound = batch == _bound(workload.parameters)
        return "ok", f"the bound of the search: {at_most}" if is_bound else ""

    def expected(self, parameters: Mapping[str, Any]) -> List[Dict[str, Any]]:
        """Return the expected runs, as if the largest batch lay in the middle of the bounds on a
        logarithmic scale."""
        middle = math.sqrt(parameters["multiple_of"] * _bound(parameters))
        tried: List[Tuple[int, str]] = []
        batch = next_batch(tried, parameters)
        while batch is not None:
            tried.append((batch, "ok" if batch <= middle else "oom"))
            batch = next_batch(tried, parameters)
        return [{"batch_per_device": batch} for batch, _ in tried]


def _fitting(attempt: Mapping[str, Any]) -> float:
    return float(attempt["batch_per_device"]) if attempt["status"] == "ok" else 0.0


def _tried(attempts: Attempts) -> List[Tuple[int, str]]:
    return [(attempt["batch_per_device"], attempt["status"]) for attempt in attempts]


def _bound(parameters: Mapping[str, Any]) -> int:
    """Return the largest possible batch; 0 where none is possible."""
    step = int(parameters["multiple_of"])
    return int(parameters["at_most"]) // step * step


def next_batch(tried: Sequence[Tuple[int, str]], parameters: Mapping[str, Any]) -> Optional[int]:
    """Return the batch to try after these batches with their statuses; None where the search is
    over."""
    step, bound = int(parameters["multiple_of"]), _bound(parameters)
    if not tried:
        return step
    if tried[-1][1] not in ("ok", "oom"):
        return None
    fits = max((batch for batch, status in tried if status == "ok"), default=0)
    too_large = min((batch for batch, status in tried if status == "oom"), default=None)
    if too_large is None:
        return min(2 * fits, bound) if fits < bound else None
    if too_large - fits <= step:
        return None
    return (fits + too_large) // 2 // step * step


def ended_by(attempts: Attempts) -> Mapping[str, Any]:
    """Return the attempt that decided a finished search: the largest batch that fits, or the run
    that failed otherwise."""
    if attempts[-1]["status"] not in ("ok", "oom"):
        return attempts[-1]
    fitting = [attempt for attempt in attempts if attempt["status"] == "ok"]
    return max(fitting, key=_fitting, default=attempts[-1])
