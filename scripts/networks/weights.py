"""The arrays that the layers of a network hold, and how they are initialized."""

from __future__ import annotations

from typing import Callable, Dict, NamedTuple, Tuple

from networks.initials import Initial
from networks.layers import Layer, LayerGraph


class Weight(NamedTuple):
    """Convolutions are (rows, columns, in / groups, out), linear layers (in, out). ``trained``: a
    parameter, not a running statistic."""

    shape: Tuple[int, ...]
    trained: bool
    initial: Initial


def weights(network: LayerGraph) -> Dict[str, Weight]:
    """Return every parameter and running statistic by name, in the order of the layers."""
    held: Dict[str, Weight] = {}
    for layer in network.layers:
        if layer.op in HOLDERS:
            for ending, weight in HOLDERS[layer.op](layer).items():
                held[f"{layer.name}.{ending}"] = weight
    return held


def _convolution(layer: Layer) -> Dict[str, Weight]:
    attributes = layer.attributes
    inputs = layer.in_shape.channels // attributes["groups"]
    return _matmul(layer, (*attributes["kernel"], inputs, attributes["channels"]))


def _linear(layer: Layer) -> Dict[str, Weight]:
    return _matmul(layer, (layer.in_shape.channels, layer.attributes["features"]))


def _matmul(layer: Layer, shape: Tuple[int, ...]) -> Dict[str, Weight]:
    attributes = layer.attributes
    held = {"weight": Weight(shape, True, attributes["initial"])}
    if attributes["bias"]:
        held["bias"] = Weight(shape[-1:], True, attributes["initial_bias"])
    return held


def _batch_norm(layer: Layer) -> Dict[str, Weight]:
    shape = (layer.shape.channels,)
    return {
        "weight": Weight(shape, True, ("constant", 1.0)),
        "bias": Weight(shape, True, ("constant", 0.0)),
        "running_mean": Weight(shape, False, ("constant", 0.0)),
        "running_var": Weight(shape, False, ("constant", 1.0)),
    }


HOLDERS: Dict[str, Callable[[Layer], Dict[str, Weight]]] = {
    "convolution": _convolution,
    "linear": _linear,
    "batch_norm": _batch_norm,
}
