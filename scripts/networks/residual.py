"""Networks of residual, dense and shuffled blocks: ResNet (He et al. 2015, arXiv:1512.03385), its
bottlenecks with the stride in the 3x3 (v1.5), ResNeXt (Xie et al. 2016, arXiv:1611.05431) and Wide
ResNet (Zagoruyko and Komodakis 2016, arXiv:1605.07146); DenseNet (Huang et al. 2016,
arXiv:1608.06993); ShuffleNet V2 (Ma et al. 2018, arXiv:1807.11164)."""

from __future__ import annotations

from networks.initials import Initials, constant, he_normal_in, he_normal_out
from networks.layers import IMAGES, Layers

#: Output channels of a block, relative to the width of its stage.
EXPANSION = {"basic": 1, "bottleneck": 4}
#: Channels of the 1x1 before a 3x3 of a DenseNet, relative to the growth.
BOTTLENECK = 4


def resnet(add: Layers) -> str:
    """Add a ResNet; return the name of its last layer.

    ``block``: a key of EXPANSION; ``blocks`` of each stage; ``width`` of the first
    stage; ``groups`` of the 3x3 of a bottleneck and ``width_per_group`` of it, where the width is
    64."""
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
    """Add a DenseNet; return the name of its last layer.

    ``growth``: channels that a layer adds; ``blocks``: layers of each; ``width`` of the stem."""
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
    """Add a ShuffleNet v2; return the name of its last layer.

    ``blocks`` of each stage; ``channels`` of the stem, the stages and the
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
