"""Inverted residuals: MobileNet V2 (Sandler et al. 2018, arXiv:1801.04381) and MnasNet (Tan et al.
2018, arXiv:1807.11626)."""

from __future__ import annotations

from networks.initials import Initials, constant, he_normal_out, lecun_uniform_out, normal
from networks.layers import IMAGES, Layers

DIVISOR = 8  # numbers of channels are multiples of this


def rounded(channels: float, most_lost: float = 0.1) -> int:
    """Round to the nearest multiple of DIVISOR, or to the next one where more than ``most_lost``
    of the channels would be lost."""
    near = max(DIVISOR, int(channels + DIVISOR / 2) // DIVISOR * DIVISOR)
    return near + DIVISOR if near < (1 - most_lost) * channels else near


def mobilenet_v2(add: Layers) -> str:
    """Add a MobileNetV2; return the name of its last layer.

    ``stages``: expansion, channels, blocks and stride of each; ``width``: a factor of all channels;
    ``channels`` of the stem and of the last convolution."""
    hyper = add.hyper
    add.initials = Initials(he_normal_out, linear=normal(0.01), linear_bias=constant(0.0))
    first, last = hyper["channels"]

    def layer(
        x: str, conv: str, norm: str, channels: int, kernel: int, stride: int = 1, groups: int = 1
    ) -> str:
        x = add.convolution(x, conv, channels, kernel, stride, groups=groups)
        return add.batch_norm(x, norm)

    def block(x: str, name: str, expansion: int, channels: int, stride: int) -> str:
        start, inner = x, add.shape(x).channels * expansion
        part = 0
        if expansion != 1:
            x = layer(x, f"{name}.0.0", f"{name}.0.1", inner, 1)
            x, part = add.relu6(x, f"{name}.0.2"), 1
        x = layer(x, f"{name}.{part}.0", f"{name}.{part}.1", inner, 3, stride, inner)
        x = add.relu6(x, f"{name}.{part}.2")
        x = layer(x, f"{name}.{part + 1}", f"{name}.{part + 2}", channels, 1)
        if stride == 1 and add.shape(start).channels == channels:
            x = add.add([start, x], f"{name}.add")
        return x

    x = layer(IMAGES, "features.0.0", "features.0.1", rounded(first * hyper["width"]), 3, 2)
    x = add.relu6(x, "features.0.2")
    place = 1
    for expansion, channels, depth, stride in hyper["stages"]:
        for number in range(depth):
            wide = rounded(channels * hyper["width"])
            x = block(x, f"features.{place}.conv", expansion, wide, 1 if number else stride)
            place += 1
    name = f"features.{place}"
    x = layer(x, f"{name}.0", f"{name}.1", rounded(last * max(1.0, hyper["width"])), 1)
    x = add.global_average_pool(add.relu6(x, f"{name}.2"), "avgpool")
    return add.linear(add.dropout(x, "classifier.0"), "classifier.1", hyper["classes"])


def mnasnet(add: Layers) -> str:
    """Add an MNASNet; return the name of its last layer.

    ``stages``: kernel, stride, expansion, blocks and channels of each; ``channels``: two of the
    stem, and that of the last convolution; ``width``: a factor of all channels but the last
    convolution's."""
    hyper = add.hyper
    add.initials = Initials(he_normal_out, linear=lecun_uniform_out, linear_bias=constant(0.0))
    stem, separated, last = hyper["channels"]

    def scaled(channels: int) -> int:
        return rounded(channels * hyper["width"])

    def layer(
        x: str, name: str, number: int, channels: int, kernel: int, stride: int = 1, groups: int = 1
    ) -> str:
        x = add.convolution(x, f"{name}.{number}", channels, kernel, stride, groups=groups)
        return add.batch_norm(x, f"{name}.{number + 1}")

    def block(x: str, name: str, kernel: int, stride: int, expansion: int, channels: int) -> str:
        start, inner = x, add.shape(x).channels * expansion
        x = add.relu(layer(x, name, 0, inner, 1), f"{name}.2")
        x = add.relu(layer(x, name, 3, inner, kernel, stride, inner), f"{name}.5")
        x = layer(x, name, 6, channels, 1)
        if stride == 1 and add.shape(start).channels == channels:
            x = add.add([x, start], f"{name}.add")
        return x

    x = add.relu(layer(IMAGES, "layers", 0, scaled(stem), 3, 2), "layers.2")
    x = add.relu(layer(x, "layers", 3, scaled(stem), 3, groups=scaled(stem)), "layers.5")
    x = layer(x, "layers", 6, scaled(separated), 1)
    place = 8
    for kernel, stride, expansion, depth, channels in hyper["stages"]:
        for number in range(depth):
            name = f"layers.{place}.{number}.layers"
            x = block(x, name, kernel, 1 if number else stride, expansion, scaled(channels))
        place += 1
    x = add.relu(layer(x, "layers", place, last, 1), f"layers.{place + 2}")
    x = add.dropout(add.global_average_pool(x, "avgpool"), "classifier.0")
    return add.linear(x, "classifier.1", hyper["classes"])
