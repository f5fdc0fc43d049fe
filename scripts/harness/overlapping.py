"""Capability of a framework to compute while an all-reduce is under way, as a training step does.

Standard library and numpy; Python 3.7 to 3.13.
"""

from __future__ import annotations

from typing import Any, Callable, ClassVar, NamedTuple, Sequence

from harness.communication import ALL_REDUCE, Communication
from harness.operations import SingleOperations


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
        only with several ranks. Raises :class:`harness.adapter.Unsupported`.

        The default suits a framework whose calls return before their work is done."""
        operation = self.operation(name, arrays)
        reduced = self.collective(ALL_REDUCE, message, "float32")

        def compute() -> None:
            for _ in range(count):
                operation.run()

        def both() -> None:
            reduced.run()
            compute()

        return Overlapped(
            compute, reduced.run, both, reduced.reset,
            operation.result, reduced.result, operation.dtype,
        )  # fmt: skip
