"""A training step of several micro-steps, and its parts one by one.

Standard library and numpy; Python 3.7 to 3.13.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Dict, List, Mapping, NamedTuple, Tuple

from harness.adapter.base import Capability
from harness.adapter.case import Unsupported
from harness.adapter.matmul_dtypes import ExecutedMatmul, MatmulTrace
from harness.step_breakdown import StepPart


class Accumulation(MatmulTrace):
    """A training step has several micro-steps: forward and backward pass of a micro-batch each, one
    after the other and in the memory of one. Their gradients are averaged, then, once, over the
    ranks, and update the weights once.

    How many there are is observed, in the functions that :meth:`Adapter.step` runs: a case that
    does not accumulate goes without all this."""

    LACKING = "accumulates no gradients"

    @abstractmethod
    def micro_step_matmuls(self) -> List[ExecutedMatmul]:
        """Matrix products and convolutions of the first micro-batch alone, forward and, where the
        framework shows them, backward. One in a loop counts as often as it is computed. With
        their multiply-adds as far as the framework tells them."""

    @abstractmethod
    def step_matmuls(self) -> List[ExecutedMatmul]:
        """The same of a whole training step: of its loop over the micro-batches, run or read.
        Weights and optimizer stay as they are."""

    def step_all_reduces(self) -> int:
        """All-reduces of gradients in one training step, which this may run. Called on several
        ranks alone, in all of them, behind the window. Raises :class:`Unsupported` where the
        framework does not tell."""
        raise Unsupported(
            f"{self.case.framework} does not tell how often a step exchanges gradients: that "
            "micro-steps do not cannot be proved on several devices"
        )


class StepBreakdown(Capability):
    """The parts of a training step can be run one by one."""

    LACKING = "does not take its training step apart"

    @abstractmethod
    def step_parts(self) -> List[StepPart]:
        """Return the parts of a training step, in order.

        They are the functions that :meth:`step` runs where the framework can be stopped between
        them (:func:`harness.step_breakdown.eager_parts`), else separate programs
        (:func:`harness.step_breakdown.program_parts`). The last part updates the weights with
        gradients that were averaged over the ranks."""


class MicroBatch(NamedTuple):
    """One on the device, of tensors. ``inputs``: what of it the model takes."""

    tensors: Dict[str, Any]
    inputs: Tuple[Any, ...]


def micro_batches(batch: Mapping[str, Any], count: int) -> List[Dict[str, Any]]:
    """``batch`` cut along the first axis of its arrays into ``count`` parts of the same size, with
    different samples in each. Raises ValueError where there is no such size."""
    import numpy as np

    if count == 1:
        return [dict(batch)]
    if any(len(array) % count for array in batch.values()):
        sizes = {name: len(array) for name, array in batch.items()}
        raise ValueError(f"samples of {count} micro-steps cannot be {sizes}")
    parts = {name: np.split(array, count) for name, array in batch.items()}
    return [{name: arrays[number] for name, arrays in parts.items()} for number in range(count)]
