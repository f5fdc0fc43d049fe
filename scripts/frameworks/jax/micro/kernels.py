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


def passes(
    layer: Layer,
    arrays: Sequence[Any],
    device: jax.Device,
    dtype: Any,
    note: Callable[[Any], None],
) -> ForwardBackward:
    """See :class:`harness.operations.LayerOperations`."""
    if isinstance(layer, ConvolutionShape):
        return _convolution(layer, arrays, device, dtype, note)
    return _attention(layer, arrays, device, dtype, note)


def _convolution(
    shape: ConvolutionShape,
    arrays: Sequence[Any],
    device: jax.Device,
    dtype: Any,
    note: Callable[[Any], None],
) -> ForwardBackward:
    def function(images: jax.Array, kernel: jax.Array) -> jax.Array:
        weights = {"c.weight": kernel}
        return layers.convolution(weights, "c", images, shape.stride, shape.padding, shape.groups)

    return _passes(function, arrays, device, dtype, note)


def _attention(
    shape: AttentionShape,
    arrays: Sequence[Any],
    device: jax.Device,
    dtype: Any,
    note: Callable[[Any], None],
) -> ForwardBackward:
    """Return the kernels of an attention that is written out, as in the models."""
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

    laid_out = [array.transpose(_SEQUENCE_FIRST) for array in arrays]
    return _passes(function, laid_out, device, dtype, note, _SEQUENCE_FIRST)


def _passes(
    function: Callable[..., jax.Array],
    arrays: Sequence[Any],
    device: jax.Device,
    dtype: Any,
    note: Callable[[Any], None],
    axes: Sequence[int] = (0, 1, 2, 3),
) -> ForwardBackward:
    """Return forward and backward kernels. ``axes``: axes of results and gradients, in the layout
    of the harness's arrays."""
    *operands, gradient = (jax.device_put(array.astype(dtype), device) for array in arrays)
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
