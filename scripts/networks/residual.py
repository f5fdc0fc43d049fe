"""Networks of residual, dense and shuffled blocks: ResNet (He et al. 2015, arXiv:1512.03385), its
bottlenecks with the stride in the 3x3 (v1.5), ResNeXt (Xie et al. 2016, arXiv:1611.05431) and Wide
ResNet (Zagoruyko and Komodakis 2016, arXiv:1605.07146); DenseNet (Huang et al. 2016,
arXiv:1608.06993); ShuffleNet V2 (Ma et al. 2018, arXiv:1807.11164). Networks of inverted residuals:
MobileNet V2 (Sandler et al. 2018, arXiv:1801.04381), MnasNet (Tan et al. 2018,
arXiv:1807.11626)."""

from __future__ import annotations

from networks.layers import (
    IMAGES,
    Initials,
    Layers,
    constant,
    he_normal_in,
    he_normal_out,
    lecun_uniform_out,
    normal,
)

#: Output channels of a block, relative to the width of its stage.
EXPANSION = {"basic": 1, "bottleneck": 4}
#: Channels of the 1x1 before a 3x3 of a DenseNet, relative to the growth.
BOTTLENECK = 4
#: Numbers of channels of inverted residuals are multiples of this.
DIVISOR = 8


def resnet(add: Layers) -> str:
    """Add a ResNet. ``block``: a key of EXPANSION; ``blocks`` of each stage; ``width`` of the first
    stage; ``groups`` of a bottleneck's 3x3, and its ``width_per_group`` in a stage of width 64."""
    hyper = add.hyper
    add.initials = Initials(convolution=he_normal_out)
    width, expansion = hyper["width"], EXPANSION[hyper["block"]]
    block = _bottleneck if expansion > 1 else _basic
    x = add.convolution(IMAGES, "conv1", width, 7, 2)
    x = add.max_pool(add.relu(add.batch_norm(x, "bn1"), "relu"), "maxpool", 3, 2, 1)
    for stage, depth in enumerate(hyper["blocks"]):
        channels = width * 2**stage
        for number in range(depth):
            name = f"layer{stage + 1}.{number}"
            stride = 2 if stage > 0 and number == 0 else 1
            y = block(add, x, name, channels, stride)
            if stride > 1 or add.shape(x).channels != channels * expansion:
                x = add.convolution(x, f"{name}.downsample.0", channels * expansion, 1, stride)
                x = add.batch_norm(x, f"{name}.downsample.1")
            x = add.relu(add.add([y, x], f"{name}.add"), f"{name}.relu")
    return add.linear(add.global_average_pool(x, "avgpool"), "fc", hyper["classes"])


def _basic(add: Layers, x: str, name: str, channels: int, stride: int) -> str:
    x = add.convolution(x, f"{name}.conv1", channels, 3, stride)
    x = add.relu(add.batch_norm(x, f"{name}.bn1"), f"{name}.relu1")
    return add.batch_norm(add.convolution(x, f"{name}.conv2", channels, 3), f"{name}.bn2")


def _bottleneck(add: Layers, x: str, name: str, channels: int, stride: int) -> str:
    groups = add.hyper["groups"]
    width = channels * add.hyper["width_per_group"] // 64 * groups
    x = add.convolution(x, f"{name}.conv1", width, 1)
    x = add.relu(add.batch_norm(x, f"{name}.bn1"), f"{name}.relu1")
    x = add.convolution(x, f"{name}.conv2", width, 3, stride, groups=groups)
    x = add.relu(add.batch_norm(x, f"{name}.bn2"), f"{name}.relu2")
    x = add.convolution(x, f"{name}.conv3", channels * EXPANSION["bottleneck"], 1)
    return add.batch_norm(x, f"{name}.bn3")


def densenet(add: Layers) -> str:
    """Add a DenseNet. ``growth``: channels that a layer adds; ``blocks``: number of layers of each
    block; ``width``: channels of the stem."""
    hyper = add.hyper
    add.initials = Initials(convolution=he_normal_in, linear_bias=constant(0.0))
    x = add.convolution(IMAGES, "features.conv0", hyper["width"], 7, 2)
    x = add.relu(add.batch_norm(x, "features.norm0"), "features.relu0")
    x = add.max_pool(x, "features.pool0", 3, 2, 1)
    for block, depth in enumerate(hyper["blocks"], 1):
        if block > 1:
            x = _transition(add, x, f"features.transition{block - 1}")
        features = [x]
        for number in range(1, depth + 1):
            name = f"features.denseblock{block}.denselayer{number}"
            x = add.concatenate(features, f"{name}.concatenate")
            x = add.relu(add.batch_norm(x, f"{name}.norm1"), f"{name}.relu1")
            x = add.convolution(x, f"{name}.conv1", BOTTLENECK * hyper["growth"], 1)
            x = add.relu(add.batch_norm(x, f"{name}.norm2"), f"{name}.relu2")
            features.append(add.convolution(x, f"{name}.conv2", hyper["growth"], 3))
        x = add.concatenate(features, f"features.denseblock{block}.concatenate")
    x = add.relu(add.batch_norm(x, "features.norm5"), "relu")
    return add.linear(add.global_average_pool(x, "avgpool"), "classifier", hyper["classes"])


def _transition(add: Layers, x: str, name: str) -> str:
    x = add.relu(add.batch_norm(x, f"{name}.norm"), f"{name}.relu")
    x = add.convolution(x, f"{name}.conv", add.shape(x).channels // 2, 1)
    return add.average_pool(x, f"{name}.pool", 2, 2)


def shufflenet_v2(add: Layers) -> str:
    """Add a ShuffleNet v2. ``blocks`` of each stage; ``channels`` of the stem, the stages and the
    last convolution."""
    stem, *stages, last = add.hyper["channels"]
    x = _active(add, IMAGES, "conv1", 0, stem, 3, 2)
    x = add.max_pool(x, "maxpool", 3, 2, 1)
    for stage, (depth, channels) in enumerate(zip(add.hyper["blocks"], stages), 2):
        for number in range(depth):
            x = _shuffled(add, x, f"stage{stage}.{number}", channels, 1 if number else 2)
    x = add.global_average_pool(_active(add, x, "conv5", 0, last, 1), "avgpool")
    return add.linear(x, "fc", add.hyper["classes"])


def _shuffled(add: Layers, x: str, name: str, channels: int, stride: int) -> str:
    half = channels // 2
    if stride == 1:
        left = add.channels(x, f"{name}.left", 0, half)
        right = add.channels(x, f"{name}.right", half, channels)
    else:
        left = _depthwise(add, x, f"{name}.branch1", 0, stride)
        left = _active(add, left, f"{name}.branch1", 2, half, 1)
        right = x
    right = _active(add, right, f"{name}.branch2", 0, half, 1)
    right = _depthwise(add, right, f"{name}.branch2", 3, stride)
    right = _active(add, right, f"{name}.branch2", 5, half, 1)
    x = add.concatenate([left, right], f"{name}.concatenate")
    return add.shuffle(x, f"{name}.shuffle", 2)


def _active(
    add: Layers, x: str, name: str, number: int, channels: int, kernel: int, stride: int = 1
) -> str:
    x = add.convolution(x, f"{name}.{number}", channels, kernel, stride)
    x = add.batch_norm(x, f"{name}.{number + 1}")
    return add.relu(x, f"{name}.{number + 2}")


def _depthwise(add: Layers, x: str, name: str, number: int, stride: int) -> str:
    channels = add.shape(x).channels
    x = add.convolution(x, f"{name}.{number}", channels, 3, stride, groups=channels)
    return add.batch_norm(x, f"{name}.{number + 1}")


def rounded(channels: float, most_lost: float = 0.1) -> int:
    """Round to the nearest multiple of DIVISOR, or to the next one where more than ``most_lost``
    of the channels would be lost."""
    near = max(DIVISOR, int(channels + DIVISOR / 2) // DIVISOR * DIVISOR)
    return near + DIVISOR if near < (1 - most_lost) * channels else near


def mobilenet_v2(add: Layers) -> str:
    """Add a MobileNetV2. ``stages``: expansion, channels, blocks and stride of each; ``width``: a
    factor of all channels; ``channels`` of the stem and of the last convolution."""
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
    """Add an MNASNet. ``stages``: kernel, stride, expansion, blocks and channels of each;
    ``channels`` of the stem, of its separable convolution and of the last convolution; ``width``: a
    factor of all channels but the last convolution's."""
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
