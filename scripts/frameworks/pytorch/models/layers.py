"""Initial values of all models' parameters."""

from __future__ import annotations

from typing import Any, Callable, Dict, Mapping

import networks
from torch import Tensor, nn

INITIALIZERS: Dict[str, Callable[[Tensor, float], Any]] = {
    "normal": lambda tensor, deviation: nn.init.normal_(tensor, 0.0, deviation),
    "uniform": lambda tensor, bound: nn.init.uniform_(tensor, -bound, bound),
    "constant": nn.init.constant_,
}


def initialized(model: nn.Module, weights: Mapping[str, networks.Weight]) -> nn.Module:
    networks.initialize(model.named_parameters(), weights, INITIALIZERS)
    return model
