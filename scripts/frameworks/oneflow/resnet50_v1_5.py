"""ResNet-50 v1.5 (He et al. 2015, arXiv:1512.03385; the stride-2 of a stage in its first 3x3
convolution, as in Goyal et al. 2017, arXiv:1706.02677)."""

from __future__ import annotations

from typing import Any, Dict, Sequence, Tuple

import oneflow.nn.functional as F
from oneflow import Tensor, nn

from .classes import cross_entropies

Stages = Sequence[Tuple[int, int]]

EXPANSION = 4  # channels a block puts out, over its width


def convolution(channels_in: int, channels_out: int, kernel: int, stride: int = 1) -> nn.Conv2d:
    # no bias: the batch normalisation behind it has one
    return nn.Conv2d(channels_in, channels_out, kernel, stride, kernel // 2, bias=False)


class Projection(nn.Module):
    """A shortcut that changes the shape; (batch, channels_in, h, w) -> (batch, channels_out, ..)"""

    def __init__(
        self, channels_in: int, channels_out: int, stride: int, norm: Dict[str, float]
    ) -> None:
        super().__init__()
        self.conv = convolution(channels_in, channels_out, 1, stride)
        self.norm = nn.BatchNorm2d(channels_out, **norm)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.conv(x))


class Bottleneck(nn.Module):
    """1x1, 3x3, 1x1; (batch, channels_in, h, w) -> (batch, 4 width, h / stride, w / stride)."""

    def __init__(self, channels_in: int, width: int, stride: int, norm: Dict[str, float]) -> None:
        super().__init__()
        channels_out = width * EXPANSION
        self.conv1 = convolution(channels_in, width, 1)
        self.norm1 = nn.BatchNorm2d(width, **norm)
        self.conv2 = convolution(width, width, 3, stride)
        self.norm2 = nn.BatchNorm2d(width, **norm)
        self.conv3 = convolution(width, channels_out, 1)
        self.norm3 = nn.BatchNorm2d(channels_out, **norm)
        self.shortcut: nn.Module = nn.Identity()
        if channels_in != channels_out:
            self.shortcut = Projection(channels_in, channels_out, stride, norm)

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.norm1(self.conv1(x)), inplace=True)
        y = F.relu(self.norm2(self.conv2(y)), inplace=True)
        return F.relu(self.norm3(self.conv3(y)) + self.shortcut(x), inplace=True)


class ResNet50(nn.Module):
    """Images (batch, 3, h, w) -> logits (batch, classes). ``stages``: the width of the 3x3
    convolutions and the number of blocks of each."""

    def __init__(self, stages: Stages, classes: int, norm: Dict[str, float]) -> None:
        super().__init__()
        channels = stages[0][0]
        self.conv = convolution(3, channels, 7, stride=2)
        self.norm = nn.BatchNorm2d(channels, **norm)
        blocks = []
        for stage, (width, depth) in enumerate(stages):
            for block in range(depth):
                stride = 2 if stage > 0 and block == 0 else 1
                blocks.append(Bottleneck(channels, width, stride, norm))
                channels = width * EXPANSION
        self.blocks = nn.Sequential(*blocks)
        self.classifier = nn.Linear(channels, classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, images: Tensor) -> Tuple[Tensor]:
        x = F.relu(self.norm(self.conv(images)), inplace=True)
        x = self.blocks(F.max_pool2d(x, kernel_size=3, stride=2, padding=1))
        return (self.classifier(F.adaptive_avg_pool2d(x, 1).flatten(1)),)


def build(facts: Dict[str, Any]) -> nn.Module:
    hyper = facts["hyperparameters"]
    norm = {"eps": hyper["batch_norm_epsilon"], "momentum": hyper["batch_norm_momentum"]}
    return ResNet50(hyper["stages"], hyper["classes"], norm)


def inputs(batch: Dict[str, Tensor]) -> Tuple[Tensor, ...]:
    return (batch["images"],)


def losses(
    outputs: Tuple[Tensor, ...], batch: Dict[str, Tensor], facts: Dict[str, Any]
) -> Tuple[Tensor, ...]:
    """One vector, (batch,); the loss is its mean."""
    (logits,) = outputs
    return (cross_entropies(logits.float(), batch["labels"]),)
