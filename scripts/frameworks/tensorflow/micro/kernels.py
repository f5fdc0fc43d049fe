"""Forward and backward pass of a convolution and of an attention, as the models here call them."""

from __future__ import annotations

from typing import Any, Callable, Sequence

import tensorflow as tf
from harness.adapter import Unsupported
from harness.operations import AttentionShape, ConvolutionShape, ForwardBackward, Layer, Operation

from ..models.transformers import MASKED_SCORE, attended
from ..steps import traced


def passes(layer: Layer, arrays: Sequence[Any], dtype: str) -> ForwardBackward:
    """Prepare the forward and backward kernels of ``layer``; see
    :class:`harness.operations.LayerOperations`."""
    if isinstance(layer, ConvolutionShape):
        function = _convolution(layer)
    else:
        function = _attention(layer, dtype)
    *operands, gradient = (tf.cast(tf.constant(array), dtype) for array in arrays)
    program = traced(function)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(operands)
        kept = program(*operands)
    program = program.get_concrete_function(*operands)
    try:
        held, gradients = program(*operands), tape.gradient(kept, operands, gradient)
    except tf.errors.OpError as error:
        if "not supported" not in error.message:
            raise
        raise Unsupported(f"TensorFlow: {error.message.strip().splitlines()[0]}") from error

    def forward() -> None:
        nonlocal held
        held = program(*operands)

    def backward() -> None:
        nonlocal gradients
        gradients = tape.gradient(kept, operands, gradient)

    def result(tensor: tf.Tensor) -> Any:
        return tensor.numpy().astype("float32")

    return ForwardBackward(
        Operation(forward, lambda: result(held), held.dtype.name),
        Operation(backward, lambda: list(map(result, gradients)), held.dtype.name),
    )


def _convolution(shape: ConvolutionShape) -> Callable[..., tf.Tensor]:
    rows, columns = shape.padding
    stride = (1, shape.stride, shape.stride, 1)
    padding = [[0, 0], [rows, rows], [columns, columns], [0, 0]]

    def function(images: tf.Tensor, kernel: tf.Tensor) -> tf.Tensor:
        if shape.groups == shape.channels == shape.filters > 1:
            kernel = tf.reshape(kernel, (*shape.kernel, shape.channels, 1))
            return tf.nn.depthwise_conv2d(images, kernel, stride, padding)
        return tf.nn.conv2d(images, kernel, stride, padding)

    return function


def _attention(shape: AttentionShape, dtype: str) -> Callable[..., tf.Tensor]:
    """Return an attention that is written out, as in the models: TensorFlow has no fused one."""
    ones = tf.ones((shape.sequence, shape.sequence), dtype)
    later = (ones - tf.linalg.band_part(ones, -1, 0)) * MASKED_SCORE

    def function(query: tf.Tensor, key: tf.Tensor, value: tf.Tensor) -> tf.Tensor:
        return attended(query, key, value, later if shape.causal else None)

    return function
