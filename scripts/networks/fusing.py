"""Batch normalisation, addition and ReLU as one layer, for frameworks that have a kernel for it."""

from __future__ import annotations

from collections import Counter
from typing import Dict, List, Mapping, Set

from networks.layers import Layer, LayerGraph

#: Operation that computes relu(batch_norm(first input) [+ second input]).
FUSED = "batch_norm_relu"


def fused(network: LayerGraph) -> LayerGraph:
    """Return ``network`` with layers :data:`FUSED`, each named by its batch normalisation, wherever
    nothing else reads the values in between."""
    layers = {layer.name: layer for layer in network.layers}
    readers = Counter(name for layer in network.layers for name in layer.inputs)
    readers.update(network.outputs)

    def read_once(name: str, op: str) -> bool:
        return name in layers and layers[name].op == op and readers[name] == 1

    results: List[Layer] = []
    renamed: Dict[str, str] = {}
    absorbed: Set[str] = set()
    for layer in network.layers:
        before = layer.inputs[0]
        normalised = before if layer.op == "relu" and read_once(before, "batch_norm") else ""
        addends: List[str] = []
        if layer.op == "relu" and read_once(before, "add"):
            added = layers[before].inputs
            normalised = next((name for name in added if read_once(name, "batch_norm")), "")
            addends = [name for name in added if name != normalised] if normalised else []
        if normalised:
            norm = layers[normalised]
            absorbed.update((normalised, before) if addends else (normalised,))
            renamed[layer.name] = normalised
            layer = norm._replace(op=FUSED, inputs=(*norm.inputs, *addends))
        results.append(_reading(layer, renamed))
    kept = tuple(result for result in results if result.op == FUSED or result.name not in absorbed)
    outputs = tuple(renamed.get(name, name) for name in network.outputs)
    return network._replace(layers=kept, outputs=outputs)


def _reading(layer: Layer, renamed: Mapping[str, str]) -> Layer:
    return layer._replace(inputs=tuple(renamed.get(name, name) for name in layer.inputs))
