"""The functions that TensorFlow traces: one training step, one forward pass, one collective."""

from __future__ import annotations

from typing import Any, Callable, List

import keras
import tensorflow as tf


def training(
    definition: Any,
    model: keras.Model,
    optimizer: keras.optimizers.Optimizer,
    strategy: tf.distribute.Strategy,
    xla: bool,
) -> Callable[..., Any]:
    """A step from a batch to this rank's mean loss, which updates the model."""
    variables = model.trainable_variables
    ranks = strategy.num_replicas_in_sync
    # The collective's kernels are not XLA's: with several ranks the compiler gets what is
    # before it. The update that follows is one fused kernel a variable either way.
    whole = xla and ranks == 1

    def gradients(batch: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = definition.loss(model(definition.inputs(batch), training=True), batch)
            # A share of the global mean, so that the sum over the ranks is its gradient.
            share = optimizer.scale_loss(loss / ranks)
        found: List[Any] = tape.gradient(share, variables)
        # An embedding's gradient comes as slices; decay and moments are those of all rows.
        return loss, [tf.convert_to_tensor(gradient) for gradient in found]

    compiled = tf.function(gradients, jit_compile=True) if xla and not whole else gradients

    def reduced(batch: Any) -> Any:
        loss, found = compiled(batch)
        context = tf.distribute.get_replica_context()
        return loss, context.all_reduce(tf.distribute.ReduceOp.SUM, found)

    def step(batch: Any) -> Any:
        loss, found = strategy.run(reduced, args=(batch,))
        # Out here Keras does not reduce once more, and it clips what was reduced.
        optimizer.apply(found, variables)
        return loss

    return tf.function(step, jit_compile=whole or None)


def forward(
    definition: Any, model: keras.Model, training: bool, xla: bool = False
) -> Callable[..., Any]:
    """From a batch to the model's outputs."""

    def outputs(batch: Any) -> Any:
        return model(definition.inputs(batch), training=training)

    return tf.function(outputs, jit_compile=xla or None)


def sum_over_ranks(strategy: tf.distribute.Strategy) -> Callable[..., Any]:
    """From a float64 scalar of each rank to their sum."""

    def replica(value: Any) -> Any:
        context = tf.distribute.get_replica_context()
        return context.all_reduce(tf.distribute.ReduceOp.SUM, value)

    return tf.function(lambda value: strategy.run(replica, args=(value,)))
