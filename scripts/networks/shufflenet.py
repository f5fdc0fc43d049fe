"""ShuffleNet V2 (Ma et al. 2018, arXiv:1807.11164)."""

from __future__ import annotations

from networks.layers import IMAGES, Layers


def shufflenet_v2(add: Layers) -> str:
    """Add a ShuffleNet v2; return the name of its last layer.

    ``blocks`` of each stage; ``channels`` of the stem, the stages and the
    last convolution."""
    stem, *stages, last = add.hyper["channels"]
    x = _active(add, IMAGES, "conv1", 0, stem, 3, 2)
    x = add.max_pool(x, "maxpool", 3, 2, 1)
    for stage, (depth, channels) in enumerate(zip(add.hyper["blocks"], stages), 2):
        for number in range(depth):
            x = _block(add, x, f"stage{stage}.{number}", channels, 1 if number else 2)
    x = add.global_average_pool(_active(add, x, "conv5", 0, last, 1), "avgpool")
    return add.linear(x, "fc", add.hyper["classes"])


def _block(add: Layers, x: str, name: str, channels: int, stride: int) -> str:
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
