"""Matmuls: which run, and in which precision."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Dict

from harness.adapter.base import Capability


class MatmulTrace(Capability):
    """The framework shows which matmuls run and in which precision."""

    LACKING = "does not report its matmuls: their precision cannot be verified"

    @abstractmethod
    def matmul_dtypes(self) -> Dict[str, int]:
        """Return the number of matmuls and convolutions that a step over this rank's batch runs, by
        the dtype of their operands as numpy names it (``float32``, ``bfloat16``, ``float16``).

        Those of the backward pass are included where the framework shows them. :class:`Rounding`
        shows what float32 is rounded to."""

    def lacking_matmuls(self) -> Dict[str, int]:
        """Return how many of them mixed precision must leave in float32, by the framework's
        reason."""
        return {}


class Rounding(MatmulTrace):
    """The framework can show whether float32 matmuls round their operands, to TF32 for example."""

    LACKING = "does not show to how many bits its matmuls round float32"

    @abstractmethod
    def matmul_result(self, left: Any, right: Any) -> Any:
        """Multiply two float32 numpy arrays on the device, set up as for the case, and return a
        numpy array.

        ``left`` and ``right``: two matrices, or images (batch, height, width, in) and a kernel
        (height, width, in, out) with stride 1 and no padding. :meth:`build` may not have been
        called."""
