"""Forward and backward pass of a convolution and of an attention, as the models here call them."""

from __future__ import annotations

from typing import Any, Callable, Sequence, Tuple

import paddle
import paddle.nn.functional as F
from harness.operations import AttentionShape, ConvolutionShape, ForwardBackward, Layer, Operation
from paddle import Tensor

from ..devices import data_format

#: Function of the operands, axes of operands and gradient as Paddle has them, and axes of the
#: operands, or their gradients, back in the harness's layout; the first are the result's, too.
Laid = Tuple[Callable[..., Tensor], Sequence[Sequence[int]], Sequence[Sequence[int]]]


def passes(layer: Layer, arrays: Sequence[Any], dtype: str) -> ForwardBackward:
    """Prepare the forward and backward kernels of ``layer``; see
    :class:`harness.operations.LayerOperations`."""
    laid = _convolution(layer) if isinstance(layer, ConvolutionShape) else _attention(layer)
    function, there, shared = laid
    laid_out = (array.transpose(axes).copy() for array, axes in zip(arrays, there))
    *operands, upstream = (paddle.to_tensor(array).astype(dtype) for array in laid_out)
    for operand in operands:
        operand.stop_gradient = False

    def differentiated() -> Any:
        return paddle.grad([kept], operands, [upstream], retain_graph=True)

    kept = function(*operands)
    with paddle.no_grad():
        held = function(*operands)
    gradients = differentiated()

    def forward() -> None:
        nonlocal held
        with paddle.no_grad():
            held = function(*operands)

    def backward() -> None:
        nonlocal gradients
        gradients = differentiated()

    def result(axes: Sequence[int], tensor: Tensor) -> Any:
        return tensor.astype("float32").numpy().transpose(axes)

    name = held.dtype.name.lower()
    return ForwardBackward(
        Operation(forward, lambda: result(shared[0], held), name),
        Operation(backward, lambda: list(map(result, shared, gradients)), name),
    )


def _convolution(shape: ConvolutionShape) -> Laid:
    layout = data_format()
    last = layout == "NHWC"
    to_images, back = ((0, 1, 2, 3),) * 2 if last else ((0, 3, 1, 2), (0, 2, 3, 1))

    def function(x: Tensor, weight: Tensor) -> Tensor:
        return F.conv2d(
            x, weight, stride=shape.stride, padding=list(shape.padding), groups=shape.groups,
            data_format=layout,
        )  # fmt: skip

    return function, (to_images, (3, 2, 0, 1), to_images), (back, (2, 3, 1, 0))


def _attention(shape: AttentionShape) -> Laid:
    sharing = shape.heads // shape.key_value_heads

    def attended(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        if sharing > 1:  # a head of keys for each of queries
            key, value = (paddle.repeat_interleave(heads, sharing, 2) for heads in (key, value))
        return F.scaled_dot_product_attention(query, key, value, is_causal=shape.causal)

    return attended, 4 * [(0, 2, 1, 3)], 3 * [(0, 2, 1, 3)]
