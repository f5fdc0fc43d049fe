"""Initial values of all models' parameters."""

from __future__ import annotations

from typing import Any, Callable, Dict, Mapping

import networks
from paddle import Tensor, nn

INITIALIZERS: Dict[str, Callable[[Tensor, float], Any]] = {
    "normal": lambda tensor, deviation: nn.initializer.Normal(0.0, deviation)(tensor),
    "uniform": lambda tensor, bound: nn.initializer.Uniform(-bound, bound)(tensor),
    "constant": lambda tensor, value: nn.initializer.Constant(value)(tensor),
}


def initialized(model: nn.Layer, weights: Mapping[str, networks.Weight]) -> nn.Layer:
    networks.initialize(model.named_parameters(), weights, INITIALIZERS)
    return model
