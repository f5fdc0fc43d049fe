"""Layers as differentiable functions of float64 arrays: numpy does the work, autograd (reverse-mode
differentiation of numpy code) the gradients. Images are (batch, height, width, channels)."""

from __future__ import annotations

import functools
import math
from typing import Any, ClassVar

import autograd.numpy as np
import numpy
from autograd.scipy.special import erf
from autograd.tracer import getval

from reference.weights import Arrays

Array = Any


class MultiplyAdds:
    """Counter of the multiply-adds of all matmuls since the start."""

    multiply_adds = 0


#: A value nearer than this to zero, where the derivative of a ReLU jumps, may have the other sign
#: in float32, which changes a part of the gradient.
NEAREST = 3e-6

#: Values of a max pool's window that are nearer to each other than this may be in another order in
#: float32, which moves the whole gradient to another place.
TIE = 5e-7


class Jumps:
    """Places where gradients may jump in float32, in all forward passes since the last reset.

    ``nearest``, without images: smallest distance of a ReLU's input from zero, or of a sampled
    token's score from the next score. ``places``, with images: index of the image, and position as
    a fraction of height and width, where a ReLU's input is within NEAREST of zero or the two
    largest values of a max pool's window are within TIE."""

    nearest = math.inf
    places: ClassVar[list[tuple[int, float, float]]] = []


class Moments:
    """Mean, biased variance and number of values per channel of each batch normalisation, by its
    name, in the last forward pass in training."""

    seen: ClassVar[dict[str, tuple[Array, Array, int]]] = {}


def running_statistics(weights: Arrays, share: float, unbiased: bool = False) -> Arrays:
    """Return the running statistics after the last forward pass in training.

    ``share``: weight of the new statistics. ``unbiased``: with the variance over n - 1 values, as
    some frameworks keep it."""
    updated = {}
    for name, (mean, variance, count) in Moments.seen.items():
        if unbiased:
            variance = variance * (count / (count - 1))
        for ending, new in (("running_mean", mean), ("running_var", variance)):
            old = weights[f"{name}.{ending}"]
            updated[f"{name}.{ending}"] = old + share * (new - old)
    return updated


def matmul(x: Array, y: Array) -> Array:
    """Return ``x @ y`` and count it."""
    rows = int(np.prod(x.shape[:-1]))
    MultiplyAdds.multiply_adds += rows * x.shape[-1] * y.shape[-1]
    return np.matmul(x, y)


def _windows(
    x: Array, kernel: tuple[int, int], stride: int, padding: tuple[int, int],
    extra: tuple[int, int] = (0, 0), value: float = 0.0,
) -> list[Array]:  # fmt: skip
    """Return the values of all windows, one array for each position in a window.

    ``x`` is padded with ``value``; ``extra``: padding beyond ``padding``, below and on the
    right."""
    padded = [(0, 0), *((pad, pad + more) for pad, more in zip(padding, extra)), (0, 0)]
    if any(map(any, padded)):
        x = np.pad(x, padded, "constant", constant_values=value)
    height, width = ((n - k) // stride + 1 for n, k in zip(x.shape[1:3], kernel))
    return [
        x[:, i : i + stride * (height - 1) + 1 : stride, j : j + stride * (width - 1) + 1 : stride]
        for i in range(kernel[0])
        for j in range(kernel[1])
    ]


def convolution(
    x: Array, weight: Array, stride: int, padding: tuple[int, int], groups: int
) -> Array:
    """Return the convolution with ``weight`` (rows, columns, in / groups, out). Images are padded
    by ``padding`` (rows, columns) on every side. Each group is one matmul of its windows."""
    places = _windows(x, weight.shape[:2], stride, padding)
    batch, height, width, channels = places[0].shape
    columns = places[0] if len(places) == 1 else np.concatenate(places, axis=3)
    if groups == 1:
        rows = np.reshape(columns, (-1, columns.shape[3]))
        y = matmul(rows, np.reshape(weight, (-1, weight.shape[3])))
        return np.reshape(y, (batch, height, width, -1))
    inner = channels // groups
    split = np.reshape(columns, (-1, len(places), groups, inner))
    rows = np.reshape(np.transpose(split, (2, 0, 1, 3)), (groups, -1, len(places) * inner))
    shares = np.reshape(weight, (len(places) * inner, groups, -1))
    y = matmul(rows, np.transpose(shares, (1, 0, 2)))
    return np.reshape(np.transpose(y, (1, 0, 2)), (batch, height, width, -1))


def maximum_pool(
    x: Array, kernel: int, stride: int, padding: int, extra: tuple[int, int] = (0, 0)
) -> Array:
    """Return the maximum of each window of kernel x kernel."""
    both = (padding, padding)
    places = _windows(x, (kernel, kernel), stride, both, extra, -np.inf)
    if isinstance(x, numpy.ndarray):
        Jumps.places += _places(_ties(places))
    return functools.reduce(np.maximum, places)


def _places(near: Array) -> list[tuple[int, float, float]]:
    """Return the positions where (batch, height, width, channels) is true, as
    :attr:`Jumps.places` has them."""
    height, width = near.shape[1:3]
    return [
        (image, (y + 0.5) / height, (x + 0.5) / width) for image, y, x, _ in numpy.argwhere(near)
    ]


def _ties(places: list[Array]) -> Array:
    """Return where the two largest values of a window differ by less than TIE. Equal values are
    zeros of a ReLU and do not count."""
    largest, second = places[0], numpy.full_like(places[0], -numpy.inf)
    for values in places[1:]:
        second = numpy.maximum(second, numpy.minimum(largest, values))
        largest = numpy.maximum(largest, values)
    return (second < largest) & (largest < second + TIE)


def average_pool(x: Array, kernel: int, stride: int, padding: int) -> Array:
    """Return the mean of each window of kernel x kernel, in which the padding counts."""
    return sum(_windows(x, (kernel, kernel), stride, (padding, padding))) / kernel**2


def adaptive_average_pool(x: Array, size: int) -> Array:
    """Pool to size x size: window i begins at floor(i n / size) and ends before ceil((i + 1) n /
    size), with n the extent."""
    for axis in (1, 2):
        extent = x.shape[axis]
        parts = []
        for i in range(size):
            begin, end = i * extent // size, -((i + 1) * extent // -size)
            part = x[:, begin:end] if axis == 1 else x[:, :, begin:end]
            parts.append(np.mean(part, axis=axis, keepdims=True))
        x = np.concatenate(parts, axis=axis)
    return x


def batch_norm(x: Array, weights: Arrays, name: str, epsilon: float, training: bool) -> Array:
    """Normalise all but the last axis, in training by the batch's own statistics (the biased
    variance), else by the running ones."""
    if training:
        axes = tuple(range(x.ndim - 1))
        mean, variance = np.mean(x, axis=axes), np.var(x, axis=axes)
        Moments.seen[name] = (getval(mean), getval(variance), x.size // x.shape[-1])
    else:
        mean, variance = weights[f"{name}.running_mean"], weights[f"{name}.running_var"]
    scale = weights[f"{name}.weight"] / np.sqrt(variance + epsilon)
    return x * scale + (weights[f"{name}.bias"] - mean * scale)


def layer_norm(x: Array, weights: Arrays, name: str, epsilon: float) -> Array:
    """Return ``x`` normalised over its last axis, scaled and shifted."""
    centred = x - np.mean(x, axis=-1, keepdims=True)
    variance = np.mean(centred**2, axis=-1, keepdims=True)
    normal = centred / np.sqrt(variance + epsilon)
    return normal * weights[f"{name}.weight"] + weights[f"{name}.bias"]


def rms_norm(x: Array, weights: Arrays, name: str, epsilon: float) -> Array:
    """Divide the last axis by its root mean square (Zhang and Sennrich 2019, arXiv:1910.07467)."""
    square = np.mean(x**2, axis=-1, keepdims=True)
    return x / np.sqrt(square + epsilon) * weights[f"{name}.weight"]


def rotated(x: Array, base: float) -> Array:
    """Return the rotary position embedding (Su et al. 2021, arXiv:2104.09864) of (.., sequence,
    size): value i of a position turns with value i + size / 2, by position * base^(-2 i / size)."""
    length, size = x.shape[-2:]
    half = size // 2
    angles = numpy.outer(numpy.arange(length), base ** (-2.0 * numpy.arange(half) / size))
    cosine, sine = numpy.cos(angles), numpy.sin(angles)
    first, second = x[..., :half], x[..., half:]
    return np.concatenate([first * cosine - second * sine, second * cosine + first * sine], axis=-1)


def dense(x: Array, weights: Arrays, name: str) -> Array:
    """Return the linear layer over the last axis, with a bias if it has one."""
    rows = np.reshape(x, (-1, x.shape[-1]))
    y = matmul(rows, weights[f"{name}.weight"])
    if f"{name}.bias" in weights:
        y = y + weights[f"{name}.bias"]
    return np.reshape(y, (*x.shape[:-1], -1))


def relu(x: Array) -> Array:
    if isinstance(x, numpy.ndarray):  # not while autograd traces
        if x.ndim == 4:
            Jumps.places += _places(abs(x) <= NEAREST)
        else:
            Jumps.nearest = min(Jumps.nearest, float(abs(x).min()))
    return x * (x > 0)


def relu6(x: Array) -> Array:
    """Return min(max(x, 0), 6)."""
    return 6 - relu(6 - relu(x))


def gelu(x: Array) -> Array:
    """Return the exact GELU (Hendrycks and Gimpel 2016, arXiv:1606.08415)."""
    return 0.5 * x * (1 + erf(x / np.sqrt(2)))


def gelu_tanh(x: Array) -> Array:
    """Return GELU's approximation by tanh, as in GPT-2."""
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def silu(x: Array) -> Array:
    """Return x times its logistic function."""
    return x / (1 + np.exp(-x))


def softmax(x: Array) -> Array:
    powers = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return powers / np.sum(powers, axis=-1, keepdims=True)


def cross_entropy(logits: Array, labels: Array) -> Array:
    """Return the mean cross-entropy over all labels. ``logits``: one axis more than the samples,
    the classes. ``labels``: class indices, or probabilities of all classes."""
    flat = np.reshape(logits, (-1, logits.shape[-1]))
    shifted = flat - np.max(flat, axis=1, keepdims=True)
    normal = np.log(np.sum(np.exp(shifted), axis=1))
    if numpy.shape(labels) == logits.shape:
        return np.mean(normal - np.sum(np.reshape(labels, flat.shape) * shifted, axis=1))
    chosen = shifted[np.arange(len(flat)), np.reshape(labels, -1)]
    return np.mean(normal - chosen)
