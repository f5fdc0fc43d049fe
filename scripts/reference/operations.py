"""Layers as differentiable functions of float64 arrays: numpy does the work, autograd (reverse-mode
differentiation of numpy code) the gradients. Images are (batch, height, width, channels)."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import autograd.numpy as np
import numpy
from autograd.scipy.special import erf
from autograd.tracer import getval

Array = Any


class Products:
    """How many multiply-adds all products since the start were made of."""

    multiply_adds = 0


class Jumps:
    """How near to the jump of its derivative any ReLU came in a forward pass since the start."""

    nearest = math.inf


class Moments:
    """Mean, biased variance and number of values a channel of each batch normalisation, by name, in
    the last forward pass in training."""

    seen: ClassVar[dict[str, tuple[Array, Array, int]]] = {}


def running_statistics(
    weights: dict[str, Array], share: float, unbiased: bool = False
) -> dict[str, Array]:
    """Those behind the last forward pass in training: ``share`` is that of the new ones.
    ``unbiased``: with the variance over n - 1 values, as some frameworks keep it."""
    found = {}
    for name, (mean, variance, count) in Moments.seen.items():
        if unbiased:
            variance = variance * (count / (count - 1))
        for ending, new in (("running_mean", mean), ("running_var", variance)):
            old = weights[f"{name}.{ending}"]
            found[f"{name}.{ending}"] = old + share * (new - old)
    return found


def product(x: Array, y: Array) -> Array:
    """``x @ y``, counted."""
    rows = int(np.prod(x.shape[:-1]))
    Products.multiply_adds += rows * x.shape[-1] * y.shape[-1]
    return np.matmul(x, y)


def convolution(x: Array, weight: Array, stride: int = 1) -> Array:
    """``weight`` is (kernel, kernel, in, out); padded by kernel // 2 on every side. The sum over
    the kernel's positions of one matrix product each."""
    kernel = weight.shape[0]
    pad = kernel // 2
    height, width = ((size + 2 * pad - kernel) // stride + 1 for size in x.shape[1:3])
    if pad:
        x = np.pad(x, ((0, 0), (pad, pad), (pad, pad), (0, 0)), "constant")
    columns = [
        x[:, i : i + stride * height : stride, j : j + stride * width : stride]
        for i in range(kernel)
        for j in range(kernel)
    ]
    columns = columns[0] if kernel == 1 else np.concatenate(columns, axis=3)
    rows = np.reshape(columns, (-1, columns.shape[3]))
    y = product(rows, np.reshape(weight, (-1, weight.shape[3])))
    return np.reshape(y, (len(x), height, width, -1))


def maximum_pool(x: Array) -> Array:
    """The largest of 3 x 3, in steps of 2, padded by one."""
    height, width = ((size + 1) // 2 for size in x.shape[1:3])
    x = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)), "constant", constant_values=-np.inf)
    found = None
    for i in range(3):
        for j in range(3):
            part = x[:, i : i + 2 * height : 2, j : j + 2 * width : 2]
            found = part if found is None else np.maximum(found, part)
    return found


def batch_norm(
    x: Array, weights: dict[str, Array], name: str, epsilon: float, training: bool
) -> Array:
    """Over all but the last axis; by the batch's own statistics (the biased variance) in training,
    by the running ones else."""
    if training:
        axes = tuple(range(x.ndim - 1))
        mean, variance = np.mean(x, axis=axes), np.var(x, axis=axes)
        Moments.seen[name] = (getval(mean), getval(variance), x.size // x.shape[-1])
    else:
        mean, variance = weights[f"{name}.running_mean"], weights[f"{name}.running_var"]
    scale = weights[f"{name}.weight"] / np.sqrt(variance + epsilon)
    return x * scale + (weights[f"{name}.bias"] - mean * scale)


def layer_norm(x: Array, weights: dict[str, Array], name: str, epsilon: float) -> Array:
    """Over the last axis."""
    centred = x - np.mean(x, axis=-1, keepdims=True)
    variance = np.mean(centred**2, axis=-1, keepdims=True)
    normal = centred / np.sqrt(variance + epsilon)
    return normal * weights[f"{name}.weight"] + weights[f"{name}.bias"]


def dense(x: Array, weights: dict[str, Array], name: str) -> Array:
    """Over the last axis."""
    rows = np.reshape(x, (-1, x.shape[-1]))
    y = product(rows, weights[f"{name}.weight"]) + weights[f"{name}.bias"]
    return np.reshape(y, (*x.shape[:-1], -1))


def relu(x: Array) -> Array:
    if isinstance(x, numpy.ndarray):  # not one that is being differentiated
        Jumps.nearest = min(Jumps.nearest, float(abs(x).min()))
    return x * (x > 0)


def gelu(x: Array) -> Array:
    """The exact one (Hendrycks and Gimpel 2016, arXiv:1606.08415)."""
    return 0.5 * x * (1 + erf(x / np.sqrt(2)))


def softmax(x: Array) -> Array:
    powers = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return powers / np.sum(powers, axis=-1, keepdims=True)


def cross_entropy(logits: Array, labels: Array) -> Array:
    """Mean over all labels; ``logits`` have one more axis, the classes."""
    flat = np.reshape(logits, (-1, logits.shape[-1]))
    shifted = flat - np.max(flat, axis=1, keepdims=True)
    normal = np.log(np.sum(np.exp(shifted), axis=1))
    chosen = shifted[np.arange(len(flat)), np.reshape(labels, -1)]
    return np.mean(normal - chosen)
