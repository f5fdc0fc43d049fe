"""What a framework brings for products beside an all-reduce, as a training step has them.

Standard library and numpy; Python 3.7 to 3.13.
"""

from __future__ import annotations

from typing import Any, Callable, ClassVar, NamedTuple

from harness.communication import ALL_REDUCE, Communication
from harness.operations import MATMUL, SingleOperations


class Overlapped(NamedTuple):
    """``compute`` enqueues all products, ``communicate`` the all-reduce, and ``both`` all of it: it
    hands over the all-reduce before it waits for a product. ``synchronize()`` behind any of them
    waits for what it enqueued. ``reset`` gives this rank its own message back. ``product`` and
    ``reduced``: the last product, and what the message has become, for numpy; ``dtype``: of the
    products."""

    compute: Callable[[], Any]
    communicate: Callable[[], Any]
    both: Callable[[], Any]
    reset: Callable[[], Any]
    product: Callable[[], Any]
    reduced: Callable[[], Any]
    dtype: str


class Overlapping(SingleOperations, Communication):
    """Products and an all-reduce are under way at the same time, by the means by which the
    framework's training has gradients on their way during the backward pass."""

    LACKING: ClassVar[str] = "runs no products beside an all-reduce"

    def overlapped(self, left: Any, right: Any, products: int, message: Any) -> Overlapped:
        """So many ``products`` of the float32 numpy arrays ``left`` and ``right``, as of
        :meth:`operation`, each behind the one before; and the sum over all ranks of ``message``, a
        one-dimensional array of float32, as of :meth:`collective`. Called without :meth:`build`, on
        several ranks alone. Raises :class:`harness.adapter.Unsupported`.

        By default of a framework whose calls return before their work is done."""
        multiplied = self.operation(MATMUL, [left, right])
        reduced = self.collective(ALL_REDUCE, message, "float32")

        def compute() -> None:
            for _ in range(products):
                multiplied.run()

        def both() -> None:
            reduced.run()
            compute()

        return Overlapped(
            compute, reduced.run, both, reduced.reset,
            multiplied.result, reduced.result, multiplied.dtype,
        )  # fmt: skip
