"""Stand-alone time of the gradient all-reduce.

It is timed after a run in messages of the sizes that the run sent, and estimated from all-reduces
timed before the run. Neither is a bound: in a step the all-reduce overlaps with other work and
competes with it.

A message takes latency + bytes / bandwidth (Hockney, *Parallel Computing* 20, 1994), and an
all-reduce between given ranks roughly so. A framework that sends many small arrays pays the latency
more than once, which the estimate does not know.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ...statistics.descriptive import median

BYTES_PER_GRADIENT = 4  # float32


class AllReduceTiming(NamedTuple):
    """Timing of all-reduces over all ranks.

    ``gradient_seconds``: expected for all gradients in one message; None if the two timed sizes
    give no estimate. ``gbytes_per_second``: 10^9 bytes of the larger array per second.
    """

    gradient_seconds: float | None
    gbytes_per_second: float


class GradientAllReduce(NamedTuple):
    """Timed all-reduces of the gradients.

    ``seconds``: of each round of all ``messages``, on the slowest rank; ``sizes``: bytes of each
    message, () if unknown.
    """

    seconds: tuple[float, ...]
    messages: int
    sizes: tuple[int, ...] = ()


def gradient_all_reduce_of(ranks: Sequence[Mapping[str, Any]]) -> GradientAllReduce | None:
    """Return the timed gradient all-reduce of a record's ranks; None unless all ranks have one."""
    found = [rank.get("gradient_all_reduce") for rank in ranks]
    if not found or not all(entry and entry["seconds"] for entry in found):
        return None
    rounds = zip(*(entry["seconds"] for entry in found if entry), strict=False)
    sizes = tuple(map(int, ranks[0]["gradient_all_reduce"]["bytes"]))
    return GradientAllReduce(tuple(map(max, rounds)), len(sizes), sizes)


def all_reduce_of(ranks: Sequence[Mapping[str, Any]]) -> AllReduceTiming | None:
    """Return the all-reduce timing of a record's ranks; None unless all ranks timed some.

    1. An all-reduce of some size takes the median over its rounds, on the slowest rank.
    2. The line through the smallest and the largest size gives the latency at 0 bytes (at least 0)
       and, as its slope, 1 / bandwidth. There is no line if the largest takes no longer.
    3. The estimate is the time on that line for all gradients: BYTES_PER_GRADIENT for each
       trainable parameter.
    """
    if not ranks or not all(rank.get("preflight") for rank in ranks):
        return None
    seconds: dict[int, float] = {}
    for entry in (entry for rank in ranks for entry in rank["preflight"] if entry["seconds"]):
        size = int(entry["bytes"])
        seconds[size] = max(float(median(entry["seconds"])), seconds.get(size, 0.0))
    smallest, largest = min(seconds, default=0), max(seconds, default=0)
    if not seconds.get(largest):
        return None
    rate = largest / seconds[largest] / 1e9
    risen = seconds[largest] - seconds[smallest]
    parameters = ranks[0].get("trainable_parameters")
    if parameters is None or risen <= 0:
        return AllReduceTiming(None, rate)
    slope = risen / (largest - smallest)
    latency = max(0.0, seconds[smallest] - slope * smallest)
    return AllReduceTiming(latency + slope * parameters * BYTES_PER_GRADIENT, rate)
