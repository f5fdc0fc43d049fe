"""A training on disk: the ``state_dict`` of model, optimizer and loss scaler. Paddle names the
states of an optimizer by parameters, whose names count on with each model of a process: a training
that goes on has built the same models before."""

from __future__ import annotations

from typing import Any, Dict

import paddle
from paddle import nn


def save(path: str, network: nn.Layer, optimizer: Any, scaler: Any) -> None:
    parts = {"model": network, "optimizer": optimizer, "scaler": scaler}
    paddle.save({name: part.state_dict() for name, part in parts.items()}, path)


def load(path: str, network: nn.Layer, optimizer: Any, scaler: Any) -> None:
    kept: Dict[str, Any] = paddle.load(path)
    network.set_state_dict(kept["model"])
    optimizer.set_state_dict(kept["optimizer"])
    if kept["scaler"]:
        scaler.load_state_dict(kept["scaler"])
