"""TensorFlow's automatic mixed precision: Grappler rewrites the graph to float16."""

from __future__ import annotations

from typing import Iterable

import tensorflow as tf
from harness.adapter import ExecutedMatmul, Unsupported, is_mixed


def configure(precision: str, config: tf.ConfigProto) -> None:
    """Configure a session as ``tf.train.experimental.enable_mixed_precision_graph_rewrite`` does.

    That function needs an optimizer, which inference does not have."""
    rewriting = config.graph_options.rewrite_options
    rewriting.auto_mixed_precision = rewriting.ON if is_mixed(precision) else rewriting.OFF


def scaled(optimizer: tf.train.Optimizer) -> tf.train.Optimizer:
    """Return ``optimizer`` with a dynamic loss scale, as the same function returns it."""
    return tf.train.experimental.MixedPrecisionLossScaleOptimizer(optimizer, "dynamic")


def require(matmuls: Iterable[ExecutedMatmul]) -> None:
    """Raise :class:`Unsupported` where the rewrite left all ``matmuls`` as they were."""
    if not any(matmul.dtype == "float16" for matmul in matmuls):
        raise Unsupported(
            "TensorFlow's graph rewrite left all products in float32: 'No (suitable) GPUs "
            "detected, skipping auto_mixed_precision graph optimizer' (it wants Tensor Cores)"
        )
