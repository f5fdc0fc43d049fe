"""Any convolutional network of a description (``scripts/networks``) in float64."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import autograd.numpy as np
import numpy
from networks import Layer, LayerGraph, SampleShape, describe, describe_images
from networks import weights as weights_of

from reference.operations import (
    Array,
    adaptive_average_pool,
    average_pool,
    batch_norm,
    convolution,
    cross_entropy,
    dense,
    maximum_pool,
    relu,
    relu6,
)
from reference.transformers import Dropout
from reference.weights import Arrays, Drawn, Hyper

RECTIFIERS = ("relu", "relu6")

#: Centre of a ReLU's inputs, and the fraction of channels that are centred at -LIFT instead.
LIFT, NEGATED = 2.0, 0.15
#: Standard deviation of the outputs of a batch normalisation.
SPREAD = 0.4
#: Largest distance of the inputs of a ReLU without batch normalisation from their centre.
REACH = 1.6
#: Least distance from zero of a sum before a ReLU.
APART = 0.5
#: Centre of the inputs of a ReLU6, away from both of its kinks; one channel in EVERY lies beyond
#: the second kink, around BEYOND.
LIFT6, EVERY, BEYOND = 3.0, 7, 6.0


def parameters(model_config: dict[str, Any]) -> dict[str, Drawn]:
    """Return every parameter and running statistic, and how its value for the comparison is drawn.

    The gradient of a ReLU jumps at zero. With inputs drawn around zero, rounding in float32 moves
    so many of them to the other side that gradients differ by 1 %. So biases shift most channels
    above zero, and some below. The weights of convolutions add up to zero and remove this shift,
    because a variance computed as the difference of two large means would lose digits. Terms added
    to a shortcut before a ReLU vary little, and less the more terms there are.
    """
    network = describe(model_config)
    uses = _uses(network)
    sums = sum(layer.op == "add" for layer in network.layers)
    held = weights_of(network)
    drawn: dict[str, Drawn] = {}
    for layer in network.layers:
        shapes = {
            ending: held[f"{layer.name}.{ending}"].shape
            for ending in ("weight", "bias", "running_mean", "running_var")
            if f"{layer.name}.{ending}" in held
        }
        if layer.op == "batch_norm":
            values = _normalisation(layer, shapes["weight"], uses, sums)
        elif shapes:
            values = _matmul(layer, shapes, layer.name in network.outputs)
        else:
            continue
        drawn.update({f"{layer.name}.{ending}": value for ending, value in values.items()})
    return drawn


def _matmul(layer: Layer, shapes: dict[str, tuple[int, ...]], is_output: bool) -> dict[str, Drawn]:
    shape = shapes["weight"]
    fan_in = int(numpy.prod(shape[:-1]))
    if is_output and layer.op == "linear":
        values = {"weight": Drawn(shape, fan_in**-0.5)}
    else:
        values = {"weight": Drawn(shape, (2 / fan_in) ** 0.5, centred=True)}
    return {**values, "bias": Drawn(shapes["bias"], 0.1)} if "bias" in shapes else values


def _normalisation(
    layer: Layer, shape: tuple[int, ...], uses: dict[str, list[Layer]], sums: int
) -> dict[str, Drawn]:
    users = uses[layer.name]
    spread, lift, negated = SPREAD, 0.1, 0.0
    if any(user.op in RECTIFIERS for user in users):
        negated = NEGATED
        lift = LIFT6 if users[0].op == "relu6" else LIFT
    elif any(user.op == "add" and _is_rectified(user, uses) for user in users):
        (added,) = (user for user in users if user.op == "add")
        branch = added.inputs[0] == layer.name
        spread, lift = (0.3 * sums**-0.5, 0.0) if branch else (SPREAD, LIFT)
    return {
        "weight": Drawn(shape, 0.1 * spread, spread),
        "bias": Drawn(shape, 0.05 if lift else 0.02, lift, negated),
        "running_mean": Drawn(shape, 0.1, trained=False),
        "running_var": Drawn(shape, 0.1, 1.0, trained=False),
    }


def _uses(network: LayerGraph) -> dict[str, list[Layer]]:
    uses: dict[str, list[Layer]] = defaultdict(list)
    for layer in network.layers:
        for name in layer.inputs:
            uses[name].append(layer)
    return uses


def _is_rectified(layer: Layer, uses: dict[str, list[Layer]]) -> bool:
    return any(user.op in RECTIFIERS for user in uses[layer.name])


def calibrated(weights: Arrays, batch: Arrays, hyper: Hyper) -> Any:
    """Return the drawn ``weights``, adapted by a pass over a batch: running statistics are near the
    batch's own, and matmuls and sums that feed a ReLU without batch normalisation keep away from
    zero, where its gradient jumps. Without this, the values of a chain of such layers would explode
    or vanish. Returns float32 arrays by name."""
    network = _network(batch, hyper)
    uses = _uses(network)
    weights = {name: array.astype(np.float64) for name, array in weights.items()}
    sums = itertools.count()

    def settle(layer: Layer, inputs: list[Array]) -> None:
        if layer.op == "batch_norm":
            _settle_statistics(weights, layer.name, inputs[0])
            if _is_rectified(layer, uses):
                bias = weights[f"{layer.name}.bias"]
                below = _with_both_sides(bias < 0)
                weights[f"{layer.name}.bias"] = np.where(below, -abs(bias), abs(bias))
            if any(user.op == "relu6" for user in uses[layer.name]):
                weights[f"{layer.name}.bias"][::EVERY] += BEYOND
        elif f"{layer.name}.bias" in weights and _is_rectified(layer, uses):
            _settle_product(weights, layer, inputs[0])
        elif layer.op == "add" and _is_rectified(layer, uses):
            shift = _shift_of_sum(inputs, next(sums))
            weights[f"{layer.inputs[0]}.bias"] += shift
            inputs[0] = inputs[0] + shift

    run_layers(network, weights, batch, True, None, settle)
    return {name: array.astype(np.float32) for name, array in weights.items()}


def _settle_statistics(weights: Arrays, name: str, x: Array) -> None:
    """Replace ``running_mean`` and ``running_var``, drawn around 0 and 1, by values at the same
    distance from the statistics of ``x``."""
    axes = tuple(range(x.ndim - 1))
    mean, variance = x.mean(axis=axes), x.var(axis=axes)
    weights[f"{name}.running_mean"] = mean + variance**0.5 * weights[f"{name}.running_mean"]
    weights[f"{name}.running_var"] = variance * weights[f"{name}.running_var"]


def _settle_product(weights: Arrays, layer: Layer, x: Array) -> None:
    """Scale and shift a layer, so that all of its outputs are within REACH of LIFT or -LIFT."""
    weight, bias = f"{layer.name}.weight", f"{layer.name}.bias"
    weights[bias] = 0 * weights[bias]
    y = _computed(layer, [x], weights, True, None)
    # a batch has too few features for a mean per channel
    means = y.mean(axis=(0, 1, 2)) if y.ndim == 4 else np.zeros(y.shape[-1])
    scale = REACH / abs(y - means).max()
    random = numpy.random.RandomState(len(layer.name))
    below = _with_both_sides(random.random_sample(len(means)) < NEGATED)
    weights[weight] = scale * weights[weight]
    weights[bias] = np.where(below, -LIFT, LIFT) - scale * means


def _with_both_sides(below: Array) -> Array:
    """Return ``below``, which channels a ReLU makes zero; only the last of several channels where
    ``below`` is the same for all."""
    places, alike = numpy.arange(len(below)), below.all() or not below.any()
    return np.where(alike, (places > 0) & (places == len(below) - 1), below)


def _shift_of_sum(inputs: list[Array], index: int) -> Array:
    """Return the shift of each channel of a sum with an ``index`` in the network. It makes the sum
    negative in one of EVERY channels (other channels than in the previous sum) and positive in the
    rest, also where an earlier ReLU has left only zeros."""
    total: Array = inputs[0] + inputs[1]
    axes = tuple(range(total.ndim - 1))
    below = (numpy.arange(total.shape[-1]) + index) % EVERY == 0
    lift = np.maximum(0.0, APART - total.min(axis=axes))
    return np.where(below, -APART - total.max(axis=axes), lift)


def forward(
    weights: Arrays, batch: Arrays, hyper: Hyper, training: bool, dropout: Dropout | None = None
) -> list[Array]:
    """Return logits (batch, classes), in training with those of the auxiliary heads. ``dropout``:
    None for no dropout."""
    return run_layers(_network(batch, hyper), weights, batch, training, dropout)


def loss(outputs: list[Array], batch: Arrays, hyper: Hyper) -> Array:
    """Return the mean cross-entropy, plus the weighted ones of the auxiliary heads."""
    logits, *heads = (cross_entropy(output, batch["labels"]) for output in outputs)
    return sum((hyper["auxiliary_weight"] * head for head in heads), logits)


def _network(batch: Arrays, hyper: Hyper) -> LayerGraph:
    return describe_images(hyper, SampleShape(*batch["images"].shape[1:]))


def run_layers(
    network: LayerGraph,
    weights: Arrays,
    batch: Arrays,
    training: bool,
    dropout: Dropout | None,
    before: Callable[[Layer, list[Array]], None] = lambda layer, inputs: None,
) -> list[Array]:
    """Return all outputs of the mode; ``before`` is called before each layer."""
    arrays = {"images": batch["images"]}
    for layer in network.layers:
        if training or layer.name not in network.auxiliary:
            inputs = [arrays[name] for name in layer.inputs]
            before(layer, inputs)
            arrays[layer.name] = _computed(layer, inputs, weights, training, dropout)
    return [arrays[name] for name in network.outputs if name in arrays]


def _computed(
    layer: Layer, inputs: list[Array], weights: Arrays, training: bool, dropout: Dropout | None
) -> Array:
    """Return the output of a layer."""
    x, name = inputs[0], layer.name
    if layer.op == "convolution":
        y = convolution(x, weights[f"{name}.weight"], layer.stride, layer.padding, layer.groups)
        return y + weights[f"{name}.bias"] if layer.bias else y
    if layer.op == "batch_norm":
        return batch_norm(x, weights, name, layer.epsilon, training)
    if layer.op == "linear":
        return dense(x, weights, name)
    if layer.op == "dropout":
        drops = training and dropout is not None and layer.rate
        return x * dropout(x.shape, layer.rate) if drops and dropout else x
    if layer.op == "add":
        return inputs[0] + inputs[1]
    if layer.op == "concatenate":
        return np.concatenate(inputs, axis=3)
    return PLAIN[layer.op](x, layer)


def _shuffle(x: Array, layer: Layer) -> Array:
    split = np.reshape(x, (*x.shape[:3], layer.groups, -1))
    return np.reshape(np.transpose(split, (0, 1, 2, 4, 3)), x.shape)


PLAIN: dict[str, Callable[[Array, Layer], Array]] = {
    "relu": lambda x, layer: relu(x),
    "relu6": lambda x, layer: relu6(x),
    "max_pool": lambda x, layer: maximum_pool(x, *layer.window, layer.extra),
    "average_pool": lambda x, layer: average_pool(x, *layer.window),
    "adaptive_average_pool": lambda x, layer: adaptive_average_pool(x, layer.size),
    "global_average_pool": lambda x, layer: np.mean(x, axis=(1, 2)),
    "flatten": lambda x, layer: np.reshape(x, (len(x), -1)),
    "channels": lambda x, layer: x[..., layer.begin : layer.end],
    "shuffle": _shuffle,
}
