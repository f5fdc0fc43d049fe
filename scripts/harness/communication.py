"""What a framework brings for collectives of every sort, through its own runtime.

Standard library and numpy; Python 3.7 to 3.13.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Callable, ClassVar, NamedTuple

from harness.adapter import Collectives, Unsupported

ALL_REDUCE = "all_reduce"
ALL_GATHER = "all_gather"
REDUCE_SCATTER = "reduce_scatter"
BROADCAST = "broadcast"
REDUCE = "reduce"
ALL_TO_ALL = "all_to_all"
SEND_RECEIVE = "send_receive"
OPERATIONS = (
    ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, BROADCAST, REDUCE, ALL_TO_ALL, SEND_RECEIVE,
)  # fmt: skip


class Collective(NamedTuple):
    """A collective over all ranks. ``reset`` gives this rank its own array back, ``run`` enqueues
    the collective; ``result``: what this rank has by then, for numpy. An all-reduce or a reduce may
    write over the array: run again, it adds up sums."""

    reset: Callable[[], Any]
    run: Callable[[], Any]
    result: Callable[[], Any]


class Communication(Collectives):
    """The collectives that users of the framework call."""

    LACKING: ClassVar[str] = "brings no collectives but its all-reduce of gradients"

    @abstractmethod
    def collective(self, operation: str, array: Any, dtype: str) -> Collective:
        """One of OPERATIONS on this rank's one-dimensional float32 ``array``, of ``dtype`` (as
        numpy names it) on the device. Sums, where something is added up; rank 0 is the root of
        BROADCAST and REDUCE; REDUCE_SCATTER and ALL_TO_ALL cut the array into a part for each rank;
        SEND_RECEIVE sends it to the next rank and receives that of the one before. Called without
        :meth:`build`, on several ranks alone. Raises :class:`harness.adapter.Unsupported`."""

    def no_collective(self, operation: str, words: str) -> Unsupported:
        """Why there is none, in the framework's ``words``."""
        place = "a CPU" if self.place.accelerator == "cpu" else self.place.accelerator
        return Unsupported(f"{self.case.framework} has no {operation} on {place}: {words}")
