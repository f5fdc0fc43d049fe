"""A training on disk: the parameters of model and optimizer, as numpy arrays."""

from __future__ import annotations

from typing import List

from harness.batch_input import load_arrays, save_arrays
from mindspore import Parameter, Tensor, nn, ops

from .optimizers import Optimizer


def save(path: str, network: nn.Cell, optimizer: Optimizer) -> None:
    save_arrays(path, [each.asnumpy() for each in _parameters(network, optimizer)])


def load(path: str, network: nn.Cell, optimizer: Optimizer) -> None:
    parameters = _parameters(network, optimizer)
    for parameter, array in zip(parameters, load_arrays(path, len(parameters))):
        ops.assign(parameter, Tensor(array))


def _parameters(network: nn.Cell, optimizer: Optimizer) -> List[Parameter]:
    """Return each parameter once: the optimizer may have those of the model, too."""
    every = [*network.get_parameters(), *optimizer.get_parameters()]
    return list({id(parameter): parameter for parameter in every}.values())
