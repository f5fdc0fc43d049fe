"""The functions that TensorFlow traces: a training step, a forward pass, a sum over the ranks."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, NamedTuple

import keras
import tensorflow as tf

Batch = Dict[str, tf.Tensor]


def traced(function: Callable[..., Any], xla: bool = False) -> Any:
    """Return ``function`` as a tf.function without AutoGraph. Nothing here or in the models
    branches on a tensor, and AutoGraph would take most of the time of tracing."""
    return tf.function(function, jit_compile=xla, autograph=False)


class Training(NamedTuple):
    """Functions of a training step; each is traced at its first call or when its graph is read."""

    step: Any  # batch -> this rank's mean loss; updates the model
    gradients: Any  # batch -> arguments of the optimizer


def training(
    definition: Any,
    model: keras.Model,
    optimizer: keras.optimizers.Optimizer,
    strategy: tf.distribute.Strategy,
    accumulation: int,
    xla: bool,
) -> Training:
    """Return a training step and its first part: forward pass, backward pass, all-reduce.
    Micro-batches are stacked along the first axis of a batch.

    XLA cannot compile the collective, so it compiles the parts before and after it as two programs.
    A single rank uses the same two programs: as one program, its step would not be a baseline for
    scaling."""
    variables = model.trainable_variables
    ranks = strategy.num_replicas_in_sync

    def differentiate(batch: Batch) -> Any:
        with tf.GradientTape() as tape:
            outputs = model(definition.inputs(batch), training=True)
            loss = definition.loss(outputs, batch)
            # This rank's share of the global mean, so that the ranks' gradients add up to the
            # mean's gradient.
            share = optimizer.scale_loss(loss / ranks)
        gradients = tape.gradient(share, variables)
        # An embedding's gradient consists of slices, but all rows decay and have moments.
        # Parameters that the loss of a user's model does not use get a gradient of zero.
        return loss, [
            tf.zeros(variable.shape, variable.dtype)
            if gradient is None
            else tf.convert_to_tensor(gradient)
            for gradient, variable in zip(gradients, variables)
        ]

    def update(gradients: List[tf.Tensor]) -> None:
        # Outside the replica context, so that Keras does not reduce a second time and clips the
        # sum.
        optimizer.apply(gradients, variables)

    whole: Callable[[Batch], Any] = differentiate
    if accumulation > 1:
        whole = _accumulated(differentiate, variables, accumulation)
    local = traced(whole, xla=True) if xla else whole
    apply = traced(update, xla=True) if xla else update

    def replica(batch: Batch) -> Any:
        loss, gradients = local(batch)
        context = tf.distribute.get_replica_context()
        return loss, context.all_reduce(tf.distribute.ReduceOp.SUM, gradients)

    def gradients(batch: Batch) -> List[tf.Tensor]:
        return strategy.run(replica, args=(batch,))[1]

    def step(batch: Batch) -> tf.Tensor:
        loss, gradients = strategy.run(replica, args=(batch,))
        apply(gradients)
        return loss

    return Training(traced(step), traced(gradients))


def _accumulated(
    differentiate: Callable[[Batch], Any], variables: List[Any], count: int
) -> Callable[[Batch], Any]:
    """Apply ``differentiate`` to ``count`` micro-batches in turn, and return the means of their
    losses and gradients. They run in a loop of the graph: unrolled, TensorFlow could start all at
    once and hold the activations of all."""

    def add(number: tf.Tensor, loss: tf.Tensor, total: List[tf.Tensor], batches: Batch) -> Any:
        value, gradients = differentiate({name: array[number] for name, array in batches.items()})
        return (
            number + 1,
            loss + value,
            [so_far + gradient for so_far, gradient in zip(total, gradients)],
        )

    def run(batches: Batch) -> Any:
        zeros = [tf.zeros(variable.shape, variable.dtype) for variable in variables]
        _, loss, total = tf.while_loop(
            lambda number, loss, total: number < count,
            lambda number, loss, total: add(number, loss, total, batches),
            (tf.constant(0), tf.constant(0.0), zeros),
            parallel_iterations=1,
            maximum_iterations=count,
        )
        return loss / count, [gradient / count for gradient in total]

    return run


def forward(definition: Any, model: keras.Model, training: bool, xla: bool) -> Any:
    """Return a function from a batch to the outputs: an inference step, and the first part of a
    training step."""
    return traced(lambda batch: model(definition.inputs(batch), training=training), xla)


def sum_over_ranks(strategy: tf.distribute.Strategy) -> Any:
    """Return a function from a scalar of each rank to the sum over ranks."""

    def replica(value: tf.Tensor) -> tf.Tensor:
        context = tf.distribute.get_replica_context()
        # The strategy requires a device, which an argument does not have.
        return context.all_reduce(tf.distribute.ReduceOp.SUM, tf.identity(value))

    return traced(lambda value: strategy.run(replica, args=(value,)))
