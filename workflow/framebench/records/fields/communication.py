"""Stand-alone time of all-reduces.

Those of the gradients are timed after a run in messages of the sizes that the run sent, others
before it in two sizes. Neither is a bound: in a step the all-reduce overlaps with other work and
competes with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ...statistics.descriptive import median


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


def all_reduce_rate(ranks: Sequence[Mapping[str, Any]]) -> float | None:
    """Return the GB/s of the largest all-reduce that was timed before a run: its bytes over the
    median of its rounds, on the slowest rank. None unless all ranks timed some."""
    if not ranks or not all(rank.get("preflight") for rank in ranks):
        return None
    seconds: dict[int, float] = {}
    for entry in (entry for rank in ranks for entry in rank["preflight"] if entry["seconds"]):
        size = int(entry["bytes"])
        seconds[size] = max(float(median(entry["seconds"])), seconds.get(size, 0.0))
    largest = max(seconds, default=0)
    return largest / seconds[largest] / 1e9 if seconds.get(largest) else None
