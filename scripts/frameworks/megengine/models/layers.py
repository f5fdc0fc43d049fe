"""Initial values of all models' parameters."""

from __future__ import annotations

from typing import Any, Callable, Dict, Mapping

import megengine.module as M
import networks
from megengine import Tensor

INITIALIZERS: Dict[str, Callable[[Tensor, float], Any]] = {
    "normal": lambda tensor, deviation: M.init.normal_(tensor, 0.0, deviation),
    "uniform": lambda tensor, bound: M.init.uniform_(tensor, -bound, bound),
    "constant": M.init.fill_,
}


def initialized(model: M.Module, weights: Mapping[str, networks.Weight]) -> M.Module:
    networks.initialize(model.named_parameters(), weights, INITIALIZERS)
    return model
