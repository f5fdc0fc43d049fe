"""Convolutions of a model, and the check of a framework's results.

Standard library and numpy.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Dict, List, Mapping, Sequence

import networks

from harness.measuring.micro import samples
from harness.operations import ConvolutionShape


def layer_counts(model_config: Mapping[str, Any], batch: int) -> Dict[ConvolutionShape, int]:
    """Return the distinct convolutions of a training step in order, and how often each occurs; {}
    for a model that is no network description."""
    counts: Dict[ConvolutionShape, int] = Counter()
    for layer in _layers(model_config):
        if layer.op == "convolution":
            shape = ConvolutionShape(
                batch,
                *layer.in_shape,
                layer.channels,
                tuple(layer.kernel),
                layer.stride,
                tuple(layer.padding),
                layer.groups,
            )
            counts[shape] += 1
    return dict(counts)


def _layers(model_config: Mapping[str, Any]) -> Sequence[networks.Layer]:
    """Return the layers of the model's network description, if any."""
    if "family" not in model_config.get("hyperparameters", {}):
        return ()
    return networks.describe(model_config).layers


def operations(shape: ConvolutionShape) -> int:
    """Return the floating-point operations of the forward pass.

    Each product counts as a multiplication and an addition, including those with padding. The
    backward pass has twice as many."""
    rows, columns, channels, filters = shape.kernel_shape
    batch, height, width, _ = shape.result_shape
    return 2 * batch * height * width * filters * rows * columns * channels


def operands(shape: ConvolutionShape, random: Any) -> List[Any]:
    """Return float32 images, kernel and gradient of the result.

    Values are random numbers around 0, small enough that sums fit float16."""
    import numpy as np

    rows, columns, channels, _ = shape.kernel_shape
    scale = (rows * columns * channels) ** -0.5
    shapes = (shape.images_shape, shape.kernel_shape, shape.result_shape)
    images, kernel, gradient = (
        random.standard_normal(extents).astype(np.float32) for extents in shapes
    )
    return [images, np.float32(scale) * kernel, np.float32(scale) * gradient]


class Exact:
    """Results in float64 of the ``arrays`` that :func:`operands` makes."""

    def __init__(self, shape: ConvolutionShape, arrays: Sequence[Any]) -> None:
        import numpy as np

        self._shape = shape
        self._images, self._kernel, self._gradient = arrays
        rows, columns = shape.padding
        self._padded = np.pad(self._images, ((0, 0), (rows, rows), (columns, columns), (0, 0)))
        self._in = shape.channels // shape.groups
        self._out = shape.filters // shape.groups

    def result(self, n: int, y: int, x: int, filter_: int) -> float:
        """Return an element of the result."""
        shape, (rows, columns) = self._shape, self._shape.kernel
        top, left, first = y * shape.stride, x * shape.stride, filter_ // self._out * self._in
        seen = self._padded[n, top : top + rows, left : left + columns, first : first + self._in]
        return _dot(seen, self._kernel[..., filter_])

    def images_gradient(self, n: int, y: int, x: int, channel: int) -> float:
        """Return an element of the gradient of the images."""
        shape, total = self._shape, 0.0
        group, own = divmod(channel, self._in)
        filters = slice(group * self._out, (group + 1) * self._out)
        _, height, width, _ = shape.result_shape
        for row in range(shape.kernel[0]):
            for column in range(shape.kernel[1]):
                down, beyond = divmod(y + shape.padding[0] - row, shape.stride)
                across, past = divmod(x + shape.padding[1] - column, shape.stride)
                if not (beyond or past) and 0 <= down < height and 0 <= across < width:
                    gradient = self._gradient[n, down, across, filters]
                    total += _dot(gradient, self._kernel[row, column, own, filters])
        return total

    def kernel_gradient(self, row: int, column: int, own: int, filter_: int) -> float:
        """Return an element of the gradient of the kernel."""
        stride, (_, height, width, _) = self._shape.stride, self._shape.result_shape
        channel = filter_ // self._out * self._in + own
        down = slice(row, row + stride * height, stride)
        across = slice(column, column + stride * width, stride)
        seen = self._padded[:, down, across, channel]
        return _dot(seen[:, :height, :width], self._gradient[..., filter_])


def _dot(first: Any, second: Any) -> float:
    """Return the sum of elementwise products in float64."""
    import numpy as np

    return float(np.sum(first.astype(np.float64) * second.astype(np.float64)))


def check(
    shape: ConvolutionShape, arrays: Sequence[Any], results: Sequence[Any], dtype: str, random: Any
) -> float:
    """Return the largest error of a sample against float64. Raises Mismatch where it exceeds
    rounding.

    ``results``: result and gradients of images and kernel."""
    import numpy as np

    exact = Exact(shape, arrays)
    errors = []
    for part, array, extents, exact_element in (
        ("the result", results[0], shape.result_shape, exact.result),
        ("the images' gradient", results[1], shape.images_shape, exact.images_gradient),
        ("the kernel's gradient", results[2], shape.kernel_shape, exact.kernel_gradient),
    ):
        samples.check_shape(array, extents, f"{part} of a convolution")
        places = [random.randint(0, extent, samples.SAMPLE) for extent in extents]
        expected = np.array([exact_element(*map(int, indices)) for indices in zip(*places)])
        name = f"{part} of a convolution of {_text(shape.images_shape)}"
        errors.append(samples.check(array[tuple(places)], expected, dtype, name))
    return max(errors)


def at(shape: ConvolutionShape, times: int) -> Dict[str, Any]:
    """Return the point of a run for a shape: its extents by name, and ``times``, how often the
    model has it."""
    return {
        "images": _text(shape.images_shape),
        "kernel": _text((*shape.kernel, shape.filters)),
        "stride": shape.stride,
        "padding": _text(shape.padding),
        "groups": shape.groups,
        "times": times,
    }


def _text(extents: Sequence[int]) -> str:
    return "x".join(map(str, extents))
