"""The weights that all frameworks start the comparison from, drawn from a seed."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from networks import Weight
from networks.layers import ONE


@dataclass(frozen=True)
class Drawn:
    """An array of normally distributed float32 values. ``negated``: the part of the values whose
    sign is turned. ``centred``: the mean over all axes but the last is made zero. ``trained``: a
    parameter, not a running statistic."""

    shape: tuple[int, ...]
    spread: float
    mean: float = 0.0
    negated: float = 0.0
    centred: bool = False
    trained: bool = True


def drawn(weights: Mapping[str, Weight], factors: Mapping[str, float]) -> dict[str, Drawn]:
    """Return how the parameters of a transformer are drawn. ``factors``: factors of the deviation
    of weights, by the end of their layer's name. Embeddings are small, so that the epsilon of the
    normalisation after them matters."""
    parameters = {}
    for name, weight in weights.items():
        layer, shape = name.rpartition(".")[0], weight.shape
        if len(shape) == 1:
            parameters[name] = Drawn(shape, 0.1, 1.0 if weight.initial == ONE else 0.0)
        elif layer.startswith("embeddings."):
            parameters[name] = Drawn(shape, 0.05)
        else:
            factor = next((factors[end] for end in factors if layer.endswith(end)), 1.0)
            parameters[name] = Drawn(shape, factor * shape[0] ** -0.5)
    return parameters


def draw(parameters: dict[str, Drawn], seed: int) -> dict[str, Any]:
    """Return the float32 arrays by name. Each depends on the seed and its own name alone."""
    weights = {}
    for name, drawn in parameters.items():
        # RandomState, not Generator: its stream is the same in every numpy since 1.0.
        random = np.random.RandomState((zlib.crc32(name.encode()) + seed) % 2**32)
        values = drawn.mean + drawn.spread * random.standard_normal(drawn.shape)
        values[random.random_sample(drawn.shape) < drawn.negated] *= -1
        if drawn.centred:
            values -= values.mean(axis=tuple(range(values.ndim - 1)))
        weights[name] = values.astype(np.float32)
    return weights
