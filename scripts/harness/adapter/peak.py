"""The peak of a device, which the throughput of a model is held against."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Callable, NamedTuple

from harness.adapter.base import Capability


class ChainedMatmul(NamedTuple):
    """A product of two matrices on the device. ``multiply`` enqueues it once more; ``dtype`` is
    that of its result."""

    multiply: Callable[[], Any]
    dtype: str


class PeakMatmul(Capability):
    """How fast the device multiplies, which the throughput of a model is held against."""

    LACKING = "offers no product of two matrices, so that the peak of a device is not known"

    @abstractmethod
    def matmul(self, left: Any, right: Any) -> ChainedMatmul:
        """The product of two square float32 numpy arrays, copied to the device in the dtype that
        products have under the case's precision; :meth:`build` was not called. Each product takes
        the one before in the place of ``right``, so that none runs beside another, and
        :meth:`synchronize` waits for the last."""
