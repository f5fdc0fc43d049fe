"""DenseNet (Huang et al. 2016, arXiv:1608.06993)."""

from __future__ import annotations

from networks.initials import Initials, constant, he_normal_in
from networks.layers import IMAGES, Layers

#: Channels of the 1x1 in front of a 3x3, over the growth.
BOTTLENECK = 4


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
