"""Primitives of the micro-benchmarks: single operations, called eagerly, layers as the models call
them, and the collectives of TensorFlow's distribution strategies."""

from __future__ import annotations

from typing import Any, Sequence, Tuple

import tensorflow as tf
from harness import operations
from harness.adapter import RankContext, Unsupported
from harness.operations import AttentionShape, ConvolutionShape, functions
from harness.primitives import HEADS_FIRST, SHARED, Compiled, Function, LayerFunction, Repeated
from networks.transformers import MASKED_SCORE

from .models.layers import attended
from .steps import traced


class Primitives(Compiled):
    COLLECTIVES = (operations.ALL_REDUCE, operations.ALL_GATHER)
    LACKING = "a replica of a distribution strategy has all_reduce and all_gather"
    FUNCTIONS = functions(tf.linalg.matmul, tf.add, tf.multiply, tf.exp)

    def __init__(
        self, rank_context: RankContext, device: str, dtype: str, strategy: tf.distribute.Strategy
    ) -> None:
        super().__init__(rank_context, device, dtype)
        self._strategy = strategy

    def tensor(self, array: Any, dtype: str = "") -> tf.Tensor:
        return tf.cast(tf.constant(array), dtype or self.dtype)

    def to_numpy(self, tensor: tf.Tensor) -> Any:
        return tensor.numpy().astype("float32")

    def name_of(self, tensor: tf.Tensor) -> str:
        return tensor.dtype.name

    def repeated(self, function: Function, operands: Sequence[Any]) -> Repeated:
        if hasattr(function, "get_concrete_function"):
            function = function.get_concrete_function(*operands)
        try:
            return super().repeated(function, operands)
        except tf.errors.OpError as error:
            refusals = [line for line in error.message.splitlines() if "not supported" in line]
            if not refusals:
                raise
            raise Unsupported(f"TensorFlow: {refusals[0].strip()}") from error

    def convolution(self, shape: ConvolutionShape) -> LayerFunction:
        rows, columns = shape.padding
        stride = (1, shape.stride, shape.stride, 1)
        padding = [[0, 0], [rows, rows], [columns, columns], [0, 0]]

        def convolve(images: tf.Tensor, kernel: tf.Tensor) -> tf.Tensor:
            if shape.groups == shape.channels == shape.filters > 1:
                kernel = tf.reshape(kernel, (*shape.kernel, shape.channels, 1))
                return tf.nn.depthwise_conv2d(images, kernel, stride, padding)
            return tf.nn.conv2d(images, kernel, stride, padding)

        return LayerFunction(traced(convolve), SHARED)

    def attention(self, shape: AttentionShape) -> LayerFunction:
        """Return an attention that is written out, as in the models: TensorFlow has no fused
        one."""
        ones = tf.ones((shape.sequence, shape.sequence), self.dtype)
        later = (ones - tf.linalg.band_part(ones, -1, 0)) * MASKED_SCORE
        mask = later if shape.causal else None
        return LayerFunction(
            traced(lambda query, key, value: attended(query, key, value, mask)), HEADS_FIRST
        )

    def pullback(
        self, function: Function, operands: Sequence[Any], upstream: Any
    ) -> Tuple[Function, Sequence[Any]]:
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(operands)
            kept = function(*operands)
        return lambda: tape.gradient(kept, operands, upstream), ()

    def program(self, function: Function, *operands: Any) -> Function:
        run = traced(lambda *arguments: self._strategy.run(function, args=arguments))
        concrete: Function = run.get_concrete_function(*operands)
        return concrete

    def exchange(self, operation: str, value: Any, axis: int = 0) -> Any:
        context = tf.distribute.get_replica_context()
        # The strategy requires a device, which an argument does not have.
        value = tf.identity(value)
        if operation == operations.ALL_REDUCE:
            return context.all_reduce(tf.distribute.ReduceOp.SUM, value)
        return context.all_gather(value, axis=axis)

    def chained(self, function: Function, count: int, a: Any, b: Any) -> Tuple[Any, ...]:
        """Return the last result, and a sum over all results: TensorFlow drops unused results, and
        computes equal independent operations only once."""
        result = function(a, b)
        each = [result[0, 0]]
        for _ in range(count - 1):
            with tf.control_dependencies([result]):
                result = function(a, b)
            each.append(result[0, 0])
        return result, tf.add_n(each)
