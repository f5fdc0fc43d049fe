"""A training on disk: the arrays of its model, and the states of Gluon's trainer, those of the
optimizer with its counters. MXNet gives no state of its random numbers."""

from __future__ import annotations

import json
import os
from typing import Any, Dict

import mxnet as mx

_MODEL, _TRAINER, _SCALE = "model.params", "trainer.states", "loss_scale.json"
#: Attributes of a loss scaler: its scale, and the steps since it changed.
_OF_SCALER = ("loss_scale", "_unskipped")


def save(path: str, arrays: Dict[str, Any], trainer: mx.gluon.Trainer) -> None:
    """Save the ``arrays`` of the model, by name, in the folder ``path``."""
    os.makedirs(path)
    mx.nd.save(os.path.join(path, _MODEL), arrays)
    trainer.save_states(os.path.join(path, _TRAINER))
    scaler = getattr(trainer, "_amp_loss_scaler", None)
    kept = {name: getattr(scaler, name) for name in _OF_SCALER} if scaler else {}
    with open(os.path.join(path, _SCALE), "w", encoding="utf-8") as file:
        json.dump(kept, file)


def load(path: str, arrays: Dict[str, Any], trainer: mx.gluon.Trainer) -> None:
    """Load a checkpoint into ``arrays``. Raises KeyError where one is missing."""
    kept = mx.nd.load(os.path.join(path, _MODEL))
    for name, array in arrays.items():
        kept[name].copyto(array)
    trainer.load_states(os.path.join(path, _TRAINER))
    with open(os.path.join(path, _SCALE), encoding="utf-8") as file:
        for name, value in json.load(file).items():
            setattr(trainer._amp_loss_scaler, name, value)
