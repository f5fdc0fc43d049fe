"""ResNet-50 v1.5 in float64 (He et al. 2015, arXiv:1512.03385; the stride of 2 in the 3x3
convolution, as in Goyal et al. 2017, arXiv:1706.02677)."""

from __future__ import annotations

from typing import Any

import autograd.numpy as np

from reference.operations import (
    Array,
    batch_norm,
    convolution,
    cross_entropy,
    dense,
    maximum_pool,
    relu,
)
from reference.weights import Drawn, state, trainable

EXPANSION = 4


def blocks(hyper: dict[str, Any]) -> list[tuple[str, int, int, int, bool]]:
    """Name, channels in, width, stride, and whether the shortcut is projected, of each block.
    ``stages``: width of the 3x3 convolutions, number of blocks."""
    found: list[tuple[str, int, int, int, bool]] = []
    channels = hyper["stages"][0][0]
    for stage, (width, depth) in enumerate(hyper["stages"]):
        for block in range(depth):
            stride = 2 if stage > 0 and block == 0 else 1
            projected = channels != width * EXPANSION
            found.append((f"blocks.{len(found)}", channels, width, stride, projected))
            channels = width * EXPANSION
    return found


def parameters(facts: dict[str, Any]) -> dict[str, Drawn]:
    """Every parameter and running statistic, and how its value for the comparison is drawn.

    The gradient of a ReLU jumps at zero: of values drawn around it, rounding in float32 moves so
    many to the other side that gradients differ by a hundredth. So most biases lift their channels
    above zero and, where nothing is added behind them, a part pushes them below. Convolutions whose
    weights add up to zero do not see that lift: a variance computed as the difference of two large
    means would lose digits.
    """
    hyper = facts["hyperparameters"]
    found: dict[str, Drawn] = {}

    def layer(
        conv: str, norm: str, kernel: int, cin: int, cout: int, weight: float = 0.4,
        bias: float = 2.0, negated: float = 0.0,
    ) -> None:  # fmt: skip
        spread = (2 / (kernel * kernel * cin)) ** 0.5
        found[f"{conv}.weight"] = trainable((kernel, kernel, cin, cout), spread, centred=True)
        found[f"{norm}.weight"] = trainable((cout,), 0.1 * weight, weight)
        found[f"{norm}.bias"] = trainable((cout,), 0.05, bias, negated)
        found[f"{norm}.running_mean"] = state((cout,), 0.1)
        found[f"{norm}.running_var"] = state((cout,), 0.1, 1.0)

    layer("conv", "norm", 7, 3, hyper["stages"][0][0])
    for name, cin, width, _, projected in blocks(hyper):
        layer(f"{name}.conv1", f"{name}.norm1", 1, cin, width, negated=0.15)
        layer(f"{name}.conv2", f"{name}.norm2", 3, width, width, negated=0.15)
        layer(f"{name}.conv3", f"{name}.norm3", 1, width, width * EXPANSION, 0.12, 0.0)
        if projected:
            layer(f"{name}.shortcut.conv", f"{name}.shortcut.norm", 1, cin, width * EXPANSION)
    features, classes = hyper["stages"][-1][0] * EXPANSION, hyper["classes"]
    found["classifier.weight"] = trainable((features, classes), features**-0.5)
    found["classifier.bias"] = trainable((classes,), 0.1)
    return found


def forward(
    weights: dict[str, Array],
    batch: dict[str, Any],
    hyper: dict[str, Any],
    training: bool,
    dropout: Any = None,
) -> list[Array]:
    """Logits (batch, classes). There is no dropout."""
    epsilon = hyper["batch_norm_epsilon"]

    def layer(x: Array, conv: str, norm: str, stride: int = 1) -> Array:
        x = convolution(x, weights[f"{conv}.weight"], stride)
        return batch_norm(x, weights, norm, epsilon, training)

    x = maximum_pool(relu(layer(batch["images"], "conv", "norm", 2)))
    for name, _, _, stride, projected in blocks(hyper):
        shortcut = x
        if projected:
            shortcut = layer(x, f"{name}.shortcut.conv", f"{name}.shortcut.norm", stride)
        y = relu(layer(x, f"{name}.conv1", f"{name}.norm1"))
        y = relu(layer(y, f"{name}.conv2", f"{name}.norm2", stride))
        x = relu(layer(y, f"{name}.conv3", f"{name}.norm3") + shortcut)
    return [dense(np.mean(x, axis=(1, 2)), weights, "classifier")]


def loss(outputs: list[Array], batch: dict[str, Any], hyper: dict[str, Any]) -> Array:
    return cross_entropy(outputs[0], batch["labels"])
