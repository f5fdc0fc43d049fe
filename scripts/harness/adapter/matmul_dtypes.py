"""Which products run and in which precision, observed in the framework."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from typing import Any, Dict, List, NamedTuple

from harness.adapter.base import Capability


class ExecutedMatmul(NamedTuple):
    """A matrix product or convolution that the model contains. ``dtype`` of its operands, as numpy
    would name it (``float32``, ``bfloat16``, ``float16``); what float32 is rounded to,
    :class:`Rounding` shows."""

    dtype: str
    multiply_adds: int = 0


class MatmulTrace(Capability):
    """The precision of what runs is observed in the framework, not assumed."""

    LACKING = "does not tell its products: in which precision they run cannot be proved"

    @abstractmethod
    def matmuls(self, forward_only: bool) -> List[ExecutedMatmul]:
        """All matrix products and convolutions of one forward pass over this rank's batch, with
        their multiply-adds, counted by the framework or from its graph, not from the model's
        model config. Unless ``forward_only``: with their dtypes as they run, whatever their
        multiply-adds, and those of the backward pass too where the framework shows them."""

    def matmul_dtypes(self) -> Dict[str, int]:
        """How many products run in which dtype."""
        return dict(Counter(product.dtype for product in self.matmuls(forward_only=False)))

    def forward_multiply_adds(self) -> int:
        """Multiply-adds of one forward pass over this rank's batch."""
        return sum(product.multiply_adds for product in self.matmuls(forward_only=True))


class Rounding(MatmulTrace):
    """Whether products of float32 round their operands, to TF32 for example, is observed."""

    LACKING = "does not tell to how many bits its products round float32"

    @abstractmethod
    def matmul_result(self, left: Any, right: Any) -> Any:
        """The product of two float32 numpy arrays on the device, set up as for the case, as a numpy
        array: of two matrices, or of images (batch, height, width, in) with a kernel (height,
        width, in, out), with stride 1 and no padding. :meth:`build` may not have been called."""
