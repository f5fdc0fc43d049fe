"""A training on disk: the parameters of model and optimizer, as ``npz``."""

from __future__ import annotations

from typing import List

import numpy as np
from mindspore import Parameter, Tensor, nn, ops

from .optimizers import Optimizer


def save(path: str, network: nn.Cell, optimizer: Optimizer) -> None:
    arrays = {
        str(n): parameter.asnumpy() for n, parameter in enumerate(_parameters(network, optimizer))
    }
    with open(path, "wb") as file:  # a name would get an ending
        np.savez(file, **arrays)


def load(path: str, network: nn.Cell, optimizer: Optimizer) -> None:
    with np.load(path) as kept:
        for number, parameter in enumerate(_parameters(network, optimizer)):
            ops.assign(parameter, Tensor(kept[str(number)]))


def _parameters(network: nn.Cell, optimizer: Optimizer) -> List[Parameter]:
    """Return each parameter once: the optimizer may have those of the model, too."""
    every = [*network.get_parameters(), *optimizer.get_parameters()]
    return list({id(parameter): parameter for parameter in every}.values())
