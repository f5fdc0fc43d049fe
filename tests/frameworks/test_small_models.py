"""Small models of verifications have each distinct layer and connection of the full ones."""

from __future__ import annotations

from collections import Counter
from typing import Any

import networks
import pytest
from reference import cnn, compute

from .blocks import kinds_of_layer
from .cnns import CNNS

NETWORKS = sorted(CNNS)


def layers_by_stage(network: networks.LayerGraph) -> set[tuple[Any, ...]]:
    """Return the kinds of layers, with their stage and the operations that they read.
    Stages end where an image gets smaller. Of an operation that is read, whether others read it,
    too; of a concatenation, the kinds that it reads, without their number."""
    stages, operations = {networks.IMAGES: 0}, {networks.IMAGES: networks.IMAGES}
    readers = Counter(name for layer in network.layers for name in layer.inputs)
    actual = set()
    for layer in network.layers:
        strides = layer.stride > 1
        stages[layer.name] = max(stages[name] for name in layer.inputs) + strides
        operations[layer.name] = layer.op
        read = [(operations[name], readers[name] == 1) for name in layer.inputs]
        sources = frozenset(read) if layer.op == "concatenate" else tuple(read)
        actual.add((stages[layer.name], frozenset(kinds_of_layer(layer)), sources))
    return actual


@pytest.mark.parametrize("model", NETWORKS)
def test_a_small_network_has_all_kinds_of_layers_of_each_stage(model: str) -> None:
    full, small = (networks.describe(c) for c in (CNNS[model], compute.reduced(CNNS[model])))
    lost = layers_by_stage(full) - layers_by_stage(small)
    assert not lost, sorted(map(str, lost))


@pytest.mark.parametrize("model", ["resnet18", "resnet50_v1.5", "mobilenet_v2", "digits_resnet"])
def test_each_activation_has_values_on_both_sides_of_its_jumps(model: str) -> None:
    """Fail if an activation of the comparison changes nothing: one that is missing is not found."""
    model_config = compute.verification_model_config(
        compute.reduced(CNNS[model]), with_dropout=False
    )
    hyper, drawn = model_config["hyperparameters"], compute.draw(cnn.parameters(model_config), 0)
    batch = compute.make_batch(model_config["inputs"], 2, None, 0, 0)
    weights = cnn.calibrated(drawn, batch, hyper)
    one_sided = []

    def before(layer: networks.Layer, inputs: list[Any]) -> None:
        if layer.op in cnn.RECTIFIERS:
            lowest, highest = inputs[0].min(), inputs[0].max()
            if not lowest < 0 < highest or (layer.op == "relu6" and highest < 6):
                one_sided.append(layer.name)

    network = networks.describe(model_config)
    cnn.run_layers(network, weights, batch, True, None, before)
    assert not one_sided
