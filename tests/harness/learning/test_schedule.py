"""Storage places of layer outputs during a network's run."""

from __future__ import annotations

from typing import Any

from networks.layers import IMAGES, Layer, LayerGraph, SampleShape
from networks.schedule import flattened, schedule

IMAGE, VECTOR = SampleShape(2, 2, 3), SampleShape(1, 1, 12)


def layer(name: str, op: str, *inputs: str, shape: SampleShape = IMAGE, **attributes: Any) -> Layer:
    in_shape = VECTOR if op == "linear" else IMAGE
    return Layer(name, op, inputs, shape, in_shape, **attributes)


#: A residual, two heads, the second only in training, and a sum of the rest after them.
NETWORK = LayerGraph(
    layers=(
        layer("conv", "convolution", IMAGES),
        layer("relu", "relu", "conv"),
        layer("right", "convolution", "relu"),
        layer("sum", "add", "right", "relu"),
        layer("rectified", "relu", "sum"),
        layer("pool", "max_pool", "rectified"),
        layer("again", "relu", "pool"),
        layer("side", "flatten", "rectified", shape=VECTOR),
        layer("auxiliary", "linear", "side", shape=VECTOR),
        layer("flat", "flatten", "again", shape=VECTOR),
        layer("dropout", "dropout", "flat", shape=VECTOR),
        layer("hidden", "linear", "dropout", shape=VECTOR),
        layer("logits", "linear", "hidden", shape=VECTOR),
    ),
    outputs=("logits", "auxiliary"),
    auxiliary=frozenset(("side", "auxiliary")),
)


def test_no_more_values_are_kept_than_are_alive_at_once() -> None:
    assert schedule(NETWORK, training=False).places == 2
    assert schedule(NETWORK, training=True).places == 2


def test_a_layer_may_only_write_over_what_nobody_else_reads() -> None:
    calls = {call.layer.name: call.in_place for call in schedule(NETWORK, True).calls}
    assert calls["relu"], "a convolution needs its inputs alone to go back"
    assert calls["rectified"]
    assert not calls["conv"], "the images are needed in the next step"
    assert not calls["right"], "the sum reads the same"
    assert not calls["again"], "a pool's backward pass looks for the value that it put out"


def test_linear_layers_behind_images_know_what_was_flattened() -> None:
    assert flattened(NETWORK) == {"auxiliary": (3, 2, 2), "hidden": (3, 2, 2)}
