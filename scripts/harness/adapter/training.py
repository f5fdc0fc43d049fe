"""Training steps of several micro-steps, and their breakdown into parts.

Standard library and numpy; Python 3.7 to 3.13.
"""

from __future__ import annotations

import contextlib
import functools
import operator
from abc import abstractmethod
from typing import Any, ContextManager, Dict, List, Mapping, NamedTuple, Sequence, Tuple

from harness.adapter.base import Capability
from harness.step_breakdown import StepPart, eager_parts


class Accumulation(Capability):
    """A training step can have several micro-steps, the forward and backward pass of a micro-batch
    each.

    They run one after the other in the memory of one. Their gradients are averaged, all-reduced
    once, and update the weights once."""

    LACKING = "accumulates no gradients"


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


class EagerTraining(StepBreakdown):
    """Training step of a framework that runs operation by operation.

    The order of a step, its micro-steps and its parts are here; subclasses say how the framework
    does each."""

    @abstractmethod
    def clear_gradients(self) -> None:
        """Drop the gradients of the step before."""

    @abstractmethod
    def loss(self, number: int, alone: bool = False) -> Any:
        """Run the forward pass of micro-batch ``number``; return its :meth:`share` of the loss, to
        be differentiated. ``alone``: its backward pass leaves gradients this rank's own."""

    @abstractmethod
    def backward(self, loss: Any) -> None:
        """Add the gradients of ``loss`` to those in the parameters."""

    @abstractmethod
    def update(self) -> None:
        """Update the weights with the gradients."""

    @abstractmethod
    def infer(self) -> Sequence[Any]:
        """Run the forward pass of inference; return the outputs."""

    def share(self, loss: Any) -> Any:
        """Return the part that a micro-batch's loss has in the mean of a step."""
        count = self.case.accumulation
        return loss / count if count > 1 else loss

    def unsynchronized(self) -> ContextManager[Any]:
        """Return a context in which backward passes do not all-reduce gradients."""
        return contextlib.nullcontext()

    def handle_of(self, loss: Any) -> Sequence[Any]:
        """Return the tensors of a loss without what its backward pass needs."""
        return (loss.detach(),)

    def evaluate(self) -> Any:
        """Run the first part of a step, without other ranks; return the loss."""
        self.clear_gradients()
        return self.loss(0, alone=True)

    def _differentiate_one(self, number: int) -> Sequence[Any]:
        loss = self.loss(number)
        self.backward(loss)
        return self.handle_of(loss)

    def differentiate(self) -> Sequence[Any]:
        """Run a step until its update: leave averaged gradients and return a handle on the loss.

        Only the last of several backward passes all-reduces the sum."""
        self.clear_gradients()
        last = self.case.accumulation - 1
        if not last:
            return self._differentiate_one(0)
        with self.unsynchronized():
            handles = [self._differentiate_one(number) for number in range(last)]
        handles.append(self._differentiate_one(last))
        return [functools.reduce(operator.add, parts) for parts in zip(*handles)]

    def step(self) -> Sequence[Any]:
        if not self.trains:
            return self.infer()
        handle = self.differentiate()
        self.update()
        return handle

    def step_parts(self) -> List[StepPart]:
        several = self.rank_context.world_size > 1
        averaged = self.differentiate if several else None
        return eager_parts(self.evaluate, self.backward, averaged, self.update)


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
