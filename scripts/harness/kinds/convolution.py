"""Convolutions of a model, each distinct shape alone, forward and backward.

The backward pass gives the gradients of images and kernel, for the first layer too. A part of each
result is checked against float64."""

from __future__ import annotations

from collections import Counter
from typing import Any, Dict, List, Mapping, Sequence, Tuple

import networks

from harness.kind import Workload
from harness.measuring.sweep import ModelKernels
from harness.operations import ConvolutionShape

#: Number of channels and of filters that are recomputed.
_COMPARED = 4


class Convolution(ModelKernels[ConvolutionShape]):
    """Convolutions alone: TFLOP/s and microseconds of each shape, and of all in the model."""

    axes = ("framework", "model", "nodes", "devices_per_node", "batch_per_device", "precision")
    lacking = "no convolutions of {} are described"
    results = ("the result", "the images' gradient", "the kernel's gradient")

    def shapes(self, workload: Workload) -> Dict[ConvolutionShape, int]:
        return layer_counts(workload.model_config, workload.case.batch_per_device)

    def at(self, shape: ConvolutionShape) -> Dict[str, Any]:
        return {
            "images": _text(shape.images_shape),
            "kernel": _text((*shape.kernel, shape.filters)),
            "stride": shape.stride,
            "padding": _text(shape.padding),
            "groups": shape.groups,
        }

    def operations(self, shape: ConvolutionShape) -> int:
        """Count a multiplication and an addition for each term, also for terms with padding."""
        rows, columns, channels, filters = shape.kernel_shape
        batch, height, width, _ = shape.result_shape
        return 2 * batch * height * width * filters * rows * columns * channels

    def operands(self, shape: ConvolutionShape, random: Any) -> List[Any]:
        """Return images, kernel and gradient of the result: random numbers around 0, small enough
        that sums fit float16."""
        import numpy as np

        rows, columns, channels, _ = shape.kernel_shape
        scales = (1.0, (rows * columns * channels) ** -0.5, (rows * columns * channels) ** -0.5)
        shapes = (shape.images_shape, shape.kernel_shape, shape.result_shape)
        return [
            np.float32(scale) * random.standard_normal(extents).astype(np.float32)
            for extents, scale in zip(shapes, scales)
        ]

    def compared(
        self, shape: ConvolutionShape, arrays: Sequence[Any], results: Sequence[Any], random: Any
    ) -> Tuple[Sequence[Any], List[Any]]:
        """Return some channels and filters of one image and group, and of the kernel."""
        n, group = random.randint(shape.batch), random.randint(shape.groups)
        inputs, outputs = shape.channels // shape.groups, shape.filters // shape.groups
        own = random.randint(0, inputs, _COMPARED)
        filters = group * outputs + random.randint(0, outputs, _COMPARED)
        parts = (
            results[0][n][..., filters],
            results[1][n][..., group * inputs + own],
            results[2].take(own, 2).take(filters, 3),
        )
        return parts, exact(shape, arrays, n, group, own, filters)


def layer_counts(model_config: Mapping[str, Any], batch: int) -> Dict[ConvolutionShape, int]:
    """Return the distinct convolutions of a training step in order, and how often each occurs; {}
    for a model without a network description."""
    if "family" not in model_config.get("hyperparameters", {}):
        return {}
    counts: Dict[ConvolutionShape, int] = Counter()
    for layer in networks.describe(model_config).layers:
        if layer.op == "convolution":
            kernel, padding = tuple(layer.kernel), tuple(layer.padding)
            shape = (*layer.in_shape, layer.channels, kernel, layer.stride, padding, layer.groups)
            counts[ConvolutionShape(batch, *shape)] += 1
    return dict(counts)


def exact(
    shape: ConvolutionShape, arrays: Sequence[Any], n: int, group: int, own: Any, filters: Any
) -> List[Any]:
    """Return float64 results: the ``filters`` of image ``n`` (height, width, filters), the gradient
    of its channels ``own`` within the group (height, width, channels), and the kernel's gradient
    for these channels and filters (rows, columns, channels, filters)."""
    import numpy as np

    (top, left), (rows, columns), stride = shape.padding, shape.kernel, shape.stride
    inputs, outputs = shape.channels // shape.groups, shape.filters // shape.groups
    of_group = slice(group * outputs, (group + 1) * outputs)
    images, kernel, gradient = arrays
    padded = np.pad(images, ((0, 0), (top, top), (left, left), (0, 0)))
    padded = padded[..., group * inputs : (group + 1) * inputs]
    kernel, upstream = kernel.astype(np.float64), gradient[n, ..., of_group].astype(np.float64)
    of_filters = gradient[..., filters].astype(np.float64).reshape(-1, len(filters))
    _, height, width, _ = shape.result_shape
    result = np.zeros((height, width, len(filters)))
    back = np.zeros((*padded.shape[1:3], len(own)))
    kernel_gradient = np.zeros((rows, columns, len(own), len(filters)))
    for row, column in np.ndindex(rows, columns):
        down = slice(row, row + stride * (height - 1) + 1, stride)
        across = slice(column, column + stride * (width - 1) + 1, stride)
        result += padded[n, down, across].astype(np.float64) @ kernel[row, column][:, filters]
        back[down, across] += upstream @ kernel[row, column, own, of_group].T
        seen = padded[:, down, across][..., own].astype(np.float64)
        kernel_gradient[row, column] = seen.reshape(-1, len(own)).T @ of_filters
    return [result, back[top : top + shape.height, left : left + shape.width], kernel_gradient]


def _text(extents: Sequence[int]) -> str:
    return "x".join(map(str, extents))
