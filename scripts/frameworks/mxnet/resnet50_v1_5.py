"""ResNet-50 v1.5 (He et al. 2015, arXiv:1512.03385; the stride-2 of a stage in its first 3x3
convolution, as in Goyal et al. 2017, arXiv:1706.02677).

Gluon's own ``resnet50_v1`` is v1, with biases in some convolutions: another network.
"""

from __future__ import annotations

from typing import Any, Dict, Sequence, Tuple

import mxnet as mx
import numpy as np
from mxnet.gluon import nn

LAYOUT = "NCHW"  # the only layout of convolutions on the CPU; oneDNN reorders it by itself
PRODUCTS = ("Convolution", "FullyConnected")
Stages = Sequence[Tuple[int, int]]

EXPANSION = 4  # channels a block puts out, over its width


def convolution(channels_in: int, channels_out: int, kernel: int, stride: int = 1) -> nn.Conv2D:
    # no bias: the batch normalisation behind it has one
    return nn.Conv2D(
        channels_out,
        kernel,
        strides=stride,
        padding=kernel // 2,
        use_bias=False,
        in_channels=channels_in,
        weight_initializer=mx.init.Xavier("gaussian", "out", magnitude=2),  # He et al. 2015
    )


def relu(F: Any, x: Any) -> Any:
    # by oneDNN in every dtype, unlike F.relu, which bfloat16 makes several times slower
    return F.Activation(x, act_type="relu")


class Projection(nn.HybridBlock):
    """The shortcut of a block that changes the shape."""

    def __init__(
        self, channels_in: int, channels_out: int, stride: int, norm: Dict[str, float]
    ) -> None:
        super().__init__()
        self.conv = convolution(channels_in, channels_out, 1, stride)
        self.norm = nn.BatchNorm(in_channels=channels_out, **norm)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return self.norm(self.conv(x))


class Bottleneck(nn.HybridBlock):
    """1x1, 3x3, 1x1; (batch, channels_in, h, w) -> (batch, 4 width, h / stride, w / stride)."""

    def __init__(self, channels_in: int, width: int, stride: int, norm: Dict[str, float]) -> None:
        super().__init__()
        channels_out = width * EXPANSION
        self.conv1 = convolution(channels_in, width, 1)
        self.norm1 = nn.BatchNorm(in_channels=width, **norm)
        self.conv2 = convolution(width, width, 3, stride)
        self.norm2 = nn.BatchNorm(in_channels=width, **norm)
        self.conv3 = convolution(width, channels_out, 1)
        self.norm3 = nn.BatchNorm(in_channels=channels_out, **norm)
        self.shortcut = None
        if channels_in != channels_out:
            self.shortcut = Projection(channels_in, channels_out, stride, norm)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        y = relu(F, self.norm1(self.conv1(x)))
        y = relu(F, self.norm2(self.conv2(y)))
        y = self.norm3(self.conv3(y))
        # by oneDNN, unlike +, which broadcasts
        return relu(F, F.elemwise_add(y, self.shortcut(x) if self.shortcut else x))


class ResNet50(nn.HybridBlock):
    """Images (batch, 3, h, w) -> logits (batch, classes). ``stages``: the width of the 3x3
    convolutions and the number of blocks of each."""

    def __init__(self, stages: Stages, classes: int, norm: Dict[str, float]) -> None:
        super().__init__()
        channels = stages[0][0]
        self.conv = convolution(3, channels, 7, stride=2)
        self.norm = nn.BatchNorm(in_channels=channels, **norm)
        self.pool = nn.MaxPool2D(3, strides=2, padding=1)
        self.blocks = nn.HybridSequential()
        for stage, (width, depth) in enumerate(stages):
            for block in range(depth):
                stride = 2 if stage > 0 and block == 0 else 1
                self.blocks.add(Bottleneck(channels, width, stride, norm))
                channels = width * EXPANSION
        self.mean = nn.GlobalAvgPool2D()
        # uniform in +-1/sqrt(inputs), as in torchvision
        uniform = mx.init.Xavier("uniform", "in", magnitude=1)
        self.classifier = nn.Dense(classes, in_units=channels, weight_initializer=uniform)

    def hybrid_forward(self, F: Any, images: Any) -> Any:
        x = self.pool(relu(F, self.norm(self.conv(images))))
        return self.classifier(self.mean(self.blocks(x)))


def build(facts: Dict[str, Any]) -> nn.HybridBlock:
    hyper = facts["hyperparameters"]
    # MXNet's momentum is the share of the old statistics, PyTorch's that of the new ones
    norm = {
        "epsilon": hyper["batch_norm_epsilon"],
        "momentum": 1.0 - hyper["batch_norm_momentum"],
    }
    return ResNet50(hyper["stages"], hyper["classes"], norm)


def inputs(batch: Dict[str, Any]) -> Tuple[Any, ...]:
    """Numpy arrays of the batch -> those that the model takes."""
    return (np.ascontiguousarray(batch["images"].transpose(0, 3, 1, 2)),)


def labels(batch: Dict[str, Any]) -> Tuple[Any, ...]:
    """Numpy arrays of the batch -> those that :func:`loss` takes."""
    labels = batch["labels"]  # classes, or probabilities of all of them
    return (labels if labels.ndim > 1 else labels.astype(np.int32),)


def loss(outputs: Tuple[Any, ...], labels: Tuple[Any, ...], facts: Dict[str, Any]) -> Any:
    """Mean cross entropy over the batch."""
    entropy = mx.gluon.loss.SoftmaxCrossEntropyLoss(sparse_label=labels[0].ndim == 1)
    return entropy(outputs[0].astype("float32"), labels[0]).mean()
