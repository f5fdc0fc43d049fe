"""Layers of a network from its model config."""

from __future__ import annotations

from typing import Any, Callable, Dict, Mapping

from networks import inception, mobile, residual, vgg
from networks.layers import IMAGES, Layer, LayerGraph, Layers, SampleShape

#: Function that adds a family's layers and returns the name of the layer with the logits.
Family = Callable[[Layers], str]


def listed(add: Layers) -> str:
    """Add the layers that a model config lists. ``layers``: each a mapping with ``op`` (a method of
    :class:`Layers`), ``name`` and what the method takes; ``inputs``, a list of names, or else the
    layer before. The last one's output are the logits. ``head_begins``, on the last layer of an
    auxiliary head: the name of the head's first layer."""
    x, begins = IMAGES, {}
    for entry in add.hyper["layers"]:
        attributes = dict(entry)
        op, name = attributes.pop("op"), attributes.pop("name")
        inputs, head = attributes.pop("inputs", [x]), attributes.pop("head_begins", None)
        begins[name] = len(add)
        several = op in ("add", "concatenate")
        x = getattr(add, op)(inputs if several else inputs[0], name, **attributes)
        if head is not None:
            add.head(x, begins[head])
    return x


FAMILIES: Dict[str, Family] = {
    "alexnet": vgg.alexnet,
    "densenet": residual.densenet,
    "googlenet": inception.googlenet,
    "inception_v3": inception.inception_v3,
    "layers": listed,
    "mnasnet": mobile.mnasnet,
    "mobilenet_v2": mobile.mobilenet_v2,
    "resnet": residual.resnet,
    "shufflenet_v2": residual.shufflenet_v2,
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
    """Return the network with these hyper-parameters for images of a shape; see
    :func:`describe`."""
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
    per_value: int = rows * columns * layer.in_channels // layer.groups
    return layer.shape.height * layer.shape.width * layer.channels * per_value
