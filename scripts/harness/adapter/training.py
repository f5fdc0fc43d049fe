"""Training steps of several micro-steps, and their breakdown into parts.

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
    """A training step can have several micro-steps, the forward and backward pass of a micro-batch
    each.

    They run one after the other in the memory of one. Their gradients are averaged, all-reduced
    once, and update the weights once. The number of micro-steps is observed in the functions that
    :meth:`Adapter.step` runs; cases without accumulation do not use this."""

    LACKING = "accumulates no gradients"

    @abstractmethod
    def micro_step_matmuls(self) -> List[ExecutedMatmul]:
        """Return the matmuls and convolutions of the first micro-batch alone.

        They are of the forward pass and, where the framework shows it, of the backward pass. One in
        a loop counts as often as it is computed. Multiply-adds are given where known."""

    @abstractmethod
    def step_matmuls(self) -> List[ExecutedMatmul]:
        """Return the matmuls of a whole training step with its loop over micro-batches, run or
        read.

        Weights and optimizer stay as they are."""

    def step_all_reduces(self) -> int:
        """Return the number of gradient all-reduces in one training step, which this may run.

        Called in all of several ranks, after the timed region. Raises :class:`Unsupported` where
        the framework does not report it."""
        raise Unsupported(
            f"{self.case.framework} does not report how often a step all-reduces gradients: "
            "accumulation cannot be verified on several devices"
        )


class StepBreakdown(Capability):
    """The parts of a training step can be run one by one."""

    LACKING = "does not split its training step into parts"

    @abstractmethod
    def step_parts(self) -> List[StepPart]:
        """Return the parts of a training step, in order.

        They are the functions that :meth:`step` runs where the framework can be stopped between
        them (:func:`harness.step_breakdown.eager_parts`), else separate programs
        (:func:`harness.step_breakdown.program_parts`). The last part updates the weights with
        gradients that were averaged over the ranks."""


class MicroBatch(NamedTuple):
    """Micro-batch on the device. ``inputs``: tensors that the model takes."""

    tensors: Dict[str, Any]
    inputs: Tuple[Any, ...]


def micro_batches(batch: Mapping[str, Any], count: int) -> List[Dict[str, Any]]:
    """Split ``batch`` along the first axis of its arrays, of numpy or tensors of the framework,
    into ``count`` micro-batches of equal size. Raises ValueError where the size does not divide."""
    if count == 1:
        return [dict(batch)]
    sizes = {name: len(array) for name, array in batch.items()}
    if any(size % count for size in sizes.values()):
        raise ValueError(f"samples of {count} micro-steps cannot be {sizes}")
    ends = [
        {name: size * number // count for name, size in sizes.items()}
        for number in range(count + 1)
    ]
    return [
        {name: array[first[name] : last[name]] for name, array in batch.items()}
        for first, last in zip(ends, ends[1:])
    ]
