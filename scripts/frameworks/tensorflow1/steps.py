"""The parts of the graph that a session runs: variables, and a training step or a forward pass.
Variables have the names and layouts that all frameworks share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Optional, Sequence

import tensorflow as tf

from .compiler import Scope

Tensors = List[tf.Tensor]
Variables = Dict[str, Any]


def normal(shape: Sequence[int], deviation: float) -> tf.Variable:
    return _variable(tf.random.normal(shape, stddev=deviation))


def uniform(shape: Sequence[int], bound: float) -> tf.Variable:
    return _variable(tf.random.uniform(shape, -bound, bound))


def constant(shape: Sequence[int], value: float, trainable: bool = True) -> tf.Variable:
    return _variable(tf.fill(shape, value), trainable)


def _variable(initial: tf.Tensor, trainable: bool = True) -> tf.Variable:
    # Resource variables, which XLA needs; TensorFlow 1's default are reference variables.
    return tf.Variable(initial, trainable=trainable, use_resource=True)


def empty(shape: Sequence[int], dtype: Any) -> tf.Variable:
    """Return a variable of zeros on the device, for values that are assigned later."""
    return _variable(tf.zeros(shape, dtype), trainable=False)


def resident(batch: Dict[str, Any]) -> Dict[str, tf.Variable]:
    """Return a variable on the device for each array of ``batch``, still empty. Fed data would be
    copied in every step, and a constant is part of the graph, which is limited to 2 GiB."""
    return {name: empty(array.shape, array.dtype) for name, array in batch.items()}


def load(variables: Variables, arrays: Dict[str, Any], session: tf.Session) -> None:
    """Load arrays into the ``variables`` of the same names."""
    for name, variable in variables.items():
        variable.load(arrays[name], session)


@dataclass(frozen=True)
class Training:
    """Training step. ``gradients``, by name, are averaged over the ranks, not clipped and without
    decay. Only ``update`` changes variables. ``logits`` and ``gradients`` come from the operations
    of ``loss`` and ``update``, not from copies of them."""

    loss: tf.Tensor
    logits: Tensors
    gradients: Dict[str, tf.Tensor]
    update: tf.Operation


@dataclass(frozen=True)
class Inference:
    """Inference step. ``update`` computes the ``logits`` and leaves them in ``outputs``, on the
    device: a session copies all fetched values to the host."""

    logits: Tensors
    outputs: List[tf.Variable]
    update: tf.Operation


def training(
    definition: Any,
    variables: Variables,
    batch: Dict[str, tf.Variable],
    optimizer: tf.train.Optimizer,
    scope: Scope,
    average: Callable[[Tensors], Tensors],
) -> Training:
    """Return the training step. ``average``: averages over the ranks."""
    logits, statistics = definition.forward(variables, batch, True, scope)
    with scope():
        loss = definition.loss(logits, batch)
    parameters = {name: entry for name, entry in variables.items() if entry.trainable}
    pairs = optimizer.compute_gradients(loss, list(parameters.values()))
    # An embedding's gradient consists of slices, but all rows decay and have moments.
    gradients = average([tf.convert_to_tensor(gradient) for gradient, _ in pairs])
    applied = _clipped(gradients, definition.hyper.get("clip_global_norm"))
    updates = [optimizer.apply_gradients(zip(applied, parameters.values()))]
    for name, pairs in statistics.items():
        share = definition.hyper["batch_norm_momentum"]  # share of the new statistics
        old = variables[name]
        updates.append(old.assign_sub(share * (old - pairs), read_value=False))
    return Training(loss, logits, dict(zip(parameters, gradients)), tf.group(*updates))


def inference(
    definition: Any,
    variables: Variables,
    batch: Dict[str, tf.Variable],
    scope: Scope,
) -> Inference:
    logits = list(definition.forward(variables, batch, False, scope)[0])
    outputs = [empty(tensor.shape, tensor.dtype) for tensor in logits]
    updates = [held.assign(tensor, read_value=False) for held, tensor in zip(outputs, logits)]
    return Inference(logits, outputs, tf.group(*updates))


def _clipped(gradients: Tensors, limit: Optional[float]) -> Tensors:
    return gradients if limit is None else tf.clip_by_global_norm(gradients, limit)[0]
