"""ResNet-50 v1.5 (He et al. 2015, arXiv:1512.03385; the stride-2 of a stage in its first 3x3
convolution, as in Goyal et al. 2017, arXiv:1706.02677)."""

from __future__ import annotations

from typing import Any, Dict, Iterator, NamedTuple, Optional, Tuple

import numpy as np
from jax import Array, lax

from .layers import Arrays, batch_norm, convolution, cross_entropy, dense, relu

EXPANSION = 4  # channels a block puts out, over its width


class Convolution(NamedTuple):
    """One without bias; behind it stands a batch normalisation of its output."""

    name: str
    norm: str
    kernel: int
    channels_in: int
    channels_out: int


class Block(NamedTuple):
    """1x1, 3x3, 1x1; ``projection`` where the shortcut is not the identity."""

    convolutions: Tuple[Convolution, Convolution, Convolution]
    projection: Optional[Convolution]
    stride: int


def stem(hyper: Dict[str, Any]) -> Convolution:
    return Convolution("conv", "norm", 7, 3, hyper["stages"][0][0])


def blocks(hyper: Dict[str, Any]) -> Iterator[Block]:
    """From input to output; ``stages``: width of the 3x3 convolutions, number of blocks."""
    channels, number = stem(hyper).channels_out, 0
    for stage, (width, depth) in enumerate(hyper["stages"]):
        for position in range(depth):
            name, wide = f"blocks.{number}", width * EXPANSION
            sizes = ((1, channels, width), (3, width, width), (1, width, wide))
            first, second, third = (
                Convolution(f"{name}.conv{i}", f"{name}.norm{i}", *size)
                for i, size in enumerate(sizes, 1)
            )
            projection = None
            if channels != wide:
                shortcut = f"{name}.shortcut"
                projection = Convolution(f"{shortcut}.conv", f"{shortcut}.norm", 1, channels, wide)
            yield Block((first, second, third), projection, 2 if stage and not position else 1)
            channels, number = wide, number + 1


def _convolutions(hyper: Dict[str, Any]) -> Iterator[Convolution]:
    yield stem(hyper)
    for block in blocks(hyper):
        yield from block.convolutions
        if block.projection:
            yield block.projection


def model(facts: Dict[str, Any]) -> Dict[str, Any]:
    """What the functions below need to know."""
    hyper: Dict[str, Any] = facts["hyperparameters"]
    return hyper


def parameters(facts: Dict[str, Any], random: np.random.Generator) -> Dict[str, np.ndarray]:
    """Drawn as in torchvision: He et al.'s normal for convolutions (fan out), for the classifier
    uniform within 1 / sqrt(inputs)."""
    hyper = facts["hyperparameters"]
    drawn: Dict[str, np.ndarray] = {}
    for name, norm, kernel, channels_in, channels_out in _convolutions(hyper):
        shape = (kernel, kernel, channels_in, channels_out)
        scale = np.float32((2.0 / (kernel * kernel * channels_out)) ** 0.5)
        drawn[f"{name}.weight"] = random.standard_normal(shape, np.float32) * scale
        drawn[f"{norm}.weight"] = np.ones(channels_out, np.float32)
        drawn[f"{norm}.bias"] = np.zeros(channels_out, np.float32)
    features, classes = hyper["stages"][-1][0] * EXPANSION, hyper["classes"]
    for kind, size in (("weight", (features, classes)), ("bias", (classes,))):
        uniform = random.uniform(-1.0, 1.0, size) / features**0.5
        drawn[f"classifier.{kind}"] = uniform.astype(np.float32)
    return drawn


def statistics(facts: Dict[str, Any]) -> Dict[str, np.ndarray]:
    """Running mean and variance of every batch normalisation at the start."""
    fresh: Dict[str, np.ndarray] = {}
    for convolved in _convolutions(facts["hyperparameters"]):
        fresh[f"{convolved.norm}.running_mean"] = np.zeros(convolved.channels_out, np.float32)
        fresh[f"{convolved.norm}.running_var"] = np.ones(convolved.channels_out, np.float32)
    return fresh


def forward(
    parameters: Arrays,
    statistics: Arrays,
    batch: Arrays,
    key: Optional[Array],
    hyper: Dict[str, Any],
    dtype: Any,
    train: bool,
) -> Tuple[Tuple[Array, ...], Arrays]:
    """Logits (batch, classes) in ``dtype``, and the running statistics behind it. There is no
    dropout, so ``key`` is not used."""
    after: Arrays = {}
    epsilon, momentum = hyper["batch_norm_epsilon"], hyper["batch_norm_momentum"]

    def normalized(convolved: Convolution, x: Array, stride: int) -> Array:
        x = convolution(parameters, convolved.name, x, stride)
        norm = convolved.norm
        x, found = batch_norm(parameters, statistics, norm, x, train, epsilon, momentum)
        after.update(found)
        return x

    x = relu(normalized(stem(hyper), batch["images"].astype(dtype), 2))
    window, strides, padding = (1, 3, 3, 1), (1, 2, 2, 1), ((0, 0), (1, 1), (1, 1), (0, 0))
    x = lax.reduce_window(x, np.array(-np.inf, x.dtype), lax.max, window, strides, padding)
    for (first, second, third), projection, stride in blocks(hyper):
        y = relu(normalized(first, x, 1))
        y = relu(normalized(second, y, stride))
        shortcut = normalized(projection, x, stride) if projection else x
        x = relu(normalized(third, y, 1) + shortcut)
    return (dense(parameters, "classifier", x.mean((1, 2))),), after


def loss(outputs: Tuple[Array, ...], batch: Arrays, hyper: Dict[str, Any]) -> Array:
    """Mean cross entropy over the batch."""
    (logits,) = outputs
    return cross_entropy(logits, batch["labels"])
