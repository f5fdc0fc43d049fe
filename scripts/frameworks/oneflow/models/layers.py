"""Initial values, and layers that several models have."""

from __future__ import annotations

from typing import Any, Callable, Dict, Mapping

import networks
import oneflow
from oneflow import Tensor, nn

INITIALIZERS: Dict[str, Callable[[Tensor, float], Any]] = {
    "normal": lambda tensor, deviation: nn.init.normal_(tensor, 0.0, deviation),
    "uniform": lambda tensor, bound: nn.init.uniform_(tensor, -bound, bound),
    "constant": nn.init.constant_,
}


def initialized(model: nn.Module, weights: Mapping[str, networks.Weight]) -> nn.Module:
    networks.initialize(model.named_parameters(), weights, INITIALIZERS)
    return model


def dropout(rate: float) -> nn.Dropout:
    # Left to itself every nn.Dropout makes a generator of its own, all with one fixed seed: all
    # layers of a shape, in all ranks and runs, would drop the same positions.
    return nn.Dropout(rate, generator=oneflow.default_generator)
