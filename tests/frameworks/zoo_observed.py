"""Layers and outputs of the networks in a framework's own zoo, from given weights.

``python zoo_observed.py FRAMEWORK NETWORK..`` in its environment prints JSON. Layers are in the
order of execution, their arrays in the layout that all frameworks share. Standard library and
numpy.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

#: Image sizes, as small as the networks allow, by the beginning of their names. Networks with pools
#: of a fixed size, as in MXNet, take no other.
SIZE, SIZES = 64, {"alexnet": 224, "inception": 299, "vgg": 224}
FIXED = {
    "mxnet": {"densenet": 224, "squeezenet": 224},
    "paddle": {"googlenet": 224},
}
#: Channels of the image that the first linear layer flattens.
FLATTENED = {"alexnet": 256, "vgg": 512}
PERIOD = 10007


def size_of(framework: str, network: str) -> int:
    sizes = {**SIZES, **FIXED.get(framework, {})}
    return next((size for name, size in sizes.items() if network.startswith(name)), SIZE)


def images(size: int) -> Any:
    """Return one image, (1, rows, columns, 3)."""
    shape = (1, size, size, 3)
    return np.random.RandomState(1).uniform(-1, 1, shape).astype(np.float32)


def values(number: int, shape: tuple[int, ...]) -> Any:
    """Return the values of a network's array ``number``, in the shared layout.
    The last of four arrays of a layer is the variance of a normalisation. Activations stay bounded.
    """
    base = np.random.RandomState(0).uniform(-1, 1, PERIOD)
    scale = (6 / np.prod(shape[:-1])) ** 0.5 if len(shape) > 1 else 0.3
    return np.resize(np.roll(base * scale, 101 * number).astype(np.float32), shape)


def filled(layers: list[dict[str, Any]]) -> list[list[Any]]:
    """Return arrays for each of the layers; scale and variance of a normalisation are
    around one."""
    actual, number = [], 0
    for layer in layers:
        arrays = []
        for shape, role in zip(layer["shapes"], layer["roles"], strict=True):
            array = values(number, tuple(shape))
            arrays.append(array + np.float32(1) if role in ("scale", "variance") else array)
            number += 1
        actual.append(arrays)
    return actual


NORMALISATION = ("scale", "offset", "mean", "variance")


def product(kernel: Any, places: int, bias: bool) -> dict[str, Any]:
    """Return the entry of a convolution or linear layer.
    ``places``: number of uses of its kernel, 0 if unknown."""
    shapes = [list(map(int, kernel))] + [[int(kernel[-1])]] * bias
    roles = ["kernel", "bias"][: len(shapes)]
    kind = "convolution" if len(kernel) == 4 else "linear"
    count = places * int(np.prod(kernel))
    return {"op": kind, "shapes": shapes, "roles": roles, "multiply_adds": count}


def normalisation(channels: int, epsilon: float, momentum: float) -> dict[str, Any]:
    """Return the entry of a normalisation; ``momentum``: weight of the new statistics."""
    return {
        "op": "batch_norm",
        "shapes": [[int(channels)]] * 4,
        "roles": list(NORMALISATION),
        "epsilon": round(float(epsilon), 9),
        "momentum": round(float(momentum), 9),
    }


def dropout(rate: float, mode: str = "") -> dict[str, Any]:
    return {"op": "dropout", "shapes": [], "roles": [], "rate": float(rate), "mode": mode}


def flattened(network: str) -> int:
    """Return the channels before the first linear layer, if it flattens channels first; else 0."""
    return next((some for name, some in FLATTENED.items() if network.startswith(name)), 0)


def channels_first(array: Any, channels: int) -> Any:
    """Return a linear layer's (in, out) for input flattened with channels first.
    Given: (in, out) for rows, columns and ``channels`` flattened in this order."""
    extent = round((len(array) / channels) ** 0.5)
    cut = array.reshape(extent, extent, channels, -1)
    return cut.transpose(2, 0, 1, 3).reshape(array.shape)


class Observed:
    """Observed ``layers`` in the order of execution, each with a function that sets its arrays."""

    def __init__(self) -> None:
        self.layers: list[dict[str, Any]] = []
        self.setters: list[Callable[[list[Any]], None]] = []

    def add(self, layer: dict[str, Any], setter: Callable[[list[Any]], None]) -> None:
        self.layers.append(layer)
        self.setters.append(setter)

    def fill(self, flattened: int = 0) -> None:
        """Set the arrays of all layers.
        ``flattened``: channels before the first linear layer, if it flattens channels first."""
        for layer, arrays, setter in zip(
            self.layers, filled(self.layers), self.setters, strict=True
        ):
            if layer["op"] == "linear" and flattened:
                arrays[0], flattened = channels_first(arrays[0], flattened), 0
            setter(arrays)


def paddle(network: str, size: int) -> dict[str, Any]:
    import paddle
    from paddle import nn
    from paddle.vision import models

    builder = getattr(models, network.replace("_bn", ""), None)
    if builder is None:
        return {}
    options = {"batch_norm": True} if network.endswith("_bn") else {}
    model = builder(**options)
    model.eval()
    observed = Observed()

    def seen(layer: Any, inputs: Any, output: Any) -> None:
        if isinstance(layer, nn.Dropout):
            observed.add(dropout(layer.p, layer.mode), lambda arrays: None)
        elif isinstance(layer, (nn.Conv2D, nn.Linear)):
            axes = (2, 3, 1, 0) if isinstance(layer, nn.Conv2D) else (0, 1)
            kernel = [layer.weight.shape[axis] for axis in axes]
            places = int(np.prod(output.shape[2:]))

            def fill(arrays: list[Any]) -> None:
                layer.weight.set_value(arrays[0].transpose(np.argsort(axes)))
                if len(arrays) > 1:
                    layer.bias.set_value(arrays[1])

            observed.add(product(kernel, places, layer.bias is not None), fill)
        else:

            def fill_statistics(arrays: list[Any]) -> None:
                for held, array in zip(
                    (layer.weight, layer.bias, layer._mean, layer._variance), arrays, strict=True
                ):
                    held.set_value(array)

            made = normalisation(layer.weight.shape[0], layer._epsilon, 1 - layer._momentum)
            observed.add(made, fill_statistics)

    kinds = (nn.Conv2D, nn.Linear, nn.Dropout, nn.BatchNorm2D, nn.BatchNorm)
    hooks = [
        layer.register_forward_post_hook(seen)
        for layer in model.sublayers()
        if isinstance(layer, kinds)
    ]
    x = paddle.to_tensor(images(size).transpose(0, 3, 1, 2))
    with paddle.no_grad():
        model(x)
    for hook in hooks:
        hook.remove()
    trained = (parameter for parameter in model.parameters() if not parameter.stop_gradient)
    count = sum(int(np.prod(entry.shape)) for entry in trained)
    observed.fill(flattened(network))
    with paddle.no_grad():
        outputs: Any = model(x)
    first = outputs[0] if isinstance(outputs, (tuple, list)) else outputs
    logits = first.numpy()[0].tolist()
    return {"parameters": count, "layers": observed.layers, "outputs": logits}


def mxnet(network: str, size: int) -> dict[str, Any]:
    import mxnet as mx
    from mxnet.gluon import nn
    from mxnet.gluon.model_zoo import vision

    names = {"mobilenet_v2": "mobilenetv2_1.0", "inception_v3": "inceptionv3"}
    name = names.get(network, network.replace("squeezenet1_", "squeezenet1."))
    if network.startswith("resnet"):
        name += "_v1"
    try:
        model = vision.get_model(name)
    except ValueError:
        return {}
    observed = Observed()

    def seen(layer: Any, inputs: Any, output: Any) -> None:
        if isinstance(layer, nn.Dropout):
            observed.add(dropout(layer._rate), lambda arrays: None)
        elif isinstance(layer, nn.BatchNorm):
            given = layer._kwargs

            def fill_statistics(arrays: list[Any]) -> None:
                held = (layer.gamma, layer.beta, layer.running_mean, layer.running_var)
                for parameter, array in zip(held, arrays, strict=True):
                    parameter.set_data(mx.nd.array(array))

            made = normalisation(layer.gamma.shape[0], given["eps"], 1 - given["momentum"])
            observed.add(made, fill_statistics)
        else:
            axes = (2, 3, 1, 0) if len(layer.weight.shape) == 4 else (1, 0)
            kernel = [layer.weight.shape[axis] for axis in axes]
            places = int(np.prod(output.shape[2:]))

            def fill(arrays: list[Any]) -> None:
                layer.weight.set_data(mx.nd.array(arrays[0].transpose(np.argsort(axes))))
                if len(arrays) > 1:
                    layer.bias.set_data(mx.nd.array(arrays[1]))

            observed.add(product(kernel, places, layer.bias is not None), fill)

    def leaves(block: Any) -> list[Any]:
        if isinstance(block, (nn.Conv2D, nn.Dense, nn.Dropout, nn.BatchNorm)):
            return [block]
        return [leaf for child in block._children.values() for leaf in leaves(child)]

    x = mx.nd.array(images(size).transpose(0, 3, 1, 2))
    model.initialize(mx.init.Zero())
    hooks = [layer.register_forward_hook(seen) for layer in leaves(model)]
    model(x)
    for hook in hooks:
        hook.detach()
    held = model.collect_params().values()
    count = sum(int(np.prod(entry.shape)) for entry in held if entry.grad_req != "null")
    observed.fill(flattened(network))
    logits = model(x).asnumpy()[0].tolist()
    return {"parameters": count, "layers": observed.layers, "outputs": logits}


KERAS = {
    "resnet50": "ResNet50",
    "resnet101": "ResNet101",
    "resnet152": "ResNet152",
    "densenet121": "DenseNet121",
    "densenet169": "DenseNet169",
    "densenet201": "DenseNet201",
    "vgg16": "VGG16",
    "vgg19": "VGG19",
    "mobilenet_v2": "MobileNetV2",
    "inception_v3": "InceptionV3",
}


def keras(network: str, size: int) -> dict[str, Any]:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    import tensorflow as tf

    tf.keras.backend.clear_session()
    builder = getattr(tf.keras.applications, KERAS.get(network, ""), None)
    if builder is None:
        return {}
    model = builder(weights=None, input_shape=(size, size, 3), classifier_activation=None)
    observed, kinds = Observed(), tf.keras.layers
    for layer in model.layers:
        if isinstance(layer, kinds.Dropout):
            observed.add(dropout(layer.rate), lambda arrays: None)
        elif isinstance(layer, kinds.BatchNormalization):
            channels = int(layer.beta.shape[0])
            made = normalisation(channels, layer.epsilon, 1 - layer.momentum)
            if not layer.scale:
                made["shapes"], made["roles"] = made["shapes"][1:], made["roles"][1:]
            observed.add(made, layer.set_weights)
        elif isinstance(layer, (kinds.Conv2D, kinds.DepthwiseConv2D, kinds.Dense)):
            depthwise = isinstance(layer, kinds.DepthwiseConv2D)
            kernel = layer.kernel
            axes = (0, 1, 3, 2) if depthwise else tuple(range(len(kernel.shape)))
            places = int(np.prod([int(entry) for entry in layer.output.shape[1:-1]]))

            def fill(arrays: list[Any], layer: Any = layer, axes: Any = axes) -> None:
                layer.set_weights([arrays[0].transpose(axes), *arrays[1:]])

            shape = [kernel.shape[axis] for axis in axes]
            observed.add(product(shape, places, layer.use_bias), fill)
    count = sum(
        int(np.prod([int(n) for n in trainable_weight.shape]))
        for trainable_weight in model.trainable_weights
    )
    observed.fill()
    logits = model(images(size), training=False).numpy()[0].tolist()
    return {"parameters": count, "layers": observed.layers, "outputs": logits}


ZOOS = {"paddle": paddle, "mxnet": mxnet, "tensorflow": keras}

if __name__ == "__main__":
    framework, *networks = sys.argv[1:]
    every = {network: ZOOS[framework](network, size_of(framework, network)) for network in networks}
    print(json.dumps({network: entry for network, entry in every.items() if entry}))
