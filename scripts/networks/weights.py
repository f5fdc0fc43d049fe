"""The arrays that the layers of a network hold, and how they are initialized."""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterable, Mapping, NamedTuple, Tuple

from networks.initials import Initial
from networks.layers import Layer, LayerGraph

ZERO: Initial = ("constant", 0.0)
ONE: Initial = ("constant", 1.0)


class Weight(NamedTuple):
    """Convolutions are (rows, columns, in / groups, out), linear layers (in, out). ``trained``: a
    parameter, not a running statistic."""

    shape: Tuple[int, ...]
    initial: Initial
    trained: bool = True


def weights(network: LayerGraph) -> Dict[str, Weight]:
    """Return every parameter and running statistic by name, in the order of the layers."""
    return {
        f"{layer.name}.{ending}": weight
        for layer in network.layers
        for ending, weight in _held(layer).items()
    }


def _held(layer: Layer) -> Dict[str, Weight]:
    """Return the arrays of a layer, by the endings of their names."""
    channels = (layer.channels,)
    if layer.op == "batch_norm":
        return {
            "weight": Weight(channels, ONE),
            "bias": Weight(channels, ZERO),
            "running_mean": Weight(channels, ZERO, trained=False),
            "running_var": Weight(channels, ONE, trained=False),
        }
    if layer.op not in ("convolution", "linear"):
        return {}
    window = layer.kernel if layer.op == "convolution" else ()
    shape = (*window, layer.in_channels // layer.groups, layer.channels)
    held = {"weight": Weight(shape, layer.initial)}
    return {**held, "bias": Weight(channels, layer.initial_bias)} if layer.bias else held


def initialize(
    parameters: Iterable[Tuple[str, Any]],
    weights: Mapping[str, Weight],
    initializers: Mapping[str, Callable[[Any, float], Any]],
) -> None:
    """Draw the named parameters of a model anew. ``initializers``: by distribution, functions that
    fill a tensor of the framework; they take its deviation, bound or value."""
    for name, parameter in parameters:
        if name in weights:
            distribution, value = weights[name].initial
            initializers[distribution](parameter, value)
