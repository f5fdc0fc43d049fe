"""Checkpoints of a training: a ``tf.train.Checkpoint`` of all variables, in their order: those of
the model, including the states of dropout's random numbers, and those of the optimizer."""

from __future__ import annotations

import os
from typing import Any

import keras
import tensorflow as tf

_NAME = "training"


def _checkpoint(model: keras.Model, optimizer: keras.optimizers.Optimizer) -> Any:
    variables = [*model.variables, *optimizer.variables]
    return tf.train.Checkpoint(variables=[variable.value for variable in variables])


def save(path: str, model: keras.Model, optimizer: keras.optimizers.Optimizer) -> None:
    """Save a checkpoint in the folder ``path``."""
    _checkpoint(model, optimizer).write(os.path.join(path, _NAME))


def load(path: str, model: keras.Model, optimizer: keras.optimizers.Optimizer) -> None:
    _checkpoint(model, optimizer).read(os.path.join(path, _NAME)).assert_consumed()
