"""A training on disk: the ``state_dict`` of model, optimizer and loss scaler. Paddle names the
states of an optimizer by parameters, whose names count on with each model of a process: here they
have the numbers of their parameters."""

from __future__ import annotations

from typing import Any, Dict, List

import paddle
from paddle import nn


def save(path: str, network: nn.Layer, optimizer: Any, scaler: Any) -> None:
    names = _names(network)
    states = {_numbered(name, names): value for name, value in optimizer.state_dict().items()}
    whole = {"model": network.state_dict(), "optimizer": states, "scaler": scaler.state_dict()}
    paddle.save(whole, path)


def load(path: str, network: nn.Layer, optimizer: Any, scaler: Any) -> None:
    names = _names(network)
    kept: Dict[str, Any] = paddle.load(path)
    network.set_state_dict(kept["model"])
    states = kept["optimizer"].items()
    optimizer.set_state_dict({_named(name, names): value for name, value in states})
    if kept["scaler"]:
        scaler.load_state_dict(kept["scaler"])


def _names(network: nn.Layer) -> List[str]:
    return [parameter.name for parameter in network.parameters()]


def _numbered(name: str, names: List[str]) -> str:
    """Return ``PARAMETER_velocity_0`` with the parameter's number in place of its name."""
    for number, own in enumerate(names):
        if name.startswith(f"{own}_"):
            return f"{number}:{name[len(own) :]}"
    return name


def _named(name: str, names: List[str]) -> str:
    number, colon, ending = name.partition(":")
    return names[int(number)] + ending if colon else name
