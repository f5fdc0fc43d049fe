"""Results of a step, to compare them with the reference."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Dict, List, Sequence

from harness.adapter.base import Capability
from harness.adapter.layout import in_shared_layout, own_layout, shape_of


class Numerics(Capability):
    """The framework returns what a step computes from given weights.

    It uses the functions that :meth:`step` runs, compiled if they are; others would prove
    nothing."""

    LACKING = "returns no gradients and outputs to compare with the reference"

    @abstractmethod
    def assign(self, arrays: Dict[str, Any]) -> None:
        """Overwrite the tensors of :meth:`state` with copies of ``arrays``: float32 numpy arrays of
        the same names and shapes."""

    @abstractmethod
    def raw_gradients(self) -> Dict[str, Any]:
        """Return the gradient of the loss in every trainable parameter, as tensors laid out as
        those.

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
