"""Chains of convolutions: AlexNet (Krizhevsky 2014, arXiv:1404.5997), VGG (Simonyan and Zisserman
2014, arXiv:1409.1556), SqueezeNet (Iandola et al. 2016, arXiv:1602.07360)."""

from __future__ import annotations

from networks.initials import Initials, constant, he_normal_out, he_uniform_in, normal
from networks.layers import IMAGES, Layers

#: Entry for a max pool in the list of a VGG's and a SqueezeNet's layers.
POOL = "pool"


def alexnet(add: Layers) -> str:
    """Add AlexNet; return the name of its last layer.

    ``channels`` of the five convolutions; ``features`` of the two hidden linear
    layers."""
    x = IMAGES
    kernels = ((0, 11, 4, 2), (3, 5, 1, 2), (6, 3, 1, 1), (8, 3, 1, 1), (10, 3, 1, 1))
    for channels, (place, kernel, stride, padding) in zip(add.hyper["channels"], kernels):
        name = f"features.{place}"
        x = add.convolution(x, name, channels, kernel, stride, padding, bias=True)
        x = add.relu(x, f"features.{place + 1}")
        if place in (0, 3, 10):
            x = add.max_pool(x, f"features.{place + 2}", 3, 2)
    x = add.flatten(add.adaptive_average_pool(x, "avgpool", 6), "flatten")
    for place in (0, 3):
        x = add.dropout(x, f"classifier.{place}")
        x = add.linear(x, f"classifier.{place + 1}", add.hyper["features"])
        x = add.relu(x, f"classifier.{place + 2}")
    return add.linear(x, "classifier.6", add.hyper["classes"])


def vgg(add: Layers) -> str:
    """Add a VGG; return the name of its last layer.

    ``layers``: channels of each convolution, or POOL; ``batch_norm``: whether each convolution is
    followed by one; ``features`` of the two hidden linear layers."""
    hyper = add.hyper
    add.initials = Initials(he_normal_out, constant(0.0), normal(0.01), constant(0.0))
    x, number = IMAGES, 0
    for channels in hyper["layers"]:
        if channels == POOL:
            x = add.max_pool(x, f"features.{number}", 2, 2)
            number += 1
            continue
        x = add.convolution(x, f"features.{number}", channels, 3, bias=True)
        if hyper["batch_norm"]:
            number += 1
            x = add.batch_norm(x, f"features.{number}")
        x = add.relu(x, f"features.{number + 1}")
        number += 2
    x = add.flatten(add.adaptive_average_pool(x, "avgpool", 7), "flatten")
    for number in (0, 3):
        x = add.relu(
            add.linear(x, f"classifier.{number}", hyper["features"]), f"classifier.{number + 1}"
        )
        x = add.dropout(x, f"classifier.{number + 2}")
    return add.linear(x, "classifier.6", hyper["classes"])


def squeezenet(add: Layers) -> str:
    """Add a SqueezeNet; return the name of its last layer.

    ``layers``: channels and kernel of the stem, then POOL or the channels of a
    fire module (squeezed, expanded by a 1x1, expanded by a 3x3)."""
    add.initials = Initials(he_uniform_in, constant(0.0))
    (channels, kernel), *others = add.hyper["layers"]
    x = add.convolution(IMAGES, "features.0", channels, kernel, 2, padding=0, bias=True)
    x = add.relu(x, "features.1")
    for number, layer in enumerate(others, 2):
        name = f"features.{number}"
        if layer == POOL:
            x = add.max_pool(x, name, 3, 2, ceil=True)
            continue
        squeezed, *expanded = layer
        x = add.convolution(x, f"{name}.squeeze", squeezed, 1, bias=True)
        x = add.relu(x, f"{name}.squeeze_activation")
        branches = []
        for kernel, channels in zip((1, 3), expanded):
            part = f"{name}.expand{kernel}x{kernel}"
            y = add.convolution(x, part, channels, kernel, bias=True)
            branches.append(add.relu(y, f"{part}_activation"))
        x = add.concatenate(branches, f"{name}.concatenate")
    x = add.dropout(x, "classifier.0")
    x = add.convolution(x, "classifier.1", add.hyper["classes"], 1, bias=True, initial=normal(0.01))
    return add.global_average_pool(add.relu(x, "classifier.2"), "classifier.3")
