"""Training steps of several micro-steps.

Standard library and numpy; Python 3.7 to 3.13.
"""

from __future__ import annotations

import contextlib
import functools
import operator
from abc import abstractmethod
from typing import Any, ContextManager, Dict, List, Mapping, NamedTuple, Sequence, Tuple

from harness.adapter.base import Capability
from harness.adapter.numerics import Numerics


class Accumulation(Capability):
    """A training step can have several micro-steps, the forward and backward pass of a micro-batch
    each.

    Micro-steps run one after the other and reuse the memory of the first. Their gradients are
    averaged, all-reduced once, and update the weights once."""

    LACKING = "accumulates no gradients"


class EagerTraining(Numerics):
    """Training step of a framework that runs operation by operation, and leaves gradients in its
    parameters.

    The order of a step and its micro-steps are here; subclasses say how the framework does each."""

    @abstractmethod
    def clear_gradients(self) -> None:
        """Drop the gradients of the step before."""

    @abstractmethod
    def loss(self, number: int) -> Any:
        """Run the forward pass of micro-batch ``number``; return its :meth:`share` of the loss, to
        be differentiated."""

    @abstractmethod
    def backward(self, loss: Any) -> None:
        """Add the gradients of ``loss`` to the gradients that the parameters hold."""

    @abstractmethod
    def update(self) -> None:
        """Update the weights with the gradients."""

    @abstractmethod
    def infer(self) -> Sequence[Any]:
        """Run the forward pass of inference; return the outputs."""

    def share(self, loss: Any) -> Any:
        """Return a micro-batch's share of the mean loss of a step."""
        count = self.case.accumulation
        return loss / count if count > 1 else loss

    def unsynchronized(self) -> ContextManager[Any]:
        """Return a context in which backward passes do not all-reduce gradients."""
        return contextlib.nullcontext()

    def handle_of(self, loss: Any) -> Sequence[Any]:
        """Return the tensors of a loss without what its backward pass needs."""
        return (loss.detach(),)

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

    def raw_gradients(self) -> Dict[str, Any]:
        self.differentiate()
        state = self.state().items()
        named = {name: entry.tensor.grad for name, entry in state if entry.trainable}
        return {name: gradient for name, gradient in named.items() if gradient is not None}


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
        raise ValueError(f"{count} micro-steps cannot share {sizes} samples equally")
    ends = [
        {name: size * number // count for name, size in sizes.items()}
        for number in range(count + 1)
    ]
    return [
        {name: array[first[name] : last[name]] for name, array in batch.items()}
        for first, last in zip(ends, ends[1:])
    ]
