"""Peak FLOPS of a device, the reference for the throughput of models."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Callable, NamedTuple

from harness.adapter.base import Capability


class ChainedMatmul(NamedTuple):
    """Matmul on the device. ``multiply`` enqueues it once more; ``dtype`` is that of its result."""

    multiply: Callable[[], Any]
    dtype: str


class PeakMatmul(Capability):
    """The framework multiplies large matrices repeatedly."""

    LACKING = "offers no plain matmul, so that the peak FLOPS of a device is unknown"

    @abstractmethod
    def matmul(self, left: Any, right: Any) -> ChainedMatmul:
        """Prepare the matmul of two square float32 numpy arrays, copied to the device in the
        matmuls' dtype.

        :meth:`build` was not called. Each product replaces ``right`` in the next matmul, so that
        none run concurrently, and :meth:`synchronize` waits for the last."""
