"""Collectives through a framework's own runtime: alone, after a matmul, and at the same time as
computation.

Standard library only; Python 3.7 to 3.13.
"""

from __future__ import annotations

from typing import Any, Callable, NamedTuple, Optional

from harness.operations import Operation

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
    repeated, it adds up sums. ``start``: where ``run`` waits for the collective, begins it and
    returns a function that waits."""

    reset: Callable[[], Any]
    run: Callable[[], Any]
    result: Callable[[], Any]
    start: Optional[Callable[[], Callable[[], Any]]] = None


class MatmulCollective(NamedTuple):
    """A matmul that all ranks share, and the collective on its parts.

    ``matmul`` enqueues this rank's part, ``collective`` the collective on the latest part, and
    ``both`` one after the other. ``synchronize()`` waits for all work that these functions
    enqueued. ``result`` returns the whole product for numpy; ``dtype`` is the part's. A collective
    may overwrite the part: repeated without a matmul in between, it adds up sums."""

    matmul: Callable[[], Any]
    collective: Callable[[], Any]
    both: Callable[[], Any]
    result: Callable[[], Any]
    dtype: str


class Overlapped(NamedTuple):
    """Computation, all-reduce, and both together, each ready to be enqueued.

    ``compute`` enqueues all computations, ``communicate`` the all-reduce, and ``both`` all of it:
    it starts the all-reduce before it waits for a computation. ``synchronize()`` waits for all work
    that these functions enqueued. ``reset`` restores this rank's own message. ``computed`` and
    ``reduced`` return the last result and the reduced message for numpy; ``dtype`` is the
    computation's."""

    compute: Callable[[], Any]
    communicate: Callable[[], Any]
    both: Callable[[], Any]
    reset: Callable[[], Any]
    computed: Callable[[], Any]
    reduced: Callable[[], Any]
    dtype: str


def side_by_side(operation: Operation, reduced: CollectiveOperation, count: int) -> Overlapped:
    """Return a function that starts an all-reduce, runs ``count`` operations, and then waits for
    the all-reduce, as data-parallel training does with its buckets."""

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
