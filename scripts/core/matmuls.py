"""Shape of a matmul, in a micro-benchmark or in a step of a model."""

from __future__ import annotations

from typing import NamedTuple, Tuple


class MatmulShape(NamedTuple):
    """Shape of a matmul: (m, k) by (k, n), ``batch`` times.

    Field names are the parameters of a point of the benchmark."""

    batch: int
    m: int
    k: int
    n: int

    @property
    def multiply_adds(self) -> int:
        """Multiplications, each with an addition."""
        return self.batch * self.m * self.k * self.n

    @property
    def operations(self) -> int:
        """Floating-point operations: a multiplication and an addition for each term."""
        return 2 * self.multiply_adds

    @property
    def backward(self) -> Tuple[MatmulShape, MatmulShape]:
        """Shapes of the gradients of both operands: (m, n) by (n, k) and (k, m) by (m, n)."""
        return self._replace(k=self.n, n=self.k), self._replace(m=self.k, k=self.m)

    def __str__(self) -> str:
        """Return the shape as suites write it."""
        return "x".join(map(str, self[1:] if self.batch == 1 else self))
