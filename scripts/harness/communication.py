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


class ShardedProduct(NamedTuple):
    """A product of two matrices that all ranks share. ``product`` enqueues the part of this rank,
    ``exchange`` the collective on what the last one gave, and ``both`` one behind the other.
    ``synchronize()`` behind any of them waits for what it enqueued. ``result``: the whole product
    by then, for numpy; ``dtype``: of the part. An exchange may write over the part: run again
    without a product between, it adds up sums."""

    product: Callable[[], Any]
    exchange: Callable[[], Any]
    both: Callable[[], Any]
    result: Callable[[], Any]
    dtype: str


class ShardedProducts(Communication):
    """A collective takes what a product has left on the device, as in a layer that ranks share."""

    LACKING: ClassVar[str] = "runs no collective on a product here"

    @abstractmethod
    def sharded_product(self, left: Any, right: Any, operation: str) -> ShardedProduct:
        """The product of this rank's float32 numpy matrices ``left`` and ``right``, copied to the
        device in the dtype that products have under the case's precision. ``operation``:
        ALL_REDUCE, the whole product is the sum of the parts, or ALL_GATHER, it is the parts of all
        ranks side by side, (m, n) each, as one array of (m, ranks x n). Called without
        :meth:`build`, on several ranks alone. Raises :class:`harness.adapter.Unsupported`."""
