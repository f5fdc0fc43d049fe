"""Layers of a network from its model config."""

from __future__ import annotations

from typing import Any, Callable, Dict, Mapping

from networks import densenet, inception, listed, mobile, resnet, shufflenet, vgg
from networks.layers import Layer, LayerGraph, Layers, SampleShape

#: Function that adds a family's layers and returns the name of the layer with the logits.
Family = Callable[[Layers], str]

FAMILIES: Dict[str, Family] = {
    "alexnet": vgg.alexnet,
    "densenet": densenet.densenet,
    "googlenet": inception.googlenet,
    "inception_v3": inception.inception_v3,
    "layers": listed.listed,
    "mnasnet": mobile.mnasnet,
    "mobilenet_v2": mobile.mobilenet_v2,
    "resnet": resnet.resnet,
    "shufflenet_v2": shufflenet.shufflenet_v2,
    "squeezenet": vgg.squeezenet,
    "vgg": vgg.vgg,
}


def describe(model_config: Mapping[str, Any]) -> LayerGraph:
    """Return the network of the model config, for images of the size of its inputs. Raises KeyError
    for a hyperparameter that the family needs and the model config lacks, ValueError for images
    that are too small."""
    (shape,) = (item["shape"] for item in model_config["inputs"] if item["name"] == "images")
    return describe_images(model_config["hyperparameters"], SampleShape(*shape[1:]))


def describe_images(hyper: Mapping[str, Any], images: SampleShape) -> LayerGraph:
    """Return the network of hyper-parameters and the shape of an image, see :func:`describe`."""
    layers = Layers(hyper, images)
    return layers.network(FAMILIES[hyper["family"]](layers))


def forward_multiply_adds(network: LayerGraph, training: bool) -> int:
    """Return the multiply-adds of the convolutions and linear layers of one image."""
    return sum(
        _multiply_adds(layer)
        for layer in network.layers
        if training or layer.name not in network.auxiliary
    )


def _multiply_adds(layer: Layer) -> int:
    if layer.op == "linear":
        return layer.in_channels * layer.channels
    if layer.op != "convolution":
        return 0
    rows, columns = layer.kernel
    matmuls: int = rows * columns * layer.in_channels // layer.groups  # that go into one value
    return layer.shape.height * layer.shape.width * layer.channels * matmuls
