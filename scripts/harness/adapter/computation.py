"""Capabilities of a step: its matmuls and their precision, outputs and gradients, text generation,
micro-steps; and the training step of frameworks that run operation by operation."""

from __future__ import annotations

import contextlib
import functools
import operator
from abc import abstractmethod
from typing import (
    Any,
    Callable,
    ClassVar,
    ContextManager,
    Dict,
    List,
    Mapping,
    NamedTuple,
    Sequence,
    Tuple,
)

from harness.adapter.base import Capability, Unsupported
from harness.adapter.layout import in_shared_layout, own_layout, shape_of


class MatmulTrace(Capability):
    """The framework shows which matmuls run and in which precision."""

    LACKING = "does not report its matmuls: their precision cannot be verified"

    @abstractmethod
    def matmul_dtypes(self) -> Dict[str, int]:
        """Return the number of matmuls and convolutions that a step over this rank's batch runs, by
        the dtype of their operands as numpy names it (``float32``, ``bfloat16``, ``float16``).

        Matmuls of the backward pass are included where the framework shows them. :class:`Rounding`
        shows what float32 is rounded to."""

    def lacking_matmuls(self) -> Dict[str, int]:
        """Return how many matmuls mixed precision must leave in float32, by the framework's
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


class Numerics(Capability):
    """Capability to return the results of a step from given weights.

    Results come from the functions that :meth:`step` runs, compiled if it compiles them; other
    functions would prove nothing about the step."""

    LACKING = "returns no gradients and outputs to compare with the reference"

    @abstractmethod
    def assign(self, arrays: Dict[str, Any]) -> None:
        """Overwrite the tensors of :meth:`state` with copies of ``arrays``: float32 numpy arrays of
        the same names and shapes."""

    @abstractmethod
    def raw_gradients(self) -> Dict[str, Any]:
        """Return the gradient of the loss in every trainable parameter, as tensors in the
        parameters' layout.

        Gradients are averaged over the ranks, times :meth:`loss_scale`, not clipped, without the
        optimizer's weight decay. Weights and optimizer stay as they are."""

    @abstractmethod
    def logits(self) -> Sequence[Any]:
        """Return the model's outputs for the batch as tensors.

        In training they use the batch's own statistics and dropout, in inference neither. Weights
        stay as they are."""

    def loss_scale(self) -> float:
        """Return the factor of the last :meth:`raw_gradients`."""
        return 1.0

    def load_weights(self, weights: Dict[str, Any]) -> None:
        """Overwrite the model's :meth:`state`, after :meth:`build`, with arrays named and laid out
        as in :meth:`weights`. Raises KeyError or ValueError where a name or a shape does not fit
        the model as built, in either direction."""
        import numpy as np

        state = self.state()
        unknown = sorted(set(weights) - set(state))
        if unknown:
            raise KeyError(f"the model has no {unknown}")
        arrays = {}
        for name, variable in state.items():
            array = own_layout(weights[name], variable)
            if array.shape != shape_of(variable):
                raise ValueError(f"{name} is {shape_of(variable)}, not {array.shape}")
            arrays[name] = np.array(array, np.float32, order="C")
        self.assign(arrays)

    def gradients(self) -> Dict[str, Any]:
        """Return the gradients as float32 numpy arrays, named and laid out as in :meth:`weights`,
        without the loss scale."""
        gradients, state = self.raw_gradients(), self.state()
        scale = self.loss_scale()
        return {
            name: in_shared_layout(self.to_numpy(tensor), state[name]) / scale
            for name, tensor in gradients.items()
        }

    def outputs(self) -> List[Any]:
        """Return the logits as numpy arrays."""
        return [self.to_numpy(tensor) for tensor in self.logits()]


class Generation(MatmulTrace):
    """The framework continues sequences by their likeliest tokens, with a key-value cache."""

    LACKING = "does not generate text"

    #: Compilers that generation supports; "none" is a run without a compiler.
    GENERATES_WITH: ClassVar[Sequence[str]] = ("none",)
    #: Object with ``prefill``, ``decode`` and the ``logits`` of its last pass; set by
    #: :meth:`make_cache`.
    _generator: Any

    def to_generate_with(self, definition: Any, name: str) -> Any:
        """Return the attribute ``name`` of ``definition``, for models that generate. Raises
        :class:`Unsupported` without it."""
        if not hasattr(definition, name):
            raise Unsupported(f"{self.case.model} {self.LACKING}")
        return getattr(definition, name)

    @abstractmethod
    def make_cache(self, new_tokens: int) -> None:
        """Make a cache for the prompts of the batch and ``new_tokens`` more, after :meth:`build`.

        Raises :class:`Unsupported` for a model that does not generate."""

    def prefill(self) -> Any:
        """Enqueue a pass over the prompts of the batch. The cache then has exactly their keys and
        values. Returns the next tokens, a new tensor (batch,) for each call."""
        return self._pass(self._generator.prefill)

    def decode(self, tokens: Any = None) -> Any:
        """Enqueue a pass over the tokens that :meth:`prefill` or this method returned last, or over
        ``tokens``, numpy int64 (batch,), if given. The pass adds them to the cache. Returns the
        next tokens (batch,)."""
        return self._pass(self._generator.decode, *([] if tokens is None else [tokens]))

    def _pass(self, run: Callable[..., Any], *tokens: Any) -> Any:
        """Run a pass of the generator with ``tokens``, if any. Adapters override it for set-up."""
        return run(*tokens)

    def following_logits(self) -> Any:
        """Return the logits of the last pass, a tensor (batch, vocabulary)."""
        return self._generator.logits


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
        """Return the tensors of a loss, detached from what its backward pass needs."""
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
    """Split ``batch`` along the first axis of its arrays (numpy's or the framework's) into
    ``count`` micro-batches of equal size. Raises ValueError if ``count`` does not divide a size."""
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
