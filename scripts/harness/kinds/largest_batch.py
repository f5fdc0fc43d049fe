"""Search for the largest batch per device that a case can run, by runs of another benchmark with
few steps (:mod:`harness.search`).

1. Start with the smallest batch and double it until one does not fit, or the bound is reached.
2. Halve the distance between the largest batch that fits and the smallest that does not, until they
   are one step apart.
3. A run that ends otherwise than ``ok`` or ``oom`` ends the search, with its status and reason.

Memory must grow with the batch; nothing else is assumed. No run is larger than twice the largest
batch that fitted, so that a run exceeds the limit by little before the harness ends it.
"""

from __future__ import annotations

from typing import Any, Dict, Mapping, Optional, Sequence, Tuple

from harness.kind import AXES, Context, Kind, Metric, Parameter, Workload, at_least, one_of


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
        return [axis for axis in AXES if axis != "batch_per_device"]

    def mode(self, parameters: Mapping[str, Any]) -> str:
        return str(parameters["mode"])

    def metrics(self, workload: Workload) -> Dict[str, Metric]:
        return {"largest_batch": Metric("samples/device", "higher", "max", fitting_batch)}

    def measure(self, context: Context) -> None:
        raise NotImplementedError("a search measures nothing itself: its runs do")


def fitting_batch(attempt: Mapping[str, Any]) -> float:
    """Return the batch of an attempt that fits; 0 for others."""
    return float(attempt["batch_per_device"]) if attempt["status"] == "ok" else 0.0


def largest_possible(multiple_of: int, at_most: int) -> int:
    """Return the largest batch within the bounds; 0 where none is possible."""
    return at_most // multiple_of * multiple_of


def next_batch(tried: Sequence[Tuple[int, str]], multiple_of: int, at_most: int) -> Optional[int]:
    """Return the next batch to try, given the tried batches and their statuses; None where the
    search is over."""
    if not tried:
        return multiple_of
    if tried[-1][1] not in ("ok", "oom"):
        return None
    bound = largest_possible(multiple_of, at_most)
    fits = max((batch for batch, status in tried if status == "ok"), default=0)
    too_large = min((batch for batch, status in tried if status == "oom"), default=None)
    if too_large is None:
        return min(2 * fits, bound) if fits < bound else None
    if too_large - fits <= multiple_of:
        return None
    return (fits + too_large) // 2 // multiple_of * multiple_of
