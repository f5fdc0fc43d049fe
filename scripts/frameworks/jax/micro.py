"""Primitives of the micro-benchmarks: single operations and layers as the models call them, and
collectives. Each is compiled alone, because JAX has no other way to run one."""

from __future__ import annotations

from typing import Any, Callable, Sequence, Tuple

import jax
import jax.numpy as jnp
import numpy as np
from harness import operations
from harness.adapter import RankContext
from harness.operations import AttentionShape, ConvolutionShape, functions
from harness.primitives import SEQUENCE_FIRST, SHARED, Compiled, Function, LayerFunction, Repeated
from jax import Array
from jax.sharding import NamedSharding

from .devices import AXIS, Ranks
from .models import layers


class Primitives(Compiled):
    """``ranks``: all ranks, None for a single one; ``note`` is called with each result."""

    COLLECTIVES = (
        operations.ALL_REDUCE,
        operations.ALL_GATHER,
        operations.REDUCE_SCATTER,
        operations.ALL_TO_ALL,
        operations.SEND_RECEIVE,
    )
    LACKING = "jax.lax has psum, all_gather, psum_scatter, all_to_all and ppermute"
    FUNCTIONS = functions(jnp.matmul, jnp.add, jnp.multiply, jnp.exp)

    def __init__(
        self,
        rank_context: RankContext,
        device: jax.Device,
        dtype: Any,
        ranks: Ranks,
        note: Callable[[Any], None],
    ) -> None:
        super().__init__(rank_context, device, dtype)
        self._ranks, self._note = ranks, note

    def tensor(self, array: Any, dtype: Any = "") -> Array:
        return jax.device_put(array.astype(dtype or self.dtype), self.device)

    def to_numpy(self, tensor: Array) -> Any:
        part = tensor.addressable_data(0)  # this rank's array among the stacked arrays
        part = part[0] if isinstance(tensor.sharding, NamedSharding) else part
        return np.array(part).astype(np.float32)

    def repeated(self, function: Function, operands: Sequence[Any]) -> Repeated:
        """Compile a function. Each program gets the previous result, and only uses its memory:
        otherwise JAX would start independent programs at once."""

        def behind(before: Any, *arguments: Any) -> Any:
            return function(*arguments)

        shapes = jax.eval_shape(behind, None, *operands)
        held = jax.tree.map(
            lambda shape: jax.device_put(np.zeros(shape.shape, shape.dtype), self.device), shapes
        )
        jitted = jax.jit(behind, donate_argnums=(0,), keep_unused=True)
        program = jitted.trace(held, *operands).lower().compile()

        def run() -> None:
            nonlocal held
            held = program(held, *operands)
            self._note(held)

        return Repeated(run, lambda: held)

    def convolution(self, shape: ConvolutionShape) -> LayerFunction:
        def convolve(images: Array, kernel: Array) -> Array:
            options = (shape.stride, shape.padding, shape.groups)
            return layers.convolution({"c.weight": kernel}, "c", images, *options)

        return LayerFunction(convolve, SHARED)

    def attention(self, shape: AttentionShape) -> LayerFunction:
        """Return an attention that is written out, as in the models."""
        groups, sharing = shape.key_value_heads, shape.heads // shape.key_value_heads
        positions = jnp.arange(shape.sequence)
        seen = jnp.repeat(positions, sharing)[:, None] >= positions
        mask = seen if shape.causal else jnp.ones_like(seen)
        rows = (shape.batch, shape.sequence * sharing, groups, shape.size)

        def attend(query: Array, key: Array, value: Array) -> Array:
            # query heads that share a key head are further rows of one matmul
            apart = query.reshape(shape.batch, shape.sequence, groups, sharing, shape.size)
            grouped = apart.swapaxes(2, 3).reshape(rows)
            context = layers.attention(grouped, key, value, mask, 0.0, None)
            context = context.reshape(shape.batch, shape.sequence, sharing, groups, shape.size)
            return context.swapaxes(2, 3).reshape(query.shape)

        return LayerFunction(attend, SEQUENCE_FIRST)

    def pullback(
        self, function: Function, operands: Sequence[Any], upstream: Any
    ) -> Tuple[Function, Sequence[Any]]:
        # the backward function is a tree of arrays that the forward pass keeps
        _, back = jax.jit(lambda *arguments: jax.vjp(function, *arguments))(*operands)
        return lambda pull, upstream: pull(upstream), [back, upstream]

    def shared(self, array: Any, dtype: str = "") -> Array:
        return self._ranks.stacked(self.tensor(array, dtype))

    def program(self, function: Function, *operands: Any) -> Function:
        """Compile a function over the ranks. It takes its own previous result, so that it starts
        only after the previous run."""

        def each(before: Any, *stacked: Array) -> Any:
            result = function(*(array[0] for array in stacked))
            return jax.tree.map(lambda array: array[None], result)

        compiled = self._ranks.program(each)
        held = compiled((), *operands)
        held = compiled(held, *operands)

        def run(*operands: Any) -> Any:
            nonlocal held
            held = compiled(held, *operands)
            self._note(held)
            return held

        return run

    def exchange(self, operation: str, value: Any, axis: int = 0) -> Any:
        ranks = self.rank_context.world_size
        if operation == operations.ALL_REDUCE:
            return jax.lax.psum(value, AXIS)
        if operation == operations.ALL_GATHER:
            return jax.lax.all_gather(value, AXIS, axis=axis, tiled=True)
        if operation == operations.REDUCE_SCATTER:
            return jax.lax.psum_scatter(value, AXIS, tiled=True)
        if operation == operations.ALL_TO_ALL:
            return jax.lax.all_to_all(value, AXIS, 0, 0, tiled=True)
        ring = [(rank, (rank + 1) % ranks) for rank in range(ranks)]
        return jax.lax.ppermute(value, AXIS, ring)

    def chained(self, function: Function, count: int, a: Any, b: Any) -> Tuple[Any, ...]:
        # A loop keeps each result whole: XLA would fuse unrolled element-wise operations into one.
        shape = jax.eval_shape(function, a, b)
        first = jax.lax.pcast(jnp.zeros(shape.shape, shape.dtype), AXIS, to="varying")
        return (jax.lax.fori_loop(0, count, lambda _, last: function(_behind(a, last), b), first),)


def _behind(operand: Array, before: Array) -> Array:
    """Return ``operand``, made available only after ``before``: its first element depends on it.

    XLA computes equal operations only once, and starts independent ones at the same time."""
    last = before[0, 0]
    return operand.at[0, 0].set(jnp.where(jnp.isnan(last), last, operand[0, 0]))
