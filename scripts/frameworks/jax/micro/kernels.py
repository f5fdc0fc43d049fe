"""Forward and backward pass of a convolution and of an attention, as the models here call them,
each pass a compiled program."""

from __future__ import annotations

from typing import Any, Callable, List, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from harness.operations import AttentionShape, ConvolutionShape, ForwardBackward, Layer, Operation

from ..models import layers
from .operations import chained

#: Axes of (batch, heads, sequence, size) as the models have them, and back.
_SEQUENCE_FIRST = (0, 2, 1, 3)
_AS_THEY_ARE = (0, 1, 2, 3)


def passes(
    layer: Layer,
    arrays: Sequence[Any],
    device: jax.Device,
    dtype: Any,
    note: Callable[[Any], None],
) -> ForwardBackward:
    """Prepare the forward and backward kernels of ``layer``; see
    :class:`harness.operations.LayerOperations`."""
    if isinstance(layer, ConvolutionShape):
        function, axes = _convolution(layer), _AS_THEY_ARE
    else:
        function, axes = _attention(layer), _SEQUENCE_FIRST
    laid_out = (array.transpose(axes).astype(dtype) for array in arrays)
    *operands, gradient = (jax.device_put(array, device) for array in laid_out)
    # the function of the backward pass is a tree of arrays: what the forward pass keeps for it
    result, back = jax.jit(lambda *arguments: jax.vjp(function, *arguments))(*operands)
    forward = chained(function, operands, device, note)
    backward = chained(lambda pull, upstream: pull(upstream), [back, gradient], device, note)

    def to_numpy(tree: Any) -> List[Any]:
        leaves = (np.array(array).astype(np.float32) for array in jax.tree.leaves(tree))
        return [leaf.transpose(axes) for leaf in leaves]

    name = str(result.dtype)
    return ForwardBackward(
        Operation(forward.run, lambda: to_numpy(forward.held())[0], name),
        Operation(backward.run, lambda: to_numpy(backward.held()), name),
    )


def _convolution(shape: ConvolutionShape) -> Callable[..., jax.Array]:
    def function(images: jax.Array, kernel: jax.Array) -> jax.Array:
        weights = {"c.weight": kernel}
        return layers.convolution(weights, "c", images, shape.stride, shape.padding, shape.groups)

    return function


def _attention(shape: AttentionShape) -> Callable[..., jax.Array]:
    """Return an attention that is written out, as in the models."""
    groups, sharing = shape.key_value_heads, shape.heads // shape.key_value_heads
    positions = jnp.arange(shape.sequence)
    seen = jnp.repeat(positions, sharing)[:, None] >= positions
    mask = seen if shape.causal else jnp.ones_like(seen)
    rows = (shape.batch, shape.sequence * sharing, groups, shape.size)

    def function(query: jax.Array, key: jax.Array, value: jax.Array) -> jax.Array:
        # the heads of queries that share one of keys are more rows of the same matmul
        apart = query.reshape(shape.batch, shape.sequence, groups, sharing, shape.size)
        grouped = apart.swapaxes(2, 3).reshape(rows)
        context = layers.attention(grouped, key, value, mask, 0.0, None)
        context = context.reshape(shape.batch, shape.sequence, sharing, groups, shape.size)
        return context.swapaxes(2, 3).reshape(query.shape)

    return function
