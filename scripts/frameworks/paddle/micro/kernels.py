"""Forward and backward pass of a convolution and of an attention, as the models here call them."""

from __future__ import annotations

from typing import Any, Callable, Sequence, Tuple

import paddle
import paddle.nn.functional as F
from harness.operations import AttentionShape, ConvolutionShape, ForwardBackward, Layer, Operation
from paddle import Tensor

from ..devices import data_format

Layout = Tuple[int, ...]


def passes(layer: Layer, arrays: Sequence[Any], dtype: str) -> ForwardBackward:
    """See :class:`harness.operations.LayerOperations`."""
    if isinstance(layer, ConvolutionShape):
        return _convolution(layer, arrays, dtype)
    return _attention(layer, arrays, dtype)


def _convolution(shape: ConvolutionShape, arrays: Sequence[Any], dtype: str) -> ForwardBackward:
    images, kernel, gradient = arrays
    layout = data_format()
    last = layout == "NHWC"
    to_images, back = ((0, 1, 2, 3),) * 2 if last else ((0, 3, 1, 2), (0, 2, 3, 1))
    return _passes(
        lambda x, weight: F.conv2d(
            x,
            weight,
            stride=shape.stride,
            padding=list(shape.padding),
            groups=shape.groups,
            data_format=layout,
        ),
        [images.transpose(to_images), kernel.transpose(3, 2, 0, 1)],
        gradient.transpose(to_images),
        dtype,
        [back, (2, 3, 1, 0)],
    )


def _attention(shape: AttentionShape, arrays: Sequence[Any], dtype: str) -> ForwardBackward:
    sharing = shape.heads // shape.key_value_heads

    def attended(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        if sharing > 1:  # a head of keys for each of queries
            key, value = (paddle.repeat_interleave(heads, sharing, 2) for heads in (key, value))
        return F.scaled_dot_product_attention(query, key, value, is_causal=shape.causal)

    *operands, gradient = (array.transpose(0, 2, 1, 3) for array in arrays)
    return _passes(attended, operands, gradient, dtype, 3 * [(0, 2, 1, 3)])


def _passes(
    function: Callable[..., Tensor],
    arrays: Sequence[Any],
    gradient: Any,
    dtype: str,
    shared: Sequence[Layout],
) -> ForwardBackward:
    """Return forward and backward kernels. ``shared``: the axes of each operand, or of its
    gradient, in the layout of the harness's arrays; those of the first also the result's."""
    operands = [paddle.to_tensor(array.copy()).astype(dtype) for array in arrays]
    upstream = paddle.to_tensor(gradient.copy()).astype(dtype)
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

    def result(axes: Layout, tensor: Tensor) -> Any:
        return tensor.astype("float32").numpy().transpose(axes)

    name = held.dtype.name.lower()
    return ForwardBackward(
        Operation(forward, lambda: result(shared[0], held), name),
        Operation(backward, lambda: list(map(result, shared, gradients)), name),
    )
