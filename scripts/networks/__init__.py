"""Models as data. A model config describes a convolutional network by a family and
hyper-parameters. From these, :func:`describe` makes a list of layers with their shapes, and
:func:`weights` their arrays. An interpreter in each framework's ``cnn.py`` runs the list.
:mod:`networks.transformers` has the arrays of transformers and the LSTM, and :func:`loss_parts` the
cross-entropies that all models but ELECTRA learn by.

Standard library; Python 3.7 to 3.13.
"""

from __future__ import annotations

import functools
import operator
from typing import Any, Callable, Dict, List, Mapping, Sequence

from networks import plain, residual
from networks.layers import (
    IMAGES,
    Initial,
    Layer,
    LayerGraph,
    Layers,
    SampleShape,
    Weight,
    initialize,
    weights,
)

#: Function of logits (.., classes) and labels, which are class indices (..) or, for images, also
#: probabilities (batch, classes). Returns the mean cross-entropy, or a vector of all
#: cross-entropies.
CrossEntropy = Callable[[Any, Any], Any]
#: Function that adds a family's layers and returns the name of the layer with the logits.
Family = Callable[[Layers], str]


def listed(add: Layers) -> str:
    """Add the layers that a model config lists. The last of ``layers`` returns the logits. Each is
    a mapping with ``op`` (a method of :class:`Layers`), ``name``, arguments of the method, and
    optionally ``inputs`` (names; by default the layer before it) and ``head_begins`` (on the last
    layer of an auxiliary head: the name of the head's first layer)."""
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
    "alexnet": plain.alexnet,
    "densenet": residual.densenet,
    "googlenet": plain.googlenet,
    "inception_v3": plain.inception_v3,
    "layers": listed,
    "mnasnet": residual.mnasnet,
    "mobilenet_v2": residual.mobilenet_v2,
    "resnet": residual.resnet,
    "shufflenet_v2": residual.shufflenet_v2,
    "squeezenet": plain.squeezenet,
    "vgg": plain.vgg,
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
    total = 0
    for layer in network.layers:
        is_computed = training or layer.name not in network.auxiliary
        if is_computed and layer.op in ("convolution", "linear"):
            rows, columns = layer.kernel or (1, 1)
            per_value = rows * columns * layer.in_channels // layer.groups
            total += layer.shape.height * layer.shape.width * layer.channels * per_value
    return total


def loss_parts(
    outputs: Sequence[Any],
    batch: Mapping[str, Any],
    hyper: Mapping[str, Any],
    cross_entropy: CrossEntropy,
    swap: Callable[[Any], Any],
) -> List[Any]:
    """Return the terms of a model's loss. ``swap`` exchanges the last two of three axes."""
    if "spans" in batch:  # begin and end are classified over the tokens
        return [cross_entropy(swap(outputs[0]), batch["spans"])]
    if "masked_labels" in batch:
        tokens, next_sentence = outputs
        masked = cross_entropy(tokens, batch["masked_labels"])
        return [masked, cross_entropy(next_sentence, batch["next_sentence_labels"])]
    (logits, *heads), labels = outputs, batch["labels"]
    if "tied" in hyper and "classes" in hyper:  # a decoder classifies by the last token
        logits = logits[:, -1]
    parts = [cross_entropy(logits, labels)]
    return parts + [hyper["auxiliary_weight"] * cross_entropy(head, labels) for head in heads]


def total_loss(*arguments: Any) -> Any:
    """Return the sum of :func:`loss_parts`."""
    return functools.reduce(operator.add, loss_parts(*arguments))
