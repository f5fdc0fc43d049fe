"""What a framework brings for the micro-benchmarks: one operation at a time, without a model.

Standard library and numpy; Python 3.7 to 3.13.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Callable, ClassVar, NamedTuple, Sequence, Tuple

from harness.adapter import Capability

#: Matrices, or batches of them: (.., m, k) by (.., k, n).
MATMUL = "matmul"
#: Sum of two arrays, element by element.
ADD = "add"
#: Exponential of each element.
EXP = "exp"
#: Which operands of a product are given transposed.
Transposed = Tuple[bool, bool]
NEITHER: Transposed = (False, False)


class Operation(NamedTuple):
    """An operation on the device whose operands stay as they are. ``run`` enqueues it once more;
    none begins before the one before it is complete. ``result``: what the last gave, for numpy;
    ``dtype``: of that."""

    run: Callable[[], Any]
    result: Callable[[], Any]
    dtype: str


class SingleOperations(Capability):
    """Single operations run as a user of the framework calls them: eagerly, or compiled alone where
    the framework has nothing else."""

    LACKING: ClassVar[str] = "runs no single operations"

    @abstractmethod
    def operation(
        self, name: str, arrays: Sequence[Any], transposed: Transposed = NEITHER
    ) -> Operation:
        """MATMUL, ADD or EXP of float32 numpy ``arrays``, copied to the device in the dtype that
        products have under the case's precision. ``transposed``: of MATMUL, whose operands lie
        there as (.., k, m) or (.., n, k) then. :meth:`synchronize` waits for the last run. Called
        without :meth:`build`. Raises :class:`harness.adapter.Unsupported` for what the framework
        cannot compute there."""
