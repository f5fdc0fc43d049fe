"""Networks without shortcuts: AlexNet (Krizhevsky 2014, arXiv:1404.5997), VGG (Simonyan and
Zisserman 2014, arXiv:1409.1556), SqueezeNet (Iandola et al. 2016, arXiv:1602.07360), GoogLeNet
(Szegedy et al. 2014, arXiv:1409.4842), whose "5x5" is a 3x3 as in torchvision, and Inception V3
(Szegedy et al. 2015, arXiv:1512.00567). ``width`` scales all channels of the last two."""

from __future__ import annotations

from typing import Any, Sequence

from networks.layers import IMAGES, Initials, Layers, constant, he_normal_out, he_uniform_in, normal

#: Entry for a max pool in the list of a VGG's and a SqueezeNet's layers.
POOL = "pool"
#: Channels of GoogLeNet's blocks: the 1x1, the reduction before the 3x3, the 3x3, the reduction
#: before the "5x5", the "5x5", and the projection after the pool.
GOOGLENET = {
    "inception3a": (64, 96, 128, 16, 32, 32),
    "inception3b": (128, 128, 192, 32, 96, 64),
    "maxpool3": (3,),
    "inception4a": (192, 96, 208, 16, 48, 64),
    "inception4b": (160, 112, 224, 24, 64, 64),
    "inception4c": (128, 128, 256, 24, 64, 64),
    "inception4d": (112, 144, 288, 32, 64, 64),
    "inception4e": (256, 160, 320, 32, 128, 128),
    "maxpool4": (2,),
    "inception5a": (256, 160, 320, 32, 128, 128),
    "inception5b": (384, 192, 384, 48, 128, 128),
}
#: Blocks that are followed by an auxiliary head, with the name of the head.
GOOGLENET_HEADS = {"inception4a": "aux1", "inception4d": "aux2"}


def alexnet(add: Layers) -> str:
    """Add AlexNet. ``channels`` of the five convolutions; ``features`` of the two hidden linear
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
    """Add a VGG. ``layers``: channels of each convolution, or POOL; ``batch_norm``: whether each
    convolution is followed by one; ``features`` of the two hidden linear layers."""
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
        x = add.linear(x, f"classifier.{number}", hyper["features"])
        x = add.relu(x, f"classifier.{number + 1}")
        x = add.dropout(x, f"classifier.{number + 2}")
    return add.linear(x, "classifier.6", hyper["classes"])


def squeezenet(add: Layers) -> str:
    """Add a SqueezeNet. ``layers``: channels and kernel of the stem, then POOL or the channels of a
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


def _layer(add: Layers, x: str, name: str, channels: int, *window: Any) -> str:
    """Add a convolution (``window``: kernel, stride, padding), batch normalisation and ReLU."""
    x = add.convolution(x, f"{name}.conv", _wide(add, channels), *window)
    return add.relu(add.batch_norm(x, f"{name}.bn"), f"{name}.relu")


def _wide(add: Layers, channels: int) -> int:
    return max(1, int(channels * add.hyper["width"] + 0.5))


def googlenet(add: Layers) -> str:
    hyper = add.hyper
    add.initials = Initials(convolution=normal(0.01), linear=normal(0.01))
    x = _layer(add, IMAGES, "conv1", 64, 7, 2)
    x = add.max_pool(x, "maxpool1", 3, 2, ceil=True)
    x = _layer(add, _layer(add, x, "conv2", 64, 1), "conv3", 192, 3)
    x = add.max_pool(x, "maxpool2", 3, 2, ceil=True)
    for name, numbers in GOOGLENET.items():
        if name.startswith("maxpool"):
            x = add.max_pool(x, name, numbers[0], 2, ceil=True)
            continue
        x = _googlenet_block(add, x, name, numbers)
        if name in GOOGLENET_HEADS:
            _googlenet_head(add, x, GOOGLENET_HEADS[name])
    x = add.dropout(add.global_average_pool(x, "avgpool"), "dropout")
    return add.linear(x, "fc", hyper["classes"])


def _googlenet_block(add: Layers, x: str, name: str, numbers: Sequence[int]) -> str:
    width1, reduced3, width3, reduced5, width5, pooled = numbers
    pool = add.max_pool(x, f"{name}.branch4.0", 3, 1, 1, ceil=True)
    one = _layer(add, x, f"{name}.branch1", width1, 1)
    three = _layer(add, x, f"{name}.branch2.0", reduced3, 1)
    three = _layer(add, three, f"{name}.branch2.1", width3, 3)
    five = _layer(add, x, f"{name}.branch3.0", reduced5, 1)
    five = _layer(add, five, f"{name}.branch3.1", width5, 3)
    branches = [one, three, five, _layer(add, pool, f"{name}.branch4.1", pooled, 1)]
    return add.concatenate(branches, f"{name}.concatenate")


def _googlenet_head(add: Layers, x: str, name: str) -> None:
    first = len(add)
    x = add.adaptive_average_pool(x, f"{name}.pool", 4)
    x = add.flatten(_layer(add, x, f"{name}.conv", 128, 1), f"{name}.flatten")
    x = add.relu(add.linear(x, f"{name}.fc1", _wide(add, 1024)), f"{name}.relu")
    x = add.dropout(x, f"{name}.dropout", "auxiliary_dropout")
    x = add.linear(x, f"{name}.fc2", add.hyper["classes"])
    add.head(x, first)


def inception_v3(add: Layers) -> str:
    add.initials = Initials(convolution=normal(0.1), linear=normal(0.1))
    x = _layer(add, IMAGES, "Conv2d_1a_3x3", 32, 3, 2, 0)
    x = _layer(add, x, "Conv2d_2a_3x3", 32, 3, 1, 0)
    x = _layer(add, x, "Conv2d_2b_3x3", 64, 3)
    x = add.max_pool(x, "maxpool1", 3, 2)
    x = _layer(add, x, "Conv2d_3b_1x1", 80, 1)
    x = _layer(add, x, "Conv2d_4a_3x3", 192, 3, 1, 0)
    x = add.max_pool(x, "maxpool2", 3, 2)
    for name, pooled in (("Mixed_5b", 32), ("Mixed_5c", 64), ("Mixed_5d", 64)):
        x = _inception_a(add, x, name, pooled)
    x = _inception_b(add, x, "Mixed_6a")
    for name, inner in (("Mixed_6b", 128), ("Mixed_6c", 160), ("Mixed_6d", 160), ("Mixed_6e", 192)):
        x = _inception_c(add, x, name, inner)
    _inception_head(add, x, "AuxLogits")
    x = _inception_d(add, x, "Mixed_7a")
    x = _inception_e(add, _inception_e(add, x, "Mixed_7b"), "Mixed_7c")
    x = add.dropout(add.global_average_pool(x, "avgpool"), "dropout")
    return add.linear(x, "fc", add.hyper["classes"])


def _inception_head(add: Layers, x: str, name: str) -> None:
    first = len(add)
    x = add.average_pool(x, f"{name}.pool", 5, 3)
    x = _layer(add, x, f"{name}.conv0", 128, 1)
    # torchvision sets a deviation of 0.01 on the surrounding module, which nothing reads
    x = _layer(add, x, f"{name}.conv1", 768, 5, 1, 0)
    x = add.global_average_pool(x, f"{name}.avgpool")
    x = add.linear(x, f"{name}.fc", add.hyper["classes"], normal(0.001))
    add.head(x, first)


def _pooled(add: Layers, x: str, name: str, channels: int) -> str:
    pool = add.average_pool(x, f"{name}.pool", 3, 1, 1)
    return _layer(add, pool, f"{name}.branch_pool", channels, 1)


def _inception_a(add: Layers, x: str, name: str, pooled: int) -> str:
    five = _layer(add, x, f"{name}.branch5x5_1", 48, 1)
    twice = _layer(add, x, f"{name}.branch3x3dbl_1", 64, 1)
    twice = _layer(add, twice, f"{name}.branch3x3dbl_2", 96, 3)
    branches = [
        _layer(add, x, f"{name}.branch1x1", 64, 1),
        _layer(add, five, f"{name}.branch5x5_2", 64, 5),
        _layer(add, twice, f"{name}.branch3x3dbl_3", 96, 3),
        _pooled(add, x, name, pooled),
    ]
    return add.concatenate(branches, f"{name}.concatenate")


def _inception_b(add: Layers, x: str, name: str) -> str:
    twice = _layer(add, x, f"{name}.branch3x3dbl_1", 64, 1)
    twice = _layer(add, twice, f"{name}.branch3x3dbl_2", 96, 3)
    branches = [
        _layer(add, x, f"{name}.branch3x3", 384, 3, 2, 0),
        _layer(add, twice, f"{name}.branch3x3dbl_3", 96, 3, 2, 0),
        add.max_pool(x, f"{name}.pool", 3, 2),
    ]
    return add.concatenate(branches, f"{name}.concatenate")


def _inception_c(add: Layers, x: str, name: str, inner: int) -> str:
    rows, columns = (7, 1), (1, 7)
    seven = _layer(add, x, f"{name}.branch7x7_1", inner, 1)
    seven = _layer(add, seven, f"{name}.branch7x7_2", inner, columns)
    twice = _layer(add, x, f"{name}.branch7x7dbl_1", inner, 1)
    for number, kernel in ((2, rows), (3, columns), (4, rows)):
        twice = _layer(add, twice, f"{name}.branch7x7dbl_{number}", inner, kernel)
    branches = [
        _layer(add, x, f"{name}.branch1x1", 192, 1),
        _layer(add, seven, f"{name}.branch7x7_3", 192, rows),
        _layer(add, twice, f"{name}.branch7x7dbl_5", 192, columns),
        _pooled(add, x, name, 192),
    ]
    return add.concatenate(branches, f"{name}.concatenate")


def _inception_d(add: Layers, x: str, name: str) -> str:
    three = _layer(add, x, f"{name}.branch3x3_1", 192, 1)
    seven = _layer(add, x, f"{name}.branch7x7x3_1", 192, 1)
    seven = _layer(add, seven, f"{name}.branch7x7x3_2", 192, (1, 7))
    seven = _layer(add, seven, f"{name}.branch7x7x3_3", 192, (7, 1))
    branches = [
        _layer(add, three, f"{name}.branch3x3_2", 320, 3, 2, 0),
        _layer(add, seven, f"{name}.branch7x7x3_4", 192, 3, 2, 0),
        add.max_pool(x, f"{name}.pool", 3, 2),
    ]
    return add.concatenate(branches, f"{name}.concatenate")


def _inception_e(add: Layers, x: str, name: str) -> str:
    three = _layer(add, x, f"{name}.branch3x3_1", 384, 1)
    twice = _layer(add, x, f"{name}.branch3x3dbl_1", 448, 1)
    twice = _layer(add, twice, f"{name}.branch3x3dbl_2", 384, 3)
    branches = [
        _layer(add, x, f"{name}.branch1x1", 320, 1),
        _split(add, three, name, "branch3x3_2"),
        _split(add, twice, name, "branch3x3dbl_3"),
        _pooled(add, x, name, 192),
    ]
    return add.concatenate(branches, f"{name}.concatenate")


def _split(add: Layers, x: str, name: str, branch: str) -> str:
    """Add a 1x3 and a 3x1 convolution in parallel; return the name of their concatenation."""
    halves = [
        _layer(add, x, f"{name}.{branch}a", 384, (1, 3)),
        _layer(add, x, f"{name}.{branch}b", 384, (3, 1)),
    ]
    return add.concatenate(halves, f"{name}.{branch}")
