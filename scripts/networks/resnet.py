"""ResNet (He et al. 2015, arXiv:1512.03385), its bottlenecks with the stride in the 3x3 (v1.5),
ResNeXt (Xie et al. 2016, arXiv:1611.05431) and Wide ResNet (Zagoruyko and Komodakis 2016,
arXiv:1605.07146)."""

from __future__ import annotations

from networks.initials import Initials, he_normal_out
from networks.layers import IMAGES, Layers

#: Channels that a block puts out, over the width of its stage.
EXPANSION = {"basic": 1, "bottleneck": 4}


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
