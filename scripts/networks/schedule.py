"""Order in which the layers of a network run, and buffers of their outputs, for frameworks that
run one layer after another; and layers that some frameworks compute with one kernel, fused into one
layer."""

from __future__ import annotations

from collections import Counter
from typing import Any, Callable, Dict, List, NamedTuple, Set, Tuple

from networks.layers import IMAGES, Layer, LayerGraph

#: Layers whose backward pass does not read their output.
UNREAD = frozenset(("convolution", "batch_norm", "linear", "add"))
#: Elementwise layers, which keep the order of values.
BY_VALUE = frozenset(("dropout", "relu", "relu6"))
#: Operation that computes relu(batch_norm(first input) [+ second input]).
FUSED = "batch_norm_relu"


class Call(NamedTuple):
    """One layer of a schedule. ``inputs`` and ``output`` are positions in a list of values that all
    calls share; ``freed``: positions that no later call reads. ``in_place``: the layer may
    overwrite its input, because nothing else reads it, forward or backward."""

    layer: Layer
    inputs: Tuple[int, ...]
    output: int
    freed: Tuple[int, ...]
    in_place: bool


class Schedule(NamedTuple):
    """Calls of layers, in order. ``places``: length of the list of values. The images are at 0
    before the first call; ``outputs``: positions of the network's outputs after the last call."""

    calls: Tuple[Call, ...]
    places: int
    outputs: Tuple[int, ...]

    def bound(self, operation_of: Callable[[Call], Any]) -> Tuple[Any, int, Tuple[int, ...]]:
        """Return the calls as (operation, inputs, output, freed), ``places`` and ``outputs``."""
        calls = [(operation_of(call), call.inputs, call.output, call.freed) for call in self.calls]
        return calls, self.places, self.outputs


def schedule(network: LayerGraph, training: bool) -> Schedule:
    """Return the order of a network's layers and the places of their values. Auxiliary layers and
    their outputs are included only where ``training``."""
    layers = [layer for layer in network.layers if training or layer.name not in network.auxiliary]
    outputs = [name for name in network.outputs if training or name not in network.auxiliary]
    readers = Counter(name for layer in layers for name in layer.inputs) + Counter(outputs)
    operations = {layer.name: layer.op for layer in layers}
    places: Dict[str, int] = {IMAGES: 0}
    free: List[int] = []
    size = 1
    calls = []
    unread = Counter(readers)
    for layer in layers:
        inputs = tuple(places[name] for name in layer.inputs)
        unread.subtract(layer.inputs)
        freed = {places.pop(name) for name in set(layer.inputs) if not unread[name]}
        free.extend(freed)
        if not free:
            free.append(size)
            size += 1
        output = min(free)
        free.remove(output)
        places[layer.name] = output
        first = layer.inputs[0]
        in_place = readers[first] == 1 and operations.get(first) in UNREAD
        calls.append(Call(layer, inputs, output, tuple(sorted(freed - {output})), in_place))
    return Schedule(tuple(calls), size, tuple(places[name] for name in outputs))


def flattened(network: LayerGraph) -> Dict[str, Tuple[int, int, int]]:
    """Return (channels, height, width) by the name of each linear layer after flattened images.

    A framework with channels first flattens in that order, so its weights have their rows in
    another order than in :func:`networks.weights`."""
    layers = {layer.name: layer for layer in network.layers}
    shapes = {}
    for layer in network.layers:
        source = layers.get(layer.inputs[0])
        while source is not None and source.op in BY_VALUE:
            source = layers.get(source.inputs[0])
        if layer.op == "linear" and source is not None and source.op == "flatten":
            height, width, channels = source.in_shape
            shapes[layer.name] = (channels, height, width)
    return shapes


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
        inputs = tuple(renamed.get(name, name) for name in layer.inputs)
        results.append(layer._replace(inputs=inputs))
    kept = tuple(result for result in results if result.op == FUSED or result.name not in absorbed)
    outputs = tuple(renamed.get(name, name) for name in network.outputs)
    return network._replace(layers=kept, outputs=outputs)
