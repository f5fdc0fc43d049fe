"""A training on disk: the arrays of its model with the loss scale, and the states of Gluon's
trainer, those of the optimizer with its counters. MXNet gives no state of its random numbers."""

from __future__ import annotations

import os
from typing import Any, Dict

import mxnet as mx

_MODEL, _TRAINER, _SCALE = "model.params", "trainer.states", "loss scale"


def save(path: str, arrays: Dict[str, Any], trainer: mx.gluon.Trainer) -> None:
    """Save the ``arrays`` of the model, by name, in the folder ``path``."""
    os.makedirs(path)
    scaler = getattr(trainer, "_amp_loss_scaler", None)
    # the scale, and the steps since it changed
    scale = {_SCALE: mx.nd.array([scaler.loss_scale, scaler._unskipped])} if scaler else {}
    mx.nd.save(os.path.join(path, _MODEL), {**arrays, **scale})
    trainer.save_states(os.path.join(path, _TRAINER))


def load(path: str, arrays: Dict[str, Any], trainer: mx.gluon.Trainer) -> None:
    """Load a checkpoint into ``arrays``. Raises KeyError where one is missing."""
    kept = mx.nd.load(os.path.join(path, _MODEL))
    for name, array in arrays.items():
        kept[name].copyto(array)
    trainer.load_states(os.path.join(path, _TRAINER))
    if _SCALE in kept:
        scaler = trainer._amp_loss_scaler
        scaler.loss_scale, scaler._unskipped = kept[_SCALE].asnumpy().tolist()
