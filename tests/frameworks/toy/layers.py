"""Convolution and attention in numpy, forward and backward, a whole array at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
from harness.operations import AttentionShape, ConvolutionShape


def convolution(shape: ConvolutionShape, images: Any, kernel: Any, gradient: Any) -> list[Any]:
    rows, columns = shape.padding
    padded = np.pad(images, ((0, 0), (rows, rows), (columns, columns), (0, 0)))
    result = np.zeros(shape.result_shape, np.float32)
    of_padded, of_kernel = np.zeros_like(padded), np.zeros_like(kernel)
    _, height, width, _ = shape.result_shape
    inner, outer = shape.channels // shape.groups, shape.filters // shape.groups
    for group in range(shape.groups):
        channels = slice(group * inner, (group + 1) * inner)
        filters = slice(group * outer, (group + 1) * outer)
        for row, column in np.ndindex(*shape.kernel):
            down = slice(row, row + shape.stride * (height - 1) + 1, shape.stride)
            across = slice(column, column + shape.stride * (width - 1) + 1, shape.stride)
            seen, weights = padded[:, down, across, channels], kernel[row, column, :, filters]
            result[..., filters] += seen @ weights
            of_padded[:, down, across, channels] += gradient[..., filters] @ weights.T
            of_kernel[row, column, :, filters] += np.einsum(
                "nhwi,nhwo->io", seen, gradient[..., filters]
            )
    of_images = of_padded[:, rows : rows + shape.height, columns : columns + shape.width]
    return [result, of_images, of_kernel]


def attention(shape: AttentionShape, query: Any, key: Any, value: Any, gradient: Any) -> list[Any]:
    sharing, scale = shape.heads // shape.key_value_heads, shape.size**-0.5
    keys, values = (np.repeat(entry, sharing, axis=1) for entry in (key, value))
    scores = scale * np.einsum("bhqd,bhkd->bhqk", query, keys)
    if shape.causal:
        scores = np.where(np.tril(np.ones(scores.shape[-2:], bool)), scores, -np.inf)
    weights = np.exp(scores)
    weights /= weights.sum(-1, keepdims=True)
    result = np.einsum("bhqk,bhkd->bhqd", weights, values)
    of_weights = np.einsum("bhqd,bhkd->bhqk", gradient, values)
    of_scores = scale * weights * (of_weights - (of_weights * weights).sum(-1, keepdims=True))

    def shared(array: Any) -> Any:
        apart = array.reshape(shape.batch, shape.key_value_heads, sharing, *array.shape[2:])
        return apart.sum(2)

    return [
        result,
        np.einsum("bhqk,bhkd->bhqd", of_scores, keys),
        shared(np.einsum("bhqk,bhqd->bhkd", of_scores, query)),
        shared(np.einsum("bhqk,bhqd->bhkd", weights, gradient)),
    ]
