"""Capabilities of frameworks for collectives, through their own runtime: alone, after a matmul, and
at the same time as computation.

Standard library and numpy; Python 3.7 to 3.13.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Callable, ClassVar, NamedTuple, Optional, Sequence

from harness.adapter import Collectives, Unsupported
from harness.operations import Operation, SingleOperations

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


class CollectiveOperation(NamedTuple):
    """Collective over all ranks.

    ``reset`` restores this rank's own array, ``run`` enqueues the collective, and ``result``
    returns this rank's array for numpy. An all-reduce or a reduce may overwrite the array:
    repeated, it adds up sums. ``start``: begins it and returns a function that waits for it, where
    ``run`` itself waits."""

    reset: Callable[[], Any]
    run: Callable[[], Any]
    result: Callable[[], Any]
    start: Optional[Callable[[], Callable[[], Any]]] = None


class MatmulCollective(NamedTuple):
    """A matmul that all ranks share, and the collective on its parts.

    ``matmul`` enqueues this rank's part, ``collective`` the collective on the latest part, and
    ``both`` one after the other. ``synchronize()`` waits for what any of them enqueued.
    ``result`` returns the whole product for numpy; ``dtype`` is that of the part. A collective may
    overwrite the part: repeated without a matmul in between, it adds up sums."""

    matmul: Callable[[], Any]
    collective: Callable[[], Any]
    both: Callable[[], Any]
    result: Callable[[], Any]
    dtype: str


class Communication(Collectives):
    """The framework offers the collectives that its users call, alone and after a matmul."""

    LACKING: ClassVar[str] = "offers no collectives but its gradient all-reduce"

    @abstractmethod
    def collective(self, operation: str, array: Any, dtype: str) -> CollectiveOperation:
        """Prepare one of OPERATIONS on this rank's one-dimensional float32 ``array``, as ``dtype``
        on the device.

        Reductions are sums; rank 0 is the root of BROADCAST and REDUCE. REDUCE_SCATTER and
        ALL_TO_ALL split the array into a part for each rank. SEND_RECEIVE sends it to the next rank
        and receives that of the one before. Called without :meth:`build`, on several ranks only.
        Raises :class:`harness.adapter.Unsupported`."""

    @abstractmethod
    def sharded_matmul(self, left: Any, right: Any, operation: str) -> MatmulCollective:
        """Prepare the matmul of this rank's float32 numpy ``left`` (m, k) and ``right`` (k, n).

        Both are copied to the device in the dtype that matmuls have under the case's precision.
        ``operation``: ALL_REDUCE, where the whole product is the sum of the parts, or ALL_GATHER,
        where the parts of all ranks are joined to (m, ranks x n). Called without :meth:`build`, on
        several ranks only. Raises :class:`harness.adapter.Unsupported`."""

    def no_collective(self, operation: str, reason: str) -> Unsupported:
        """Return the error for a missing collective, with the framework's ``reason``."""
        accelerator = self.rank_context.accelerator
        device = "a CPU" if accelerator == "cpu" else accelerator
        return Unsupported(f"{self.case.framework} has no {operation} on {device}: {reason}")


class Overlapped(NamedTuple):
    """Computation, all-reduce, and both together, each ready to be enqueued.

    ``compute`` enqueues all computations, ``communicate`` the all-reduce, and ``both`` all of it:
    it starts the all-reduce before it waits for a computation. ``synchronize()`` after any of them
    waits for what it enqueued. ``reset`` restores this rank's own message. ``computed`` and
    ``reduced`` return the last result and the reduced message for numpy; ``dtype`` is that of the
    computation."""

    compute: Callable[[], Any]
    communicate: Callable[[], Any]
    both: Callable[[], Any]
    reset: Callable[[], Any]
    computed: Callable[[], Any]
    reduced: Callable[[], Any]
    dtype: str


class Overlapping(SingleOperations, Communication):
    """Computation and an all-reduce run at the same time, by the means by which the framework's
    training communicates gradients during the backward pass."""

    LACKING: ClassVar[str] = "runs no computation beside an all-reduce"

    def overlapped(self, name: str, arrays: Sequence[Any], count: int, message: Any) -> Overlapped:
        """Prepare ``count`` runs of an operation and an all-reduce of ``message``.

        The operation is MATMUL or MULTIPLY of two float32 numpy ``arrays``, as for
        :meth:`operation`, each run after the one before. ``message`` is a one-dimensional float32
        array, summed over all ranks as for :meth:`collective`. Called without :meth:`build`, and
        only with several ranks. Raises :class:`harness.adapter.Unsupported`."""
        operation = self.operation(name, arrays)
        return side_by_side(operation, self.collective(ALL_REDUCE, message, "float32"), count)


def side_by_side(operation: Operation, reduced: CollectiveOperation, count: int) -> Overlapped:
    """Return ``count`` operations beside an all-reduce that is waited for after them, as
    data-parallel training does with its buckets."""

    def compute() -> None:
        for _ in range(count):
            operation.run()

    def both() -> None:
        wait = (reduced.start or reduced.run)()
        compute()
        if reduced.start:
            wait()

    return Overlapped(
        compute, reduced.run, both, reduced.reset,
        operation.result, reduced.result, operation.dtype,
    )  # fmt: skip
