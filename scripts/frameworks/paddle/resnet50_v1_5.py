"""ResNet-50 v1.5 (He et al. 2015, arXiv:1512.03385; the stride-2 of a stage in its first 3x3
convolution, as in Goyal et al. 2017, arXiv:1706.02677)."""

from __future__ import annotations

from typing import Any, Dict, List, Sequence, Tuple

import paddle.nn.functional as F
from paddle import Tensor, nn

Stages = Sequence[Tuple[int, int]]

EXPANSION = 4  # channels a block puts out, over its width


def convolution(channels_in: int, channels_out: int, kernel: int, stride: int = 1) -> nn.Conv2D:
    # He et al.'s initializer over the outputs: Paddle's own counts the inputs
    fan_out = channels_out * kernel * kernel
    return nn.Conv2D(
        channels_in,
        channels_out,
        kernel,
        stride=stride,
        padding=kernel // 2,
        weight_attr=nn.initializer.KaimingNormal(fan_in=fan_out),
        bias_attr=False,  # the batch normalisation behind it has one
    )


class Bottleneck(nn.Layer):
    """1x1, 3x3, 1x1; (batch, channels_in, h, w) -> (batch, 4 width, h / stride, w / stride)."""

    def __init__(self, channels_in: int, width: int, stride: int, norm: Dict[str, float]) -> None:
        super().__init__()
        channels_out = width * EXPANSION
        self.conv1 = convolution(channels_in, width, 1)
        self.norm1 = nn.BatchNorm2D(width, **norm)
        self.conv2 = convolution(width, width, 3, stride)
        self.norm2 = nn.BatchNorm2D(width, **norm)
        self.conv3 = convolution(width, channels_out, 1)
        self.norm3 = nn.BatchNorm2D(channels_out, **norm)
        self.shortcut: nn.Layer = nn.Identity()
        if channels_in != channels_out:
            self.shortcut = nn.Sequential(
                ("conv", convolution(channels_in, channels_out, 1, stride)),
                ("norm", nn.BatchNorm2D(channels_out, **norm)),
            )

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.norm1(self.conv1(x)))
        y = F.relu(self.norm2(self.conv2(y)))
        return F.relu(self.norm3(self.conv3(y)) + self.shortcut(x))


class ResNet50(nn.Layer):
    """Images (batch, 3, h, w) -> logits (batch, classes). ``stages``: the width of the 3x3
    convolutions and the number of blocks of each."""

    def __init__(self, stages: Stages, classes: int, norm: Dict[str, float]) -> None:
        super().__init__()
        channels = stages[0][0]
        self.conv = convolution(3, channels, 7, stride=2)
        self.norm = nn.BatchNorm2D(channels, **norm)
        blocks: List[nn.Layer] = []
        for stage, (width, depth) in enumerate(stages):
            for block in range(depth):
                stride = 2 if stage > 0 and block == 0 else 1
                blocks.append(Bottleneck(channels, width, stride, norm))
                channels = width * EXPANSION
        self.blocks = nn.Sequential(*blocks)
        bound = channels**-0.5
        uniform = nn.initializer.Uniform(-bound, bound)
        self.classifier = nn.Linear(channels, classes, weight_attr=uniform, bias_attr=uniform)

    def forward(self, images: Tensor) -> Tuple[Tensor]:
        x = F.relu(self.norm(self.conv(images)))
        x = self.blocks(F.max_pool2d(x, kernel_size=3, stride=2, padding=1))
        return (self.classifier(F.adaptive_avg_pool2d(x, 1).flatten(1)),)


def build(facts: Dict[str, Any]) -> nn.Layer:
    hyper = facts["hyperparameters"]
    # Paddle's momentum is the share of the old statistics, PyTorch's that of the new ones
    norm = {"epsilon": hyper["batch_norm_epsilon"], "momentum": 1.0 - hyper["batch_norm_momentum"]}
    return ResNet50(hyper["stages"], hyper["classes"], norm)


def inputs(batch: Dict[str, Tensor]) -> Tuple[Tensor]:
    # NCHW, the layout of Paddle's layers and kernels unless told otherwise
    return (batch["images"].transpose([0, 3, 1, 2]),)


def loss(outputs: Tuple[Tensor, ...], batch: Dict[str, Tensor], facts: Dict[str, Any]) -> Tensor:
    (logits,) = outputs
    labels = batch["labels"]  # classes, or probabilities of all of them
    return F.cross_entropy(logits.astype("float32"), labels, soft_label=labels.ndim > 1)
