"""How the largest batch is searched for: bounds, the next batch to try, the format of the result.
Standard library only: the search runs where the framework does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

FORMAT = "framebench-largest-batch-1"


class Bounds(NamedTuple):
    """Which batches come into question: multiples of ``multiple_of`` up to ``at_most``."""

    multiple_of: int
    at_most: int

    @property
    def largest(self) -> int:
        return self.at_most // self.multiple_of * self.multiple_of


class Tried(NamedTuple):
    """A batch per device, and how a run with it ended."""

    batch: int
    status: str


def next_batch(tried: Sequence[Tried], bounds: Bounds) -> int | None:
    """The batch to try next; None where the search is over."""
    step = bounds.multiple_of
    if not tried:
        return step
    if tried[-1].status not in ("ok", "oom"):
        return None
    fits = max((one.batch for one in tried if one.status == "ok"), default=0)
    too_large = min((one.batch for one in tried if one.status == "oom"), default=None)
    if too_large is None:
        return min(2 * fits, bounds.largest) if fits < bounds.largest else None
    if too_large - fits <= step:
        return None
    return (fits + too_large) // 2 // step * step


def outcome(tried: Sequence[Tried]) -> Tried:
    """Of a search that is over: the largest batch that fits, or the one that ended it otherwise."""
    if tried[-1].status not in ("ok", "oom"):
        return tried[-1]
    return max((one for one in tried if one.status == "ok"), default=tried[-1])


def simulate(fits: Callable[[int], bool], bounds: Bounds) -> list[Tried]:
    """All tries of a search, where a batch fits or does not as ``fits`` says."""
    tried: list[Tried] = []
    batch = next_batch(tried, bounds)
    while batch is not None:
        tried.append(Tried(batch, "ok" if fits(batch) else "oom"))
        batch = next_batch(tried, bounds)
    return tried
