"""A model that the user brings, as a definition: a Cell, made by a file."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, Callable, Dict, Iterator, List, Sequence, Tuple

import mindspore
from harness.adapter import FLOAT64, Mismatch, OwnDefinition, Variable
from mindspore import Parameter, Tensor, mint, nn
from mindspore.experimental.optim import Optimizer as ExperimentalOptimizer

from .. import optimizers

_FLOATS = (mindspore.float16, mindspore.bfloat16, mindspore.float32, mindspore.float64)
_DROPPING = (
    nn.Dropout,
    nn.Dropout1d,
    nn.Dropout2d,
    nn.Dropout3d,
    mint.nn.Dropout,
    mint.nn.Dropout2d,
)


class Given:
    """Optimizer of the user's file, which may have the parameters in another order."""

    def __init__(self, optimizer: Any, parameters: Sequence[Parameter]) -> None:
        self._optimizer = optimizer
        places = {id(parameter): index for index, parameter in enumerate(parameters)}
        self._order = [places[id(parameter)] for parameter in optimizer.parameters]

    def update(self, gradients: Sequence[Tensor]) -> None:
        """Update the parameters by their ``gradients``."""
        self._optimizer(tuple(gradients[index] for index in self._order))

    def get_parameters(self) -> Iterator[Parameter]:
        """Return the optimizer's state, which may have the parameters that it updates."""
        parameters: Iterator[Parameter] = self._optimizer.get_parameters()
        return parameters


class Definition(OwnDefinition):
    """A batch is a tuple: the inputs in the order of the model's arguments, and the targets as the
    file made them."""

    OPTIMIZERS, LIBRARY = (nn.Optimizer, ExperimentalOptimizer), "mindspore.nn"

    def _first(self, inputs: Any) -> Any:
        return next(_leaves(inputs), None)

    def batch(self, drawn: Dict[str, Any]) -> Tuple[Any, Any]:
        """Return this rank's batch, drawn with the seed in ``drawn``."""
        mindspore.set_seed(int(drawn["seed"]))
        model, inputs, targets, _ = self._made()
        self._inputs = _mapped(self._widened, _in_order(model, inputs))
        tensors = tuple(entry for entry in self._inputs if entry is not None)
        # mutable: else a graph takes its values for constants
        self._batch = mindspore.mutable((tensors, _mapped(self._widened, targets)))
        batch: Tuple[Any, Any] = self._batch
        return batch

    def _widened(self, tensor: Tensor) -> Tensor:
        is_exact = self._case.precision == FLOAT64 and tensor.dtype in _FLOATS
        return tensor.astype(mindspore.float64) if is_exact else tensor

    def build(self, model_config: Dict[str, Any], training: bool) -> nn.Cell:
        mindspore.set_seed(self._rank_context.seed)
        model, _, _, self._loss = self._made()
        if not isinstance(model, nn.Cell):
            raise TypeError(f"make returned {type(model).__name__} as the model, not a Cell")
        if training and not model.trainable_params():
            raise TypeError("make returned a model without a parameter that is trained")
        if not self._own.get("dropout", True):
            _without_dropout(model)
        if self._case.precision == FLOAT64:
            for parameter in model.get_parameters():
                if parameter.dtype in _FLOATS:
                    parameter.set_dtype(mindspore.float64)
        return model

    @property
    def inputs(self) -> Callable[[Tuple[Any, Any]], Any]:
        """Function of a batch that returns the inputs. A graph takes in no method."""
        given = [entry is not None for entry in self._inputs]
        places = tuple(sum(given[:index]) if is_true else -1 for index, is_true in enumerate(given))

        def inputs(batch: Tuple[Any, Any]) -> Any:
            return tuple([batch[0][index] if index >= 0 else None for index in places])

        return inputs

    @property
    def loss(self) -> Callable[[Any, Tuple[Any, Any], Any], Tensor]:
        """Function of outputs, batch and model config: the user's loss, of outputs in float32."""
        own, is_exact = self._loss, self._case.precision == FLOAT64

        def loss(outputs: Any, batch: Tuple[Any, Any], model_config: Any) -> Tensor:
            if is_exact:  # losses of MindSpore take nothing wider
                outputs = _mapped(_in_float32, outputs)
            value = own(outputs, batch[1])
            if value.ndim:
                raise TypeError("the loss must be a tensor with one number")
            return value

        return loss

    def optimizer(self, parameters: Dict[str, Parameter]) -> Any:
        """Return the optimizer of the user's file, or the default one."""
        given = [*parameters.values()]
        made = self._own_optimizer(given)
        if made is None:
            return optimizers.Optimizer(parameters, self._model_config["hyperparameters"])
        return Given(made, given)

    def flat(self, outputs: Any) -> Tuple[Tensor, ...]:
        """Return the tensors among ``outputs``. Raises :class:`Mismatch` where there is none."""
        result = tuple(_leaves(outputs))
        if not result:
            raise Mismatch(
                f"the model returns {type(outputs).__name__} without a tensor; allowed: a tensor, "
                "or tuples, lists and dictionaries of them"
            )
        return result

    def state(self, model: nn.Cell) -> Dict[str, Variable]:
        """Return the state as the model has it; no other framework is compared with it."""
        return {
            name: Variable(parameter, trainable=parameter.requires_grad)
            for name, parameter in model.parameters_and_names()
            if parameter.dtype in _FLOATS
        }

    def arrays(self) -> List[Any]:
        """Return this rank's inputs and targets."""
        return [tensor.asnumpy() for tensor in _leaves(self._batch)]


def _in_float32(tensor: Tensor) -> Tensor:
    return tensor.astype(mindspore.float32) if tensor.dtype in _FLOATS else tensor


def _in_order(model: Any, inputs: Any) -> Tuple[Any, ...]:
    """Return inputs in the order of the model's arguments: those of a dictionary have names."""
    if isinstance(inputs, Mapping):
        bound = inspect.signature(model.construct).bind(**inputs)
        bound.apply_defaults()
        return bound.args
    return (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)


def _leaves(nest: Any) -> Iterator[Tensor]:
    if isinstance(nest, Tensor):
        yield nest
    elif isinstance(nest, (Mapping, list, tuple)):
        for part in nest.values() if isinstance(nest, Mapping) else nest:
            yield from _leaves(part)


def _mapped(function: Callable[[Tensor], Tensor], nest: Any) -> Any:
    """Return ``nest`` with ``function`` of each tensor."""
    if isinstance(nest, Tensor):
        return function(nest)
    if isinstance(nest, Mapping):
        return {name: _mapped(function, part) for name, part in nest.items()}
    if isinstance(nest, (list, tuple)):
        return tuple(_mapped(function, part) for part in nest)
    return nest


def _without_dropout(model: nn.Cell) -> None:
    """Set the rate of all layers that drop something to 0."""
    for _, cell in model.cells_and_names():
        if isinstance(cell, _DROPPING):
            cell.p = cell.prob = 0.0
        elif isinstance(cell, (nn.RNN, nn.GRU, nn.LSTM, nn.MultiheadAttention)):
            cell.dropout = 0.0
