"""How long exchanging the gradients takes with nothing else to do: timed behind a run, in messages
of the sizes in which they went, and estimated from the all-reduces that were timed before it. Both
bound nothing: in a step the exchange overlaps with other work, and competes with it.

A message takes latency + bytes / bandwidth (Hockney, *Parallel Computing* 20, 1994), and roughly so
does an all-reduce between given ranks. A framework that exchanges many small arrays pays the
latency more often than once, which is not known here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ...statistics.descriptive import median

BYTES_PER_GRADIENT = 4  # float32


class AllReduce(NamedTuple):
    """Of all ranks together. ``gradient_seconds``: expected of one with all gradients in it; None
    where the two sizes do not tell. ``gbytes_per_second``: 10^9 bytes of the larger array."""

    gradient_seconds: float | None
    gbytes_per_second: float


class GradientExchange(NamedTuple):
    """``seconds`` of each round of all ``messages``, of the rank that took longest; ``sizes``:
    bytes of each message, () where they are not known."""

    seconds: tuple[float, ...]
    messages: int
    sizes: tuple[int, ...] = ()


def gradient_exchange_of(ranks: Sequence[Mapping[str, Any]]) -> GradientExchange | None:
    """From the ranks of a record; None where one of them timed none, and says why or is older."""
    found = [rank.get("gradient_exchange") for rank in ranks]
    if not found or not all(one and one["seconds"] for one in found):
        return None
    rounds = zip(*(one["seconds"] for one in found if one), strict=False)
    sizes = tuple(map(int, ranks[0]["gradient_exchange"]["bytes"]))
    return GradientExchange(tuple(map(max, rounds)), len(sizes), sizes)


def all_reduce_of(ranks: Sequence[Mapping[str, Any]]) -> AllReduce | None:
    """From the ranks of a record; None where one of them timed none.

    1. An all-reduce of some size takes the median over its rounds, of the rank that took longest.
    2. The line through the smallest and the largest size has the latency at 0 bytes (at least 0)
       and 1 / bandwidth as its slope. Where the largest takes no longer, there is no line.
    3. On that line lie all gradients: BYTES_PER_GRADIENT for each trainable parameter.
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
        return AllReduce(None, rate)
    slope = risen / (largest - smallest)
    latency = max(0.0, seconds[smallest] - slope * smallest)
    return AllReduce(latency + slope * parameters * BYTES_PER_GRADIENT, rate)
